#include "fs/fuse/guard_process.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frame/io/lock_holders.h"
#include "fs/fuse/guard_messages.h"
#include "fs/fuse/helper_process.h"
#include "fs/fuse/program_output.h"
#include "fs/sandbox/syscall_filter.h"
#include "fs/util/log_sinks.h"
#include "fs/util/unmount.h"

namespace cframefs::fs {
namespace {

constexpr const char* kConnections = "/sys/fs/fuse/connections/";

std::string abort_file(const MountIdentity& mount) {
  return std::to_string(mount.device_minor) + "/abort";
}

bool write_abort(int directory, const std::string& path) {
  const int fd = openat(directory, path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write(fd, "1", 1) == 1;
  close(fd);
  return written;
}

/// Aborts the connection through fusectl: where it is mounted, or, for root, by a detached mount of its own.
bool abort_connection(const MountIdentity& mount) {
  if (write_abort(AT_FDCWD, kConnections + abort_file(mount))) return true;
  const int context = fsopen("fusectl", FSOPEN_CLOEXEC);
  if (context < 0) return false;
  int control = -1;
  if (fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0) control = fsmount(context, FSMOUNT_CLOEXEC, 0);
  close(context);
  const bool aborted = control >= 0 && write_abort(control, abort_file(mount));
  if (control >= 0) close(control);
  return aborted;
}

/// Aborts the connection and unmounts, if the mount still exists. Leaves alone a mount that has replaced or covers it.
void end_mount(const std::string& mountpoint, const MountIdentity& mount) {
  // Kept open, so that the mount's device number cannot be reused by another mount.
  const int root = open(mountpoint.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW);
  const bool uppermost = root >= 0 && lies_on(root, mount);
  if (!uppermost && !is_mounted(mount)) return;
  // As root one call does both. MNT_FORCE aborts even if the mount is in use.
  const std::string here = "/proc/self/fd/" + std::to_string(root);
  if (uppermost && umount2(here.c_str(), MNT_FORCE | MNT_DETACH) == 0) {
    log_warning(mountpoint + ": the daemon has ended without unmounting; its guard has unmounted it");
    return;
  }
  if (!abort_connection(mount)) {
    log_error(mountpoint + ": the daemon has ended, and readers may block forever: its guard cannot write " +
              kConnections + abort_file(mount) + "; is fusectl mounted?");
  }
  if (!uppermost) {
    log_error(mountpoint + ": the daemon has ended; its guard cannot unmount it, because another mount covers it");
  } else if (unmount_by_helper(mountpoint, Unmounting::lazy)) {
    log_warning(mountpoint + ": the daemon has ended without unmounting; its guard has unmounted it");
  } else {
    log_error(mountpoint + ": the daemon has ended, and its guard cannot unmount it");
  }
}

/// Unmounts while the daemon lives. Leaves alone a mount that has replaced or covers it. Returns true if it is
/// unmounted.
bool unmount_living(const std::string& mountpoint, const MountIdentity& mount, Unmounting how) {
  if (how == Unmounting::if_unused) {
    // A descriptor of the mount would make it busy.
    const auto uppermost = mount_at(mountpoint);
    if (!uppermost || *uppermost != mount) return false;
    return umount2(mountpoint.c_str(), UMOUNT_NOFOLLOW) == 0 || (errno == EPERM && unmount_by_helper(mountpoint, how));
  }
  const int root = open(mountpoint.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW);
  const bool uppermost = root >= 0 && lies_on(root, mount);
  const std::string here = "/proc/self/fd/" + std::to_string(root);
  const bool unmounted =
      uppermost && (umount2(here.c_str(), MNT_DETACH) == 0 || (errno == EPERM && unmount_by_helper(mountpoint, how)));
  if (root >= 0) close(root);
  return unmounted;
}

/// Opens the file that the daemon logs to.
codec::Result<int> open_log_of(const LogSettings& settings) {
  return open_log_file(settings.target == LogTarget::file ? settings.file : reserve_log_file());
}

/// Sends an answer, with a descriptor unless it is -1.
void answer(int messages, GuardAnswer answer, int descriptor) {
  iovec data{&answer, sizeof answer};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  static_cast<void>(sendmsg(messages, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

/// The mount, and what the guard has learned from messages.
struct State {
  const std::string& mountpoint;
  const GuardDuties& duties;
  std::optional<MountIdentity> mount;
  int refused_call = -1;  // as in GuardMessage
  bool is_over = false;
  bool is_dismissed = false;
};

/// Starts a process that runs the program of the duties, and returns the pipe that its end comes from; -1 and errno.
int start_program(int messages, const State& state) {
  std::array<int, 2> pipe = {-1, -1};
  if (!state.duties.run_program) errno = ENOENT;
  if (!state.duties.run_program || pipe2(pipe.data(), O_CLOEXEC) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    // Its child is reaped by init.
    if (fork() != 0) _exit(0);
    close(messages);
    close(pipe[0]);
    write_output(pipe[1], state.duties.run_program());
    _exit(0);
  }
  close(pipe[1]);
  while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return pipe[0];
}

/// Opens what a request names; -1 and errno if that cannot be had.
int open_requested(int messages, const GuardMessage& request, const State& state) {
  if (request.news == GuardNews::run_program) return start_program(messages, state);
  if (request.news == GuardNews::open_file) {
    errno = EACCES;
    const auto& files = state.duties.files;
    // Opening a FIFO must not wait for a writer.
    return request.file < files.size() ? open(files[request.file].c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
                                       : -1;
  }
  const auto opened = open_log_of(state.duties.log);
  if (opened) return *opened;
  errno = opened.error().sys;
  return -1;
}

/// Does what a request asks for, and answers it.
void serve_request(int messages, const GuardMessage& request, const State& state) {
  GuardAnswer result;
  result.number = request.number;
  int descriptor = -1;
  if (request.news == GuardNews::open_log || request.news == GuardNews::open_file ||
      request.news == GuardNews::run_program) {
    descriptor = open_requested(messages, request, state);
    result.done = descriptor >= 0;
    if (!result.done) result.error = errno;
  } else if (request.news == GuardNews::examine_locks) {
    struct stat file {};
    file.st_dev = request.device;
    file.st_ino = request.inode;
    result.done = frame::only_readers_lock(file);
  } else if (state.mount) {
    const bool unused = request.news == GuardNews::unmount_unused;
    result.done = unmount_living(state.mountpoint, *state.mount, unused ? Unmounting::if_unused : Unmounting::lazy);
  }
  answer(messages, result, descriptor);
  if (descriptor >= 0) close(descriptor);
}

/// Takes all pending messages. Returns false if no more will come.
bool take_messages(int messages, State& state) {
  for (;;) {
    GuardMessage message;
    const ssize_t got = recv(messages, &message, sizeof message, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof message) return got < 0 && errno == EAGAIN;
    switch (message.news) {
      case GuardNews::mounted:
        state.mount = message.mount;
        break;
      case GuardNews::released:
        state.refused_call = message.refused_call;
        state.is_over = true;
        break;
      case GuardNews::dismissed:
        state.is_dismissed = true;
        break;
      case GuardNews::unmount_unused:
      case GuardNews::unmount:
      case GuardNews::open_log:
      case GuardNews::examine_locks:
      case GuardNews::open_file:
      case GuardNews::run_program:
        serve_request(messages, message, state);
        break;
    }
  }
}

}  // namespace

void guard_mount(const std::string& mountpoint, const GuardDuties& duties, int messages, int life) {
  leave_daemon({messages, life});
  State state{mountpoint, duties, {}};
  std::array<pollfd, 2> ends = {pollfd{messages, POLLIN, 0}, pollfd{life, POLLIN, 0}};
  while (!state.is_over && !state.is_dismissed) {
    if (poll(ends.data(), ends.size(), -1) < 0) continue;
    const bool daemon_ended = ends[1].revents != 0;
    if (!take_messages(messages, state)) ends[0].fd = -1;
    state.is_over = state.is_over || daemon_ended;
  }
  if (!state.is_dismissed && state.mount) {
    static_cast<void>(log_to(duties.log));
    if (state.refused_call >= 0)
      log_error(mountpoint + ": the sandbox has ended the daemon, because it made the system call " +
                name_of_call(state.refused_call));
    end_mount(mountpoint, *state.mount);
  }
  _exit(0);
}

}  // namespace cframefs::fs
