#include "codec/stream/snappy_streams.h"

#include <string>

#include <snappy.h>

namespace cframefs::codec {
namespace {

const char* chars(ByteView bytes) {
  return reinterpret_cast<const char*>(bytes.data());
}

}  // namespace

Result<void> decode_snappy(StateSlot&, const StreamCodec&, ByteView stream, ByteSpan out) {
  std::size_t plain = 0;
  if (!snappy::GetUncompressedLength(chars(stream), stream.size(), &plain) || plain != out.size()) {
    return corrupt("snappy: the stream does not claim the expected " + std::to_string(out.size()) + " bytes");
  }
  if (!snappy::RawUncompress(chars(stream), stream.size(), reinterpret_cast<char*>(out.data()))) {
    return corrupt("snappy: corrupt stream");
  }
  return {};
}

}  // namespace cframefs::codec
