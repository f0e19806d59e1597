// Carries out what signals ask of the daemon, and what the service loop finds due on an idle mount, on a thread of its
// own.
//
//   SIGTERM, SIGINT  end the session, after the kernel has written its dirty pages to the daemon: data that is only in
//                    those pages (shared maps; all writes with writeback=on) would be lost with the mount
//   SIGHUP           drop_caches      SIGUSR2  report
//   SIGUSR1          interrupts service threads that wait; used by the daemon itself
//   request()        release_memory, unmount_idle
//
// Signal handlers only set a bit and wake the thread. SIGTERM and SIGINT are left alone if the parent process has set
// them to be ignored. Ending the session: the thread calls `flush_dirty_pages` while the session still serves, ends the
// session, and then calls `interrupt` until finish().
//
// Thread safety: start() and finish() by the thread that runs the session's loop; request() by any thread between them.
// One object at a time in a process, because signal handlers belong to the process. Ownership: borrows the session.
// Errors: io.
#pragma once

#include <array>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include "codec/base/error.h"

struct fuse_session;

namespace cframefs::fs {

/// What the handler's thread does. None may wait for a signal.
struct SignalActions {
  std::function<void()> flush_dirty_pages;
  std::function<void()> interrupt;
  std::function<void()> drop_caches;
  std::function<void()> report;
  std::function<void()> release_memory;
  std::function<void()> unmount_idle;
};

class SignalHandler {
 public:
  enum class Request : unsigned {
    terminate = 1,
    interrupt = 2,
    drop_caches = 4,
    report = 8,
    release_memory = 16,
    unmount_idle = 32,
    end = 64
  };

  SignalHandler(fuse_session* session, SignalActions actions) : session_(session), actions_(std::move(actions)) {}
  ~SignalHandler() { finish(); }
  SignalHandler(const SignalHandler&) = delete;
  SignalHandler& operator=(const SignalHandler&) = delete;

  codec::Result<void> start();
  /// Makes the thread carry out a request. Async-signal-safe.
  static void request(Request what);
  /// Called when the loop has ended. Ignores the caught signals from then on. Returns the name of the signal that has
  /// ended the session; empty: none has.
  std::string finish();

 private:
  void catch_signal(std::size_t which);
  void watch();
  void carry_out(unsigned asked) const;
  void end_session();

  // SIGUSR1 is caught even if the parent process ignores it; so are SIGHUP and SIGUSR2, which end nothing.
  static constexpr std::array<int, 6> kSignals = {SIGTERM, SIGINT, SIGUSR1, SIGPIPE, SIGHUP, SIGUSR2};

  fuse_session* const session_;
  const SignalActions actions_;
  std::array<bool, kSignals.size()> caught_{};
  std::array<int, 2> pipe_ = {-1, -1};
  std::string ended_by_;
  std::thread watcher_;
};

}  // namespace cframefs::fs
