// Ends a session when a signal asks for it, but not before the kernel has handed over what programs have written: what
// lies in its pages alone (shared maps; anything with writeback=on) would be lost with the mount.
//
// SIGTERM and SIGINT are caught where the caller of the program does not ignore them. They only wake a thread, which
// calls `flush_dirty_pages` while the session goes on serving, and then ends the session: `interrupt` is called until
// finish(). Thread safety: start() and finish() by the thread that runs the session's loop; one object at a time in a
// process, for signal handlers are the process's. Ownership: borrows the session. Errors: io.
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "codec/base/error.h"

struct fuse_session;

namespace cframefs::fs {

class ShutdownHandler {
 public:
  ShutdownHandler(fuse_session* session, std::function<void()> flush_dirty_pages, std::function<void()> interrupt)
      : session_(session), hand_over_(std::move(flush_dirty_pages)), interrupt_(std::move(interrupt)) {}
  ~ShutdownHandler() { finish(); }
  ShutdownHandler(const ShutdownHandler&) = delete;
  ShutdownHandler& operator=(const ShutdownHandler&) = delete;

  codec::Result<void> start();
  /// The loop has ended. The signals that were caught are ignored from now on.
  void finish();

 private:
  void catch_signal(std::size_t which);
  void watch();

  // SIGUSR1 interrupts those who serve where they wait; it is caught whatever the caller made of it.
  static constexpr std::array<int, 4> kSignals = {SIGTERM, SIGINT, SIGUSR1, SIGPIPE};

  fuse_session* const session_;
  const std::function<void()> hand_over_;
  const std::function<void()> interrupt_;
  std::array<bool, kSignals.size()> caught_{};
  std::array<int, 2> pipe_ = {-1, -1};
  std::thread watcher_;
};

}  // namespace cframefs::fs
