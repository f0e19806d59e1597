#include "tools/cframe/cframe_program.h"

#include <atomic>
#include <csignal>
#include <string>
#include <vector>

#include <unistd.h>

#include "tools/cframe/cframe.h"
#include "tools/lib/frame_output.h"
#include "tools/lib/server_paths.h"

namespace cframefs::tools {
namespace {

std::atomic<bool> stop_requested = false;
std::atomic<int> stop_signal = SIGINT;  // the signal that requested the stop
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "a signal handler sets them");

void request_stop(int signal) {
  stop_signal.store(signal);
  stop_requested.store(true);
}

void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = request_stop;
  sigemptyset(&action.sa_mask);
  // Interrupted writes return (no SA_RESTART), and a second Ctrl-C ends the program at once.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    // A signal that the parent process ignores stays ignored: nohup, background jobs of a shell.
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
  // Ignored, so that a closed pipe gives EPIPE, and a file beyond RLIMIT_FSIZE gives EFBIG.
  action.sa_handler = SIG_IGN;
  action.sa_flags = 0;
  sigaction(SIGPIPE, &action, nullptr);
  sigaction(SIGXFSZ, &action, nullptr);
}

}  // namespace

int run_cframe_program(int argc, char** argv) {
  catch_signals();
  DescriptorOutput out(STDOUT_FILENO, stop_requested);
  DescriptorOutput err(STDERR_FILENO, stop_requested);
  DescriptorInput in(STDIN_FILENO, stop_requested);
  Io io{out, err, isatty(STDERR_FILENO) == 1, stop_requested, &in, isatty(STDOUT_FILENO) == 1};
  const int status = cframe_main({argv + 1, argv + argc}, io);
  close_buckets();
  close_servers();
  if (status == interrupted) {
    // End by the signal, so that the shell sees which signal ended the program.
    std::signal(stop_signal.load(), SIG_DFL);
    std::raise(stop_signal.load());
  }
  return status;
}

}  // namespace cframefs::tools
