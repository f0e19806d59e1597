// Ends a session on SIGTERM or SIGINT, after the kernel has written its dirty pages to the daemon: data that is only in
// those pages (shared maps; all writes with writeback=on) would be lost with the mount.
//
// The handlers are installed unless the parent process has set the signal to be ignored. They only wake a thread, which
// calls `flush_dirty_pages` while the session still serves, ends the session, and then calls `interrupt` until
// finish(). Thread safety: start() and finish() by the thread that runs the session's loop; one object at a time in a
// process, because signal handlers belong to the process. Ownership: borrows the session. Errors: io.
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
      : session_(session), flush_dirty_pages_(std::move(flush_dirty_pages)), interrupt_(std::move(interrupt)) {}
  ~ShutdownHandler() { finish(); }
  ShutdownHandler(const ShutdownHandler&) = delete;
  ShutdownHandler& operator=(const ShutdownHandler&) = delete;

  codec::Result<void> start();
  /// Called when the loop has ended. Ignores the caught signals from then on.
  void finish();

 private:
  void catch_signal(std::size_t which);
  void watch();

  // SIGUSR1 interrupts waiting service threads; it is caught even if the parent process ignores it.
  static constexpr std::array<int, 4> kSignals = {SIGTERM, SIGINT, SIGUSR1, SIGPIPE};

  fuse_session* const session_;
  const std::function<void()> flush_dirty_pages_;
  const std::function<void()> interrupt_;
  std::array<bool, kSignals.size()> caught_{};
  std::array<int, 2> pipe_ = {-1, -1};
  std::thread watcher_;
};

}  // namespace cframefs::fs
