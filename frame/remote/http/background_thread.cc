#include "frame/remote/http/background_thread.h"

#include <cerrno>
#include <csignal>
#include <exception>
#include <utility>

namespace cframefs::frame {

codec::Result<std::thread> start_background_thread(std::function<void()> body) {
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT})
    sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  codec::Result<std::thread> started;
  try {
    started = std::thread(std::move(body));
  } catch (const std::exception&) {  // no memory, or too many threads
    started = codec::io_error(EAGAIN, "start a thread");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace cframefs::frame
