#include "tools/io.h"

#include <cerrno>
#include <vector>

#include <unistd.h>

namespace cframefs::tools {

void Output::print(std::string_view text) {
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  // A message that cannot be written has nowhere to be reported.
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

codec::Result<void> StringOutput::write(codec::ByteView bytes) {
  text.append(bytes.begin(), bytes.end());
  return {};
}

ExitStatus status_of(const codec::Error& error) {
  switch (error.kind) {
    case codec::ErrorKind::corruption:
    case codec::ErrorKind::unsupported:
    case codec::ErrorKind::stale:
      return data_at_fault;
    case codec::ErrorKind::invalid:
      return call_at_fault;
    case codec::ErrorKind::io:
      // A name that leads nowhere was mistyped; everything else the system refuses is its own affair.
      return error.sys == ENOENT || error.sys == ENOTDIR ? call_at_fault : system_at_fault;
  }
  return system_at_fault;
}

}  // namespace cframefs::tools
