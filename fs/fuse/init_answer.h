// Adds to the daemon's answer to FUSE_INIT what libfuse before 3.17 leaves out: the kernel need not hold back look-ups
// and listings of one directory while it waits for another of them (FUSE_PARALLEL_DIROPS; issue 861 of libfuse), and
// takes backing ids (FUSE_PASSTHROUGH; fs/kernel/backing_files.h).
//
//   awaited ──note_request(FUSE_INIT)──▶ asked ──send(its answer)──▶ answered
//
// Thread safety: all members may be called concurrently; the kernel sends nothing else before it has the answer.
// Ownership: values. Errors: -1 with errno, as writev(2).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <sys/types.h>
#include <sys/uio.h>

namespace cframefs::fs {

class InitAnswer {
 public:
  /// Has the answer tell the kernel that backing ids will be used. Called before the mount exists.
  void want_backing() { wants_backing_ = true; }
  /// Returns whether the kernel takes backing ids. REQUIRES: the answer was sent.
  bool has_backing() const { return has_backing_.load(std::memory_order_acquire); }
  /// Looks at a request that was read from the device.
  void note_request(const void* request, std::size_t length);
  /// Writes an answer to the device, completed if it is that of FUSE_INIT.
  ssize_t send(int device, iovec* parts, int count);

 private:
  enum class State : std::uint8_t { awaited, asked, answered };

  void complete(iovec& answer);

  std::atomic<State> state_{State::awaited};
  bool wants_backing_ = false;
  std::uint32_t offered_ = 0;       // flags of the kernel; written before `asked`
  std::uint32_t also_offered_ = 0;  // its second word of flags
  std::atomic<bool> has_backing_{false};
};

}  // namespace cframefs::fs
