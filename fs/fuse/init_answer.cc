#include "fs/fuse/init_answer.h"

#include <cstring>

#include <linux/fuse.h>

namespace cframefs::fs {

void InitAnswer::note_request(const void* request, std::size_t length) {
  if (state_.load(std::memory_order_acquire) != State::awaited) return;
  fuse_in_header header{};
  fuse_init_in init{};
  // An old kernel sends a shorter fuse_init_in; its flags lie in the first 16 bytes.
  constexpr std::size_t kOldest = offsetof(fuse_init_in, flags) + sizeof init.flags;
  if (length < sizeof header + kOldest) return;
  std::memcpy(&header, request, sizeof header);
  if (header.opcode != FUSE_INIT) return;
  std::memcpy(&init, static_cast<const char*>(request) + sizeof header, kOldest);
  offered_ = init.flags;
  state_.store(State::asked, std::memory_order_release);
}

ssize_t InitAnswer::send(int device, iovec* parts, int count) {
  if (state_.load(std::memory_order_acquire) != State::asked) return ::writev(device, parts, count);
  state_.store(State::answered, std::memory_order_release);
  constexpr std::size_t kFlags = offsetof(fuse_init_out, flags);
  std::uint32_t flags = 0;
  // An answer of one part is an error.
  if (count == 2 && parts[1].iov_len >= kFlags + sizeof flags) {
    char* const at = static_cast<char*>(parts[1].iov_base) + kFlags;
    std::memcpy(&flags, at, sizeof flags);
    flags |= offered_ & FUSE_PARALLEL_DIROPS;
    std::memcpy(at, &flags, sizeof flags);
  }
  return ::writev(device, parts, count);
}

}  // namespace cframefs::fs
