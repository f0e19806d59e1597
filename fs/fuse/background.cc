#include "fs/fuse/background.h"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cframefs::fs {

codec::Result<void> ReadyPipe::open() {
  if (pipe2(ends_, O_CLOEXEC) != 0) return codec::io_error(errno, "pipe");
  return {};
}

void ReadyPipe::notify_parent() {
  const char ready = 1;
  static_cast<void>(::write(ends_[1], &ready, 1));
}

bool ReadyPipe::wait() {
  ::close(ends_[1]);
  char answer = 0;
  ssize_t got = 0;
  do {
    got = ::read(ends_[0], &answer, 1);
  } while (got < 0 && errno == EINTR);
  return got == 1;
}

void ReadyPipe::close_reader() {
  ::close(ends_[0]);
}

void reserve_stdio_fds() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= 2);
  if (fd > 2) ::close(fd);
}

void detach_from_terminal() {
  setsid();
  static_cast<void>(chdir("/"));
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  for (int fd = 0; fd <= 2; ++fd)
    dup2(null, fd);
  if (null > 2) ::close(null);
}

codec::Result<void> continue_in_child(ReadyPipe& ready) {
  constexpr int kEnded = 3;
  const pid_t child = fork();
  if (child < 0) return codec::io_error(errno, "go to the background");
  if (child == 0) {
    ready.close_reader();
    return {};
  }
  if (ready.wait()) _exit(0);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const bool has_said_why = WIFEXITED(status) && WEXITSTATUS(status) != 0;
  if (!has_said_why) std::fputs("cframefs: the daemon ended before the mount served; see the log\n", stderr);
  std::fflush(nullptr);
  _exit(has_said_why ? WEXITSTATUS(status) : kEnded);
}

}  // namespace cframefs::fs
