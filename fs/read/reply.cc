#include "fs/read/reply.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace cframefs::fs {
namespace {

constexpr std::size_t kManyParts = 512;
// Never written, so all its pages are the system's zero page.
constexpr std::size_t kZeroBytes = std::size_t{1} << 20;
const std::array<std::uint8_t, kZeroBytes>& zero_bytes() {
  static std::array<std::uint8_t, kZeroBytes> zeros;
  return zeros;
}

}  // namespace

void Reply::clear() {
  parts_.clear();
  pins_.clear();
  buffers_.clear();
  size_ = 0;
  block_.reset();
}

void Reply::add_part(codec::ByteView bytes) {
  if (bytes.empty()) return;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): iovec has no const pointer; writev(2) does not write to it
  parts_.push_back(iovec{const_cast<std::uint8_t*>(bytes.data()), bytes.size()});
  size_ += bytes.size();
  block_.reset();
}

void Reply::add_zeros(std::uint64_t length) {
  while (length > 0) {
    const std::size_t step = std::min<std::uint64_t>(length, kZeroBytes);
    add_part(codec::ByteView(zero_bytes().data(), step));
    length -= step;
  }
}

void Reply::add(BlockCache::Pin pin, codec::ByteView bytes) {
  add_part(bytes);
  pin.note_served(bytes.size());
  pins_.push_back(std::move(pin));
}

void Reply::add(Buffer buffer, std::size_t length) {
  add_part(codec::ByteView(buffer.bytes().data(), length));
  buffers_.push_back(std::move(buffer));
}

void Reply::truncate(std::uint64_t size) {
  while (size_ > size) {
    iovec& last = parts_.back();
    const std::uint64_t surplus = std::min<std::uint64_t>(size_ - size, last.iov_len);
    last.iov_len -= surplus;
    size_ -= surplus;
    if (last.iov_len == 0) parts_.pop_back();
  }
}

void Reply::copy_to(std::uint8_t* out) const {
  for (const iovec& part : parts_) {
    std::memcpy(out, part.iov_base, part.iov_len);
    out += part.iov_len;
  }
}

void Reply::coalesce(BufferPool& pool) {
  if (parts_.size() <= kManyParts) return;
  const auto size = static_cast<std::size_t>(size_);
  Buffer joined = pool.get(size);
  copy_to(joined.bytes().data());
  clear();
  add(std::move(joined), size);
}

}  // namespace cframefs::fs
