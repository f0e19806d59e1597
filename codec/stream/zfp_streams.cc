#include "codec/stream/zfp_streams.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>

#include <fmt/core.h>
#include <zfp.h>

#include "codec/base/malloc_ptr.h"

namespace cframefs::codec {
namespace {

struct CloseField {
  void operator()(zfp_field* field) const { zfp_field_free(field); }
};
struct CloseStream {
  void operator()(zfp_stream* stream) const { zfp_stream_close(stream); }
};
struct CloseBits {
  void operator()(bitstream* bits) const { stream_close(bits); }
};

constexpr std::size_t kMaxDimensions = 4;
constexpr std::size_t kBitsPerByte = 8;
/// libzfp reads its stream in words and up to one word ahead.
constexpr std::size_t kWordSlack = 64;

std::unique_ptr<zfp_field, CloseField> make_field(zfp_type type, std::span<const std::int32_t> shape, ByteSpan out) {
  // The last dimension, whose items are contiguous, is the x of zfp.
  std::array<std::size_t, kMaxDimensions> extent{};
  for (std::size_t i = 0; i < shape.size(); ++i)
    extent[i] = static_cast<std::size_t>(shape[shape.size() - 1 - i]);
  zfp_field* field = nullptr;
  switch (shape.size()) {
    case 1:
      field = zfp_field_1d(out.data(), type, extent[0]);
      break;
    case 2:
      field = zfp_field_2d(out.data(), type, extent[0], extent[1]);
      break;
    case 3:
      field = zfp_field_3d(out.data(), type, extent[0], extent[1], extent[2]);
      break;
    default:
      field = zfp_field_4d(out.data(), type, extent[0], extent[1], extent[2], extent[3]);
      break;
  }
  return std::unique_ptr<zfp_field, CloseField>(field);
}

void set_mode(zfp_stream* zfp, ZfpMode mode, std::uint8_t meta, zfp_type type, std::size_t ndim) {
  const auto dimensions = static_cast<unsigned>(ndim);
  if (mode == ZfpMode::accuracy) {
    zfp_stream_set_accuracy(zfp, std::pow(10.0, static_cast<std::int8_t>(meta)));
  } else if (mode == ZfpMode::precision) {
    zfp_stream_set_precision(zfp, std::min(meta + 3U + 2U * dimensions, unsigned{ZFP_MAX_PREC}));
  } else {
    const bool is_float = type == zfp_type_float;
    const double bits = is_float ? 32 : 64;
    const double exponent = is_float ? 8 : 11;
    const double least = (1 + exponent) / std::pow(4.0, static_cast<double>(ndim));
    zfp_stream_set_rate(zfp, std::max(meta / 100.0 * bits, least), type, dimensions, zfp_false);
  }
}

Failure wrong_size(std::size_t size) {
  return corrupt(fmt::format("zfp: block of {} bytes does not match the block shape of the array", size));
}

Result<void> check_block(std::int32_t typesize, std::span<const std::int32_t> shape, std::size_t size) {
  if (typesize != 4 && typesize != 8)
    return unsupported(fmt::format("zfp: items of {} bytes, allowed are 4 and 8", typesize));
  if (shape.empty() || shape.size() > kMaxDimensions) {
    return unsupported(fmt::format("zfp: blocks of {} dimensions, allowed are 1 to 4", shape.size()));
  }
  auto bytes = static_cast<std::uint64_t>(typesize);
  for (const std::int32_t extent : shape) {
    if (extent <= 0 || bytes > size) return wrong_size(size);
    bytes *= static_cast<std::uint64_t>(extent);
  }
  if (bytes != size) return wrong_size(size);
  return {};
}

}  // namespace

Result<void> decode_zfp(ZfpMode mode, std::uint8_t meta, std::int32_t typesize,
                        std::span<const std::int32_t> blockshape, ByteView stream, ByteSpan out) {
  if (auto fine = check_block(typesize, blockshape, out.size()); !fine) return fine;
  if (stream.empty()) return corrupt("zfp: the stream is empty");
  const zfp_type type = typesize == 4 ? zfp_type_float : zfp_type_double;
  const auto field = make_field(type, blockshape, out);
  const std::unique_ptr<zfp_stream, CloseStream> zfp(zfp_stream_open(nullptr));
  if (!field || !zfp) return io_error(ENOMEM, "zfp");
  set_mode(zfp.get(), mode, meta, type, blockshape.size());

  // A crafted stream can make libzfp read more bits than an encoder writes: all values and one test of each bit plane,
  // and two more tests per value, which is less than twice the maximum size. Untouched pages of the copy cost nothing.
  const std::size_t most = 2 * zfp_stream_maximum_size(zfp.get(), field.get()) + kWordSlack;
  const std::size_t size = std::max(most, stream.size() + kWordSlack);
  // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): a vector would touch every page to clear it
  const MallocPtr<void> memory(std::calloc(1, size));
  if (!memory) return io_error(ENOMEM, "zfp");
  const ByteSpan words(static_cast<std::uint8_t*>(memory.get()), size);
  std::copy(stream.begin(), stream.end(), words.begin());
  // libzfp reads words in the byte order of the machine, frames hold little-endian ones (codecs.md section 7).
  const std::size_t word = stream_word_bits / kBitsPerByte;
  swap_if_big_endian(words.first((stream.size() + word - 1) / word * word), word);
  const std::unique_ptr<bitstream, CloseBits> bits(stream_open(memory.get(), size));
  if (!bits) return io_error(ENOMEM, "zfp");
  zfp_stream_set_bit_stream(zfp.get(), bits.get());
  zfp_stream_rewind(zfp.get());
  if (zfp_decompress(zfp.get(), field.get()) == 0) return corrupt("zfp: corrupt stream");
  if (stream_rtell(bits.get()) > kBitsPerByte * stream.size()) return corrupt("zfp: the stream is truncated");
  swap_if_big_endian(out, static_cast<std::size_t>(typesize));
  return {};
}

}  // namespace cframefs::codec
