// The request that a service thread answers, and which another thread answers in its place when the caller no longer
// waits: a program that is killed, or interrupted with Ctrl-C, does not stay until the work is done.
//
//          take()            claim(), begin()
//   none ─────────▶ pending ─────────────────────▶ claimed     its own thread answers; end(): pending again
//    ▲                │  ▲
//    │        look()  ▼  │ the caller still waits
//    │              examined ──▶ abandoned                     it has been answered: EINTR
//    └─────── finish() ──────────────┘
//
// The work of an abandoned request goes on until it next asks is_waited_for() or begins a change, or to its end. The
// kernel takes the request for answered and may release what it used; so the handles are kept until finish().
//
// Part of the adapter. Thread safety: look() by one thread; everything else by the thread that answers. Ownership:
// none.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include <sys/types.h>

#include "fs/caller/acting_as.h"
#include "fs/write/change_permit.h"

struct fuse_req;

namespace cframefs::fs {

class FuseAdapter;

/// Whose request may be answered before its work is done.
enum class Abandon : std::uint8_t {
  never,
  when_ending,      // of a caller that cannot see the answer, because a signal ends it
  when_interrupted  // and of one that handles a SIGINT: EINTR says that nothing can be told of the outcome
};

class PendingRequest final : public ChangePermit {
 public:
  using Handles = std::array<std::uint64_t, 2>;  // as the kernel has them; 0: none

  /// Of the thread that calls; null if it answers no requests.
  static PendingRequest* current();
  /// What current() gives to this thread from now on.
  static void set_current(PendingRequest* pending);

  void take(fuse_req* request, Abandon abandon, const Handles& handles);
  /// False: the request has been answered, and is gone. Otherwise this thread is to answer it.
  bool claim();
  /// From here on the request is not abandoned, until what it changes is done.
  codec::Result<void> begin() override;
  void end() override;
  /// The work is done, and the handles of an abandoned request may be released.
  void finish();
  /// Of the request, also when it is gone.
  FuseAdapter& adapter() const { return *adapter_; }
  const Caller& caller() const { return caller_; }
  /// Whether the caller still is there. Asks the system, but no more often than every kAskPause, and not at all about a
  /// request that is younger: that costs more than to decode a small block.
  bool is_waited_for();

  /// Answers the request if its caller no longer waits.
  void look();

 private:
  using Clock = std::chrono::steady_clock;
  enum class State : std::uint8_t { none, pending, examined, claimed, abandoned };

  static constexpr std::chrono::milliseconds kAskPause{2};

  bool is_forsaken() const;

  std::atomic<State> state_{State::none};
  // Written by take() alone, and read while the state is not `none`.
  fuse_req* request_ = nullptr;
  FuseAdapter* adapter_ = nullptr;
  Caller caller_{};
  Abandon abandon_ = Abandon::never;
  Handles handles_{};
  Clock::time_point asked_at_{};  // when it was last known that the caller is there; of the thread that answers
};

}  // namespace cframefs::fs
