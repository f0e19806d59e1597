#include "fs/util/service_manager.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace cframefs::fs {
namespace {

// A service manager that does not read must not stop the mount.
constexpr timeval kPatience = {5, 0};

}  // namespace

codec::Result<void> ServiceManager::notify(std::string_view state) const {
  if (address_.empty()) return {};
  const std::string what = std::string(state) + " to $NOTIFY_SOCKET '" + address_ + "'";
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  const bool is_abstract = address_.front() == '@';
  if (!is_abstract && address_.front() != '/') {
    return codec::invalid("cannot send " + what + ": the address must begin with '/' or '@'");
  }
  // A path ends with a zero byte.
  const std::size_t most = sizeof to.sun_path - (is_abstract ? 0 : 1);
  if (address_.size() > most) {
    return codec::invalid("cannot send " + what + ": the address has " + std::to_string(address_.size()) +
                          " bytes, at most " + std::to_string(most));
  }
  std::copy(address_.begin(), address_.end(), to.sun_path);
  if (is_abstract) to.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size() + (is_abstract ? 0 : 1));

  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return codec::io_error(errno, "send " + what);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  const auto* address = static_cast<const sockaddr*>(static_cast<const void*>(&to));
  const ssize_t sent = ::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL, address, length);
  const int why = errno;
  ::close(fd);
  if (sent < 0) return codec::io_error(why, "send " + what);
  return {};
}

std::string notify_socket() {
  const char* const address = std::getenv("NOTIFY_SOCKET");  // NOLINT(concurrency-mt-unsafe): see REQUIRES
  return address != nullptr ? address : "";
}

}  // namespace cframefs::fs
