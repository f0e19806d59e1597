#include "fs/fuse/page_fill_process.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <system_error>

#include <sys/socket.h>
#include <unistd.h>

#include "fs/fuse/helper_process.h"
#include "fs/fuse/page_fill_loop.h"

namespace cframefs::fs {
namespace {

bool has_other_threads() {
  std::error_code failed;
  const std::filesystem::directory_iterator threads("/proc/self/task", failed);
  return !failed && std::distance(begin(threads), end(threads)) > 1;
}

}  // namespace

PageFillProcess::~PageFillProcess() {
  if (messages_ >= 0) ::close(messages_);
}

codec::Result<void> PageFillProcess::start(const std::string& mountpoint, bool is_filtered) {
  if (::geteuid() != 0) return codec::io_error(EPERM, "copy the mount");
  if (has_other_threads()) return codec::io_error(EBUSY, "fork", "other threads run");
  std::array<int, 2> messages = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, messages.data()) != 0)
    return codec::io_error(errno, "socketpair");
  auto started = start_helper("cframefs-pages", "cframefs: page cache of " + mountpoint,
                              [&] { fill_pages(mountpoint, messages[1], is_filtered); });
  ::close(messages[1]);
  if (!started) {
    ::close(messages[0]);
    return started;
  }
  messages_ = messages[0];
  return {};
}

void PageFillProcess::mounted(const MountIdentity& mount) const {
  if (messages_ >= 0) static_cast<void>(::send(messages_, &mount, sizeof mount, MSG_NOSIGNAL | MSG_DONTWAIT));
}

bool PageFillProcess::fill(NodeId node, std::uint64_t state, std::uint64_t at, std::uint64_t length) {
  if (messages_ < 0) return false;
  const PageFillRequest request{node, state, at, length};
  return ::send(messages_, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof request;
}

}  // namespace cframefs::fs
