#include "fs/fuse/signal_handler.h"

#include <atomic>
#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "fs/fuse/fuse_requests.h"

namespace cframefs::fs {
namespace {

using Request = SignalHandler::Request;

// Interval of repeated interrupts, in ms: a thread that is about to wait misses an interrupt.
constexpr int kAgainMs = 20;

// Signal handlers belong to the process, and so does what they leave. They write to this descriptor.
std::atomic<int> signal_pipe{-1};
std::atomic<unsigned> requests{0};  // bits of Request
static_assert(std::atomic<unsigned>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

constexpr unsigned bit(Request what) {
  return static_cast<unsigned>(what);
}

bool has(unsigned set, Request what) {
  return (set & bit(what)) != 0;
}

void on_signal(int signal) {
  switch (signal) {
    case SIGTERM:
      return SignalHandler::request(Request::terminate);
    case SIGINT:
      return SignalHandler::request(Request::interrupt);
    case SIGHUP:
      return SignalHandler::request(Request::drop_caches);
    case SIGUSR2:
      return SignalHandler::request(Request::report);
    default:
      return;
  }
}

/// Waits until a request may have come, at most `timeout` ms (-1: without end), and returns all requests.
unsigned take_requests(int pipe, int timeout) {
  pollfd end{pipe, POLLIN, 0};
  if (poll(&end, 1, timeout) > 0) {
    std::array<char, 64> bytes{};
    static_cast<void>(::read(pipe, bytes.data(), bytes.size()));
  }
  return requests.exchange(0);
}

}  // namespace

void SignalHandler::request(Request what) {
  const int why = errno;
  requests.fetch_or(bit(what));
  // A full pipe is no loss: the thread will read, and then look at the bits.
  static_cast<void>(::write(signal_pipe.load(), "", 1));
  errno = why;
}

/// Installs the handler, except for a signal that would end the session and that the parent process has set to be
/// ignored, as libfuse does.
void SignalHandler::catch_signal(std::size_t which) {
  const int signal = kSignals[which];
  const bool ends = signal == SIGTERM || signal == SIGINT;
  struct sigaction before {};
  sigaction(signal, nullptr, &before);
  if (before.sa_handler != SIG_DFL && (ends || signal == SIGPIPE)) return;
  struct sigaction action {};
  if (signal == SIGPIPE) {
    action.sa_handler = SIG_IGN;
  } else {
    action.sa_handler = on_signal;
  }
  // SIGUSR1 is to interrupt calls, the others are not.
  action.sa_flags = signal == SIGUSR1 ? 0 : SA_RESTART;
  caught_[which] = sigaction(signal, &action, nullptr) == 0;
}

codec::Result<void> SignalHandler::start() {
  // A handler must not block when many signals fill the pipe.
  if (pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK) != 0) return codec::io_error(errno, "pipe");
  signal_pipe = pipe_[1];
  requests = 0;
  for (std::size_t i = 0; i < kSignals.size(); ++i)
    catch_signal(i);
  watcher_ = std::thread([this] { watch(); });
  return {};
}

void SignalHandler::watch() {
  for (;;) {
    const unsigned asked = take_requests(pipe_[0], -1);
    if (has(asked, Request::end)) return;
    if (has(asked, Request::terminate) || has(asked, Request::interrupt)) {
      ended_by_ = has(asked, Request::terminate) ? "SIGTERM" : "SIGINT";
      return end_session();
    }
    carry_out(asked);
  }
}

void SignalHandler::carry_out(unsigned asked) const {
  const auto act = [asked](Request what, const std::function<void()>& action) {
    if (has(asked, what)) try_in_memory(action);
  };
  act(Request::drop_caches, actions_.drop_caches);
  act(Request::report, actions_.report);
  act(Request::release_memory, actions_.release_memory);
  act(Request::unmount_idle, actions_.unmount_idle);
}

void SignalHandler::end_session() {
  actions_.flush_dirty_pages();
  fuse_session_exit(session_);
  do {
    actions_.interrupt();
  } while (!has(take_requests(pipe_[0], kAgainMs), Request::end));
}

std::string SignalHandler::finish() {
  if (!watcher_.joinable()) return ended_by_;
  request(Request::end);
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
  return ended_by_;
}

}  // namespace cframefs::fs
