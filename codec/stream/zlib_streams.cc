#include "codec/stream/zlib_streams.h"

#include <cerrno>
#include <memory>
#include <string>

#include <libdeflate.h>

namespace cframefs::codec {
namespace {

struct FreeInflater {
  void operator()(libdeflate_decompressor* inflater) const { libdeflate_free_decompressor(inflater); }
};
struct FreeDeflater {
  void operator()(libdeflate_compressor* deflater) const { libdeflate_free_compressor(deflater); }
};

struct DecoderState final : CodecState {
  const std::unique_ptr<libdeflate_decompressor, FreeInflater> inflater{libdeflate_alloc_decompressor()};
};
struct EncoderState final : CodecState {
  std::unique_ptr<libdeflate_compressor, FreeDeflater> deflater;
  int level = 0;
};

}  // namespace

Result<void> decode_zlib(StateSlot& slot, const StreamCodec&, ByteView stream, ByteSpan out) {
  libdeflate_decompressor* const inflater = state_in<DecoderState>(slot).inflater.get();
  if (inflater == nullptr) return out_of_memory(slot, "zlib");
  // Given nullptr for the actual length, libdeflate fails unless the stream has exactly out.size() bytes.
  const libdeflate_result result =
      libdeflate_zlib_decompress(inflater, stream.data(), stream.size(), out.data(), out.size(), nullptr);
  switch (result) {
    case LIBDEFLATE_SUCCESS:
      return {};
    case LIBDEFLATE_SHORT_OUTPUT:
      return corrupt("zlib: decoded fewer than the expected " + std::to_string(out.size()) + " bytes");
    case LIBDEFLATE_INSUFFICIENT_SPACE:
      return corrupt("zlib: decoded more than the expected " + std::to_string(out.size()) + " bytes");
    case LIBDEFLATE_BAD_DATA:
      break;
  }
  return corrupt("zlib: corrupt stream");
}

Result<std::size_t> encode_zlib(StateSlot& slot, int level, const Dictionary*, ByteView plain, ByteSpan out) {
  auto& state = state_in<EncoderState>(slot);
  if (!state.deflater || state.level != level) {
    state.deflater.reset(libdeflate_alloc_compressor(level));
    state.level = level;
  }
  if (!state.deflater) return out_of_memory(slot, "zlib");
  return libdeflate_zlib_compress(state.deflater.get(), plain.data(), plain.size(), out.data(), out.size());
}

}  // namespace cframefs::codec
