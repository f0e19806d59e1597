// The request that a service thread answers. Another thread answers it early when the caller no longer waits: a program
// that is killed, or interrupted with Ctrl-C, ends before the work is done.
//
//          start()           claim(), begin()
//   none ─────────▶ pending ─────────────────────▶ claimed     its own thread answers; end(): pending again
//    ▲                │  ▲
//    │        look()  ▼  │ the caller still waits
//    │              examined ──▶ abandoned                     it has been answered: EINTR
//    └─────── finish() ──────────────┘
//
// The work of an abandoned request goes on until it next calls is_waited_for() or begin(), or to its end. For the
// kernel the request is answered, so it may release the handles; they are kept until finish().
//
// Part of the adapter. Thread safety: look() by one thread; everything else by the thread that answers. Ownership:
// none.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include <sys/types.h>

#include "fs/caller/acting_as.h"
#include "fs/write/change_permit.h"

struct fuse_req;

namespace cframefs::fs {

class FuseAdapter;

/// When a request may be answered before its work is done.
enum class Abandon : std::uint8_t {
  never,
  when_ending,      // if a signal ends the caller, which then cannot see the answer
  when_interrupted  // also if the caller handles a SIGINT: EINTR leaves the outcome open
};

/// What the first arguments of a request name.
enum class Subject : std::uint8_t {
  entry,  // an entry of a directory: a node and a name
  node    // a node; the text behind it is another name, or the bytes of a write, which no NUL ends
};

class PendingRequest final : public ChangePermit {
 public:
  using Handles = std::array<std::uint64_t, 2>;  // as the kernel has them; 0: none

  /// Returns the request of the calling thread; nullptr if the thread answers no requests.
  static PendingRequest* current();
  /// Sets what current() returns on the calling thread.
  static void set_current(PendingRequest* pending);

  /// The node or entry that a request is about, for messages.
  struct Target {
    std::uint64_t node = 0;      // 0: none
    const char* name = nullptr;  // of an entry of `node`; valid while the handler runs
  };

  void start(fuse_req* request, Abandon abandon, const Handles& handles, const Target& target);
  /// Returns true if this thread must answer the request; false if it has been answered and is freed.
  bool claim();
  /// Begins a change: the request cannot be abandoned until end(). EINTR: it has been abandoned already.
  codec::Result<void> begin() override;
  void end() override;
  /// Ends the request: the handles of an abandoned request may be released.
  void finish();
  /// The adapter and the caller of the request, also after it was answered.
  FuseAdapter& adapter() const { return *adapter_; }
  const Caller& caller() const { return caller_; }
  const Target& target() const { return target_; }
  /// Sets what waits_for_disk() calls.
  void on_disk_wait(std::function<void()> call) { on_disk_wait_ = std::move(call); }
  /// Called before the work waits for the disk, so that other threads take requests meanwhile.
  void waits_for_disk() const {
    if (on_disk_wait_) on_disk_wait_();
  }
  /// Returns true if the caller still waits. Reads /proc at most every kAskPause, and never for a younger request,
  /// because this costs more than decoding a small block.
  bool is_waited_for();

  /// Answers the request with EINTR if its caller no longer waits.
  void look();

 private:
  using Clock = std::chrono::steady_clock;
  enum class State : std::uint8_t { none, pending, examined, claimed, abandoned };

  static constexpr std::chrono::milliseconds kAskPause{2};

  bool is_forsaken() const;

  std::atomic<State> state_{State::none};
  // Written by start() alone, and read while the state is not `none`.
  fuse_req* request_ = nullptr;
  FuseAdapter* adapter_ = nullptr;
  Caller caller_{};
  Abandon abandon_ = Abandon::never;
  Handles handles_{};
  Target target_{};               // used by the answering thread only
  Clock::time_point asked_at_{};  // the last time when the caller was known to wait; used by the answering thread only
  std::function<void()> on_disk_wait_;  // set before the thread answers its first request
};

}  // namespace cframefs::fs
