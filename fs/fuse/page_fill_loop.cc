#include "fs/fuse/page_fill_loop.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fs/fuse/helper_process.h"
#include "fs/sandbox/capabilities.h"
#include "fs/sandbox/syscall_filter.h"
#include "fs/util/mount_info.h"

namespace cframefs::fs {
namespace {

using Clock = std::chrono::steady_clock;

// Files without a request for this long are closed: an open file keeps the space of a file that was removed.
constexpr std::chrono::milliseconds kIdle{200};
constexpr std::size_t kMaxFiles = 16;
// The kernel reads at most its read-ahead in one call.
constexpr std::uint64_t kStep = std::uint64_t{1} << 20;
// A table of mounts that changes all the time is read this often at most.
constexpr std::chrono::milliseconds kPause{5};

// From headers that older systems lack: open_tree(2), and the type of the handles that the kernel's FUSE makes.
constexpr int kOpenTreeClone = 1;
constexpr int kFuseHandle = 0x81;  // FILEID_INO64_GEN

/// Opens a file of the mount by its node number, which the kernel knows as long as a program uses the file. `root`: an
/// open directory of the mount. Returns -1 on error.
int open_node(int root, std::uint64_t node) {
  // The number, its upper half first, and the generation, which the adapter leaves at 0.
  const std::array<std::uint32_t, 3> name = {static_cast<std::uint32_t>(node >> 32), static_cast<std::uint32_t>(node),
                                             0};
  alignas(file_handle) std::array<unsigned char, sizeof(file_handle) + sizeof name> memory{};
  // The structure ends with an array of any length.
  auto* const handle = static_cast<file_handle*>(static_cast<void*>(memory.data()));
  handle->handle_bytes = sizeof name;
  handle->handle_type = kFuseHandle;
  std::memcpy(memory.data() + sizeof(file_handle), name.data(), sizeof name);
  return ::open_by_handle_at(root, handle, O_RDONLY | O_CLOEXEC);
}

/// The files of recent requests.
class FilledFiles {
 public:
  explicit FilledFiles(int root) : root_(root) {}
  ~FilledFiles() { close_idle(Clock::time_point::max()); }
  FilledFiles(const FilledFiles&) = delete;
  FilledFiles& operator=(const FilledFiles&) = delete;

  void fill(const PageFillRequest& request) {
    const int fd = open(request);
    if (fd < 0) return;
    for (std::uint64_t done = 0; done < request.length; done += kStep) {
      ::posix_fadvise(fd, static_cast<off_t>(request.at + done),
                      static_cast<off_t>(std::min(kStep, request.length - done)), POSIX_FADV_WILLNEED);
    }
  }
  bool are_open() const {
    return std::any_of(files_.begin(), files_.end(), [](const File& file) { return file.fd >= 0; });
  }
  /// Closes the files that have had no request since `time`.
  void close_idle(Clock::time_point time) {
    for (File& file : files_) {
      if (file.fd >= 0 && file.used <= time) close(file);
    }
  }

 private:
  struct File {
    int fd = -1;
    std::uint64_t node = 0;
    std::uint64_t state = 0;
    Clock::time_point used;
  };

  static void close(File& file) {
    ::close(file.fd);
    file = {};
  }
  int open(const PageFillRequest& request) {
    File* oldest = files_.data();
    for (File& file : files_) {
      // A file of an older state reads that state: open(2) sees the current one.
      if (file.fd >= 0 && file.node == request.node && file.state != request.state) close(file);
      if (file.fd >= 0 && file.node == request.node) {
        file.used = Clock::now();
        return file.fd;
      }
      if (file.used < oldest->used) oldest = &file;
    }
    if (oldest->fd >= 0) close(*oldest);
    const int fd = open_node(root_, request.node);
    if (fd >= 0) *oldest = {fd, request.node, request.state, Clock::now()};
    return fd;
  }

  const int root_;
  std::array<File, kMaxFiles> files_;
};

/// Returns an open directory: the root of a copy of the mount. Returns -1 if the mount is not at its place any more.
int open_copy(const std::string& mountpoint, const MountIdentity& mount) {
  if (mount_at(mountpoint) != mount) return -1;
  const auto tree =
      static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, mountpoint.c_str(), kOpenTreeClone | O_CLOEXEC));
  if (tree < 0) return -1;
  // Another mount may have covered this one meanwhile.
  const int root = mount_at(mountpoint) == mount ? ::openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  ::close(tree);
  return root;
}

/// Carries out all pending requests. Returns false if no more will come.
bool take_requests(int messages, FilledFiles& files) {
  for (;;) {
    PageFillRequest request;
    const ssize_t got = ::recv(messages, &request, sizeof request, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof request) return got < 0 && errno == EAGAIN;
    files.fill(request);
  }
}

}  // namespace

void fill_pages(const std::string& mountpoint, int messages, bool is_filtered) {
  leave_daemon({messages});
  MountIdentity mount;
  ssize_t got = 0;
  do {
    got = ::recv(messages, &mount, sizeof mount, 0);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof mount) return;
  const int root = open_copy(mountpoint, mount);
  // Reports changes of the table of mounts (proc_pid_mountinfo(5)).
  const int mounts = ::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  if (root < 0 || mounts < 0 || !is_mounted(mount)) return;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !keep_capability_to_open()) return;
  if (is_filtered && !filter_page_filler()) return;
  FilledFiles files(root);
  std::array<pollfd, 2> events = {pollfd{messages, POLLIN, 0}, pollfd{mounts, POLLPRI, 0}};
  for (;;) {
    const int count = ::poll(events.data(), events.size(), files.are_open() ? static_cast<int>(kIdle.count()) : -1);
    if (count < 0 && errno != EINTR) return;
    files.close_idle(Clock::now() - kIdle);
    if (count <= 0) continue;
    if (events[1].revents != 0) {
      if (!is_mounted(mount)) return;
      ::poll(nullptr, 0, static_cast<int>(kPause.count()));
    }
    if (events[0].revents != 0 && !take_requests(messages, files)) return;
  }
}

}  // namespace cframefs::fs
