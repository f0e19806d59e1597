#include "codec/bytedelta.h"

namespace cframefs::codec {

void undo_bytedelta(std::size_t planes, BytedeltaKind kind, ByteSpan block) {
  plain::undo_bytedelta(planes, kind, block);
}

namespace plain {

void undo_bytedelta(std::size_t planes, BytedeltaKind kind, ByteSpan block) {
  const std::size_t length = block.size() / planes;
  const std::size_t restart = kind == BytedeltaKind::restarted ? length / 16 * 16 : length;
  for (std::size_t plane = 0; plane < planes; ++plane) {
    const ByteSpan bytes = block.subspan(plane * length, length);
    std::uint8_t sum = 0;
    for (std::size_t i = 0; i < length; ++i) {
      if (i == restart) sum = 0;
      sum = static_cast<std::uint8_t>(sum + bytes[i]);
      bytes[i] = sum;
    }
  }
}

}  // namespace plain
}  // namespace cframefs::codec
