#include "frame/io/range_buffer.h"

#include <algorithm>

#include <fmt/core.h>

namespace cframefs::frame {

ByteView RangeBuffer::peek(FileOffset at, std::size_t size) const {
  ByteView best;
  for (const Window& window : windows_) {
    if (at.value < window.begin || at.value - window.begin >= window.bytes.size()) continue;
    const ByteView rest = ByteView(window.bytes).subspan(at.value - window.begin);
    if (rest.size() > best.size()) best = rest;
  }
  return best.first(std::min(best.size(), size));
}

Result<void> RangeBuffer::load(FileOffset at, std::size_t size) {
  if (at.value >= source_.size()) return {};
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, source_.size() - at.value));
  if (peek(at, size).size() == size) return {};
  Window window{at.value, std::vector<std::uint8_t>(size)};
  if (auto done = source_.read(at, window.bytes); !done) return done;
  windows_.push_back(std::move(window));
  return {};
}

Result<ByteView> RangeBuffer::get(FileOffset at, std::size_t size) {
  if (size == 0) return ByteView{};
  if (at.value > source_.size() || size > source_.size() - at.value) {
    return codec::corrupt(
        fmt::format("the file ends at byte {}, but {} bytes are needed at {}", source_.size(), size, at.value));
  }
  if (auto done = load(at, size); !done) return codec::Failure(done.error());
  return peek(at, size);
}

}  // namespace cframefs::frame
