#include "fs/fuse/shutdown_handler.h"

#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "fs/fuse/fuse_requests.h"

namespace cframefs::fs {
namespace {

constexpr char kStop = 's';
constexpr char kEnded = 'e';
// Interval of repeated interrupts, in ms: a thread that is about to wait misses an interrupt.
constexpr int kAgainMs = 20;

std::atomic<int> signal_pipe{-1};  // the handler writes to this descriptor

void on_stop(int /*signal*/) {
  const int why = errno;
  static_cast<void>(::write(signal_pipe.load(), &kStop, 1));
  errno = why;
}

void on_interrupt(int /*signal*/) {}

}  // namespace

/// Installs the handler, except for a signal that the parent process has set to be ignored, as libfuse does.
void ShutdownHandler::catch_signal(std::size_t which) {
  const int signal = kSignals[which];
  struct sigaction before {};
  sigaction(signal, nullptr, &before);
  if (before.sa_handler != SIG_DFL && signal != SIGUSR1) return;
  struct sigaction action {};
  action.sa_handler = signal == SIGPIPE ? SIG_IGN : signal == SIGUSR1 ? on_interrupt : on_stop;
  caught_[which] = sigaction(signal, &action, nullptr) == 0;
}

codec::Result<void> ShutdownHandler::start() {
  if (pipe2(pipe_.data(), O_CLOEXEC) != 0) return codec::io_error(errno, "pipe");
  // A handler must not block when many signals fill the pipe.
  fcntl(pipe_[1], F_SETFL, O_NONBLOCK);
  signal_pipe = pipe_[1];
  for (std::size_t i = 0; i < kSignals.size(); ++i)
    catch_signal(i);
  watcher_ = std::thread([this] { watch(); });
  return {};
}

void ShutdownHandler::watch() {
  char what = 0;
  ssize_t got = 0;
  do {
    got = ::read(pipe_[0], &what, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1 || what != kStop) return;
  flush_dirty_pages_();
  fuse_session_exit(session_);
  do {
    interrupt_();
    pollfd end{pipe_[0], POLLIN, 0};
    if (poll(&end, 1, kAgainMs) <= 0) continue;
    static_cast<void>(::read(pipe_[0], &what, 1));
  } while (what != kEnded);
}

void ShutdownHandler::finish() {
  if (!watcher_.joinable()) return;
  // Blocking is safe: watch() empties a pipe that signals have filled.
  fcntl(pipe_[1], F_SETFL, 0);
  static_cast<void>(::write(pipe_[1], &kEnded, 1));
  watcher_.join();
  // A second signal must not end the daemon while it commits data.
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (caught_[i]) sigaction(kSignals[i], &ignored, nullptr);
  }
  signal_pipe = -1;
  ::close(pipe_[0]);
  ::close(pipe_[1]);
}

}  // namespace cframefs::fs
