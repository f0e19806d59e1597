#include "tests/codec/chunk_assembler.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>

#include <libdeflate.h>
#include <lz4.h>
#include <snappy.h>
#include <zstd.h>

#include "tests/codec/plain_filters.h"
#include "tests/codec/stream/blosclz_writer.h"

namespace cframefs {
namespace {

using codec::CodecFormat;
using codec::FilterId;

const char* chars(const Bytes& bytes) {
  return reinterpret_cast<const char*>(bytes.data());
}
char* chars(Bytes& bytes) {
  return reinterpret_cast<char*>(bytes.data());
}

Bytes compress_lz4(const Bytes& dictionary, const Bytes& plain) {
  Bytes out(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(plain.size()))));
  const std::unique_ptr<LZ4_stream_t, int (*)(LZ4_stream_t*)> stream(LZ4_createStream(), LZ4_freeStream);
  LZ4_loadDict(stream.get(), chars(dictionary), static_cast<int>(dictionary.size()));
  const int size = LZ4_compress_fast_continue(stream.get(), chars(plain), chars(out), static_cast<int>(plain.size()),
                                              static_cast<int>(out.size()), 1);
  out.resize(static_cast<std::size_t>(size));
  return out;
}

Bytes compress_zlib(const Bytes& plain) {
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> compressor(
      libdeflate_alloc_compressor(6), libdeflate_free_compressor);
  Bytes out(libdeflate_zlib_compress_bound(compressor.get(), plain.size()));
  out.resize(libdeflate_zlib_compress(compressor.get(), plain.data(), plain.size(), out.data(), out.size()));
  return out;
}

