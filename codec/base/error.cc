#include "codec/base/error.h"

#include <cerrno>
#include <cstring>

namespace cframefs::codec {

Failure io_error(int sys, const std::string& doing, const std::string& why) {
  char buffer[128];
  // The GNU strerror_r may return a static string instead of filling the buffer.
  const char* text = strerror_r(sys, buffer, sizeof buffer);
  return Failure(Error{ErrorKind::io, sys, doing + ": " + text + (why.empty() ? "" : " (" + why + ")")});
}

bool is_missing(const Error& error) {
  return error.sys == ENOENT || error.sys == ENOTDIR;
}

std::string describe(const Error& error) {
  std::string line;
  if (!error.path.empty()) line += error.path + ": ";
  if (error.chunk) line += "chunk " + std::to_string(*error.chunk);
  if (error.file_offset) {
    line += (error.chunk ? " at file offset " : "file offset ") + std::to_string(*error.file_offset);
  }
  if (error.chunk || error.file_offset) line += ": ";
  return line + error.reason;
}

const char* kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::corruption:
      return "damaged";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::io:
      return "I/O error";
    case ErrorKind::stale:
      return "stale";
    case ErrorKind::invalid:
      return "invalid";
  }
  return "unknown";
}

}  // namespace cframefs::codec
