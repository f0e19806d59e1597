#include "fs/fuse/init_answer.h"

#include <algorithm>
#include <cstring>

#include <linux/fuse.h>

namespace cframefs::fs {
namespace {

// The headers of the oldest release that this is built on lack them: FUSE_PASSTHROUGH in the second word of flags, and
// fuse_init_out::max_stack_depth.
constexpr std::uint32_t kTakesBacking = 1U << 5U;
constexpr std::size_t kMaxStackDepth = offsetof(fuse_init_out, flags2) + sizeof(fuse_init_out::flags2);
// The depth of this mount: backing files lie on filesystems that are not stacked on others. With more, overlayfs could
// not be stacked on this mount.
constexpr std::uint32_t kDepth = 1;

std::uint32_t word_at(const iovec& part, std::size_t place) {
  std::uint32_t word = 0;
  std::memcpy(&word, static_cast<const char*>(part.iov_base) + place, sizeof word);
  return word;
}

void put_word(const iovec& part, std::size_t place, std::uint32_t word) {
  std::memcpy(static_cast<char*>(part.iov_base) + place, &word, sizeof word);
}

}  // namespace

void InitAnswer::note_request(const void* request, std::size_t length) {
  if (state_.load(std::memory_order_acquire) != State::awaited) return;
  fuse_in_header header{};
  fuse_init_in init{};
  // An old kernel sends a shorter fuse_init_in; its flags lie in the first 16 bytes.
  constexpr std::size_t kOldest = offsetof(fuse_init_in, flags) + sizeof init.flags;
  if (length < sizeof header + kOldest) return;
  std::memcpy(&header, request, sizeof header);
  if (header.opcode != FUSE_INIT) return;
  std::memcpy(&init, static_cast<const char*>(request) + sizeof header, std::min(length - sizeof header, sizeof init));
  offered_ = init.flags;
  if ((offered_ & FUSE_INIT_EXT) != 0) also_offered_ = init.flags2;
  state_.store(State::asked, std::memory_order_release);
}

ssize_t InitAnswer::send(int device, iovec* parts, int count) {
  if (state_.load(std::memory_order_acquire) != State::asked) return ::writev(device, parts, count);
  state_.store(State::answered, std::memory_order_release);
  // An answer of one part is an error.
  if (count == 2) complete(parts[1]);
  return ::writev(device, parts, count);
}

void InitAnswer::complete(iovec& answer) {
  constexpr std::size_t kFlags = offsetof(fuse_init_out, flags);
  constexpr std::size_t kFlags2 = offsetof(fuse_init_out, flags2);
  if (answer.iov_len < kFlags + sizeof offered_) return;
  std::uint32_t flags = word_at(answer, kFlags) | (offered_ & FUSE_PARALLEL_DIROPS);
  // The kernel does not combine backing files with its write-back cache.
  if (wants_backing_ && (also_offered_ & kTakesBacking) != 0 && (flags & FUSE_WRITEBACK_CACHE) == 0 &&
      answer.iov_len >= kMaxStackDepth + sizeof kDepth) {
    flags |= FUSE_INIT_EXT;
    put_word(answer, kFlags2, word_at(answer, kFlags2) | kTakesBacking);
    put_word(answer, kMaxStackDepth, kDepth);
    has_backing_.store(true, std::memory_order_release);
  }
  put_word(answer, kFlags, flags);
}

}  // namespace cframefs::fs