Bytes compress_zstd(const Bytes& dictionary, const Bytes& plain) {
  Bytes out(ZSTD_compressBound(plain.size()));
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  const std::size_t size = ZSTD_compress_usingDict(context.get(), out.data(), out.size(), plain.data(), plain.size(),
                                                   dictionary.data(), dictionary.size(), 1);
  if (ZSTD_isError(size)) throw std::runtime_error(ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

Bytes compress_snappy(const Bytes& plain) {
  std::string out;
  snappy::Compress(chars(plain), plain.size(), &out);
  return {out.begin(), out.end()};
}

Bytes filtered(const ChunkPlan& plan, const Bytes& block, const Bytes& reference) {
  Bytes out = block;
  for (std::size_t slot = 0; slot < 6; ++slot) {
    const std::uint8_t meta = plan.metas[slot];
    switch (static_cast<FilterId>(plan.filters[slot])) {
      case FilterId::shuffle: {
        const bool repeats = plan.version <= 4;
        for (int i = 0; i < (repeats ? meta + 1 : 1); ++i) {
          out = apply_shuffle(repeats || meta == 0 ? plan.typesize : meta, out);
        }
        break;
      }
      case FilterId::bitshuffle:
        out = apply_bitshuffle(plan.typesize, plan.version <= 3 || plan.old_bitshuffle, out);
        break;
      case FilterId::delta:
        out = apply_delta(plan.typesize, reference, out);
        break;
      case FilterId::bytedelta:
      case FilterId::bytedelta_old:
        out = apply_bytedelta(meta, plan.filters[slot] == 34, out);
        break;
      default:
        break;
    }
  }
  return out;
}

// Returns length field and payload of one stream (chunk.md section 4.3).
void append_stream(Bytes& chunk, const ChunkPlan& plan, const Bytes& bytes) {
  const bool run = std::all_of(bytes.begin(), bytes.end(), [&](std::uint8_t byte) { return byte == bytes[0]; });
  if (run && plan.runs && !plan.short_header) {
    append_le(chunk, -std::int32_t{bytes[0]});
    if (bytes[0] != 0) chunk.push_back(0x01);
    return;
  }
  const Bytes stored = compress(plan.format, plan.dictionary, bytes);
  const bool raw = stored.empty() || stored.size() >= bytes.size();
  append_le(chunk, static_cast<std::int32_t>(raw ? bytes.size() : stored.size()));
  chunk += raw ? bytes : stored;
}

void append_block(Bytes& chunk, const ChunkPlan& plan, const Bytes& block, bool leftover) {
  if (!plan.vl_lengths.empty()) {
    const Bytes stored = compress(plan.format, plan.dictionary, block);
    const bool raw = stored.empty() || stored.size() >= block.size();
    append_le(chunk, static_cast<std::int32_t>(block.size()));
    chunk += raw ? block : stored;
    return;
  }
  const std::size_t streams = plan.split && !leftover ? plan.typesize : 1;
  const std::size_t length = block.size() / streams;
  for (std::size_t i = 0; i < streams; ++i) {
    const auto begin = block.begin() + static_cast<std::ptrdiff_t>(i * length);
    append_stream(chunk, plan, Bytes(begin, begin + static_cast<std::ptrdiff_t>(length)));
  }
}

std::vector<std::uint32_t> block_lengths(const ChunkPlan& plan, std::size_t nbytes) {
  if (!plan.vl_lengths.empty()) return plan.vl_lengths;
  std::vector<std::uint32_t> lengths;
  for (std::size_t at = 0; at < nbytes; at += static_cast<std::size_t>(plan.blocksize)) {
    lengths.push_back(static_cast<std::uint32_t>(std::min(nbytes - at, static_cast<std::size_t>(plan.blocksize))));
  }
  return lengths;
}

Bytes header_of(const ChunkPlan& plan, std::size_t nbytes) {
  auto flags = static_cast<std::uint8_t>(static_cast<unsigned>(plan.format) << 5);
  if (!plan.split) flags |= 0x10;
  const auto uses = [&](FilterId id) {
    return std::find(plan.filters.begin(), plan.filters.end(), static_cast<std::uint8_t>(id)) != plan.filters.end();
  };
  const std::int32_t blocksize =
      plan.vl_lengths.empty() ? plan.blocksize : static_cast<std::int32_t>(plan.vl_lengths.size());
  if (plan.short_header) {
    if (uses(FilterId::shuffle)) flags |= 0x01;
    if (uses(FilterId::bitshuffle)) flags |= 0x04;
    if (uses(FilterId::delta)) flags |= 0x08;
    Bytes header{plan.version, 1, flags, plan.typesize};
    append_le(header, static_cast<std::int32_t>(nbytes));
    append_le(header, blocksize);
    append_le(header, std::int32_t{0});
    return header;
  }
  Bytes header = extended_header(flags, plan.typesize, static_cast<std::int32_t>(nbytes), blocksize, 0,
                                 plan.vl_lengths.empty() ? 0 : 1, plan.dictionary.empty() ? 0 : 1);
  header[0] = plan.version;
  std::copy(plan.filters.begin(), plan.filters.end(), header.begin() + 0x10);
  std::copy(plan.metas.begin(), plan.metas.end(), header.begin() + 0x18);
  return header;
}

}  // namespace

Bytes compress(CodecFormat format, const Bytes& dictionary, const Bytes& plain) {
  switch (format) {
    case CodecFormat::blosclz:
      return blosclz_encode(plain);
    case CodecFormat::lz4:
      return compress_lz4(dictionary, plain);
    case CodecFormat::snappy:
      return compress_snappy(plain);
    case CodecFormat::zlib:
      return compress_zlib(plain);
    case CodecFormat::zstd:
      return compress_zstd(dictionary, plain);
    default:
      return {};
  }
}

Bytes assemble(const ChunkPlan& plan, const Bytes& plain) {
  Bytes chunk = header_of(plan, plain.size());
  const std::size_t starts_at = chunk.size();
  const std::vector<std::uint32_t> lengths = block_lengths(plan, plain.size());
  chunk.resize(chunk.size() + 4 * lengths.size());
  if (!plan.dictionary.empty()) {
    append_le(chunk, static_cast<std::int32_t>(plan.dictionary.size()));
    chunk += plan.dictionary;
  }
  std::vector<std::uint32_t> order = plan.block_order;
  if (order.empty()) {
    order.resize(lengths.size());
    std::iota(order.begin(), order.end(), 0u);
  }
  const auto block_at = [&](std::uint32_t block) {
    const auto begin = std::accumulate(lengths.begin(), lengths.begin() + block, std::ptrdiff_t{0});
    return Bytes(plain.begin() + begin, plain.begin() + begin + lengths[block]);
  };
  for (const std::uint32_t block : order) {
    codec::store_le(&chunk[starts_at + 4 * block], static_cast<std::int32_t>(chunk.size()));
    const bool leftover = plan.vl_lengths.empty() && lengths[block] != static_cast<std::uint32_t>(plan.blocksize);
    append_block(chunk, plan, filtered(plan, block_at(block), block == 0 ? Bytes() : block_at(0)), leftover);
    chunk.insert(chunk.end(), plan.slack, 0xee);
  }
  codec::store_le(&chunk[0x0c], static_cast<std::int32_t>(chunk.size()));
  return chunk;
}

Bytes extended_header(std::uint8_t flags, std::uint8_t typesize, std::int32_t nbytes, std::int32_t blocksize,
                      std::int32_t cbytes, std::uint8_t flags2, std::uint8_t blosc2_flags) {
  Bytes header{5, 1, static_cast<std::uint8_t>(flags | 0x05), typesize};
  append_le(header, nbytes);
  append_le(header, blocksize);
  append_le(header, cbytes);
  header.resize(32);
  header[0x1e] = flags2;
  header[0x1f] = blosc2_flags;
  return header;
}

Bytes assemble_memcpyed(const Bytes& plain, std::uint8_t version, std::size_t header_length, std::size_t payload_at) {
  const auto nbytes = static_cast<std::int32_t>(plain.size());
  const auto cbytes = static_cast<std::int32_t>(plain.size() + payload_at);
  Bytes chunk = extended_header(0x02, 4, nbytes, std::max(nbytes, 1), cbytes);
  chunk[0] = version;
  if (header_length == 16) chunk[2] = 0x02;
  chunk.resize(header_length);
  chunk.resize(payload_at, 0xee);
  chunk += plain;
  return chunk;
}

Bytes assemble_special(codec::SpecialValue value, std::uint8_t typesize, std::int32_t nbytes, const Bytes& repeated) {
  Bytes chunk =
      extended_header(0, typesize, nbytes, std::max(nbytes, 1), static_cast<std::int32_t>(32 + repeated.size()), 0,
                      static_cast<std::uint8_t>(static_cast<unsigned>(value) << 4));
  chunk += repeated;
  return chunk;
}

}  // namespace cframefs
