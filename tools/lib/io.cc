#include "tools/lib/io.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cframefs::tools {

namespace {

constexpr int kStopInterval = 100;  // milliseconds between two checks of the stop flag

}  // namespace

void Output::print(std::string_view text) {
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  // Ignore: there is no place to report a lost message.
  static_cast<void>(write(bytes));
}

codec::Result<void> DescriptorOutput::write(codec::ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      continue;
    }
    if (errno != EINTR || stop_.load()) return codec::io_error(errno, "write");
  }
  return {};
}

codec::Result<std::size_t> DescriptorInput::read(codec::ByteSpan into) {
  std::size_t done = 0;
  while (done < into.size()) {
    // poll() with a timeout: a signal may arrive just before a read that blocks, or in another thread.
    struct pollfd waiting = {fd_, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, kStopInterval);
    if (stop_.load()) return codec::io_error(EINTR, "read");
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t got = ::read(fd_, into.data() + done, into.size() - done);
    if (got == 0) break;
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (errno != EINTR && errno != EAGAIN) {
      return codec::io_error(errno, "read");
    }
  }
  return done;
}

std::string DescriptorInput::path() const {
  struct stat status {};
  const bool is_file = ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
  return is_file && ::lseek(fd_, 0, SEEK_CUR) == 0 ? "/proc/self/fd/" + std::to_string(fd_) : std::string();
}

codec::Result<void> StringOutput::write(codec::ByteView bytes) {
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return {};
}

void ProgressShare::set(double part) {
  const auto now = static_cast<std::uint64_t>(static_cast<double>(bytes) * std::clamp(part, 0.0, 1.0));
  if (now <= counted) return;
  all.fetch_add(now - counted);
  counted = now;
}

ExitStatus status_of(const codec::Error& error) {
  switch (error.kind) {
    case codec::ErrorKind::corruption:
    case codec::ErrorKind::unsupported:
    case codec::ErrorKind::stale:
      return kDataError;
    case codec::ErrorKind::invalid:
      return kUsageError;
    case codec::ErrorKind::io:
      // A missing file counts as a mistyped name; other errors are system errors.
      return error.sys == ENOENT || error.sys == ENOTDIR ? kUsageError : kSystemError;
  }
  return kSystemError;
}

}  // namespace cframefs::tools
