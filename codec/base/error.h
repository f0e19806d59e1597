// Errors as values.
//
// Functions of codec, frame and fs return errors as values (Result<T>); only the FUSE adapter turns them into an errno,
// by the table in fs/util/errno_table.h. The kinds are separate because users act on them differently: corruption is a
// damaged file, unsupported is a file that this build cannot read, io is the disk.
//
// Thread safety: plain values. Ownership: an Error owns its text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace cframefs::codec {

enum class ErrorKind : std::uint8_t {
  corruption,   // the bytes contradict the format, or each other
  unsupported,  // well-formed as far as this build can tell, but it lacks the codec, filter or version
  io,           // a system call failed; `sys` holds its errno
  stale,        // another program has changed or replaced the opened file
  invalid,      // the caller passed an invalid argument (an offset past the end, a bad option)
};

struct Error {
  ErrorKind kind = ErrorKind::corruption;
  int sys = 0;         // errno of kind io, else 0
  std::string reason;  // what is wrong, without a location: "bstart 3 points past the chunk"

  // The location, as far as the layer that found the error knows it; upper layers fill in the rest.
  std::string path = {};
  std::optional<std::int64_t> chunk = std::nullopt;
  std::optional<std::uint64_t> file_offset = std::nullopt;
};

template <class T>
using Result = tl::expected<T, Error>;
using Failure = tl::unexpected<Error>;

[[nodiscard]] inline Failure corrupt(std::string reason) {
  return Failure(Error{ErrorKind::corruption, 0, std::move(reason)});
}
[[nodiscard]] inline Failure unsupported(std::string reason) {
  return Failure(Error{ErrorKind::unsupported, 0, std::move(reason)});
}
[[nodiscard]] inline Failure invalid(std::string reason) {
  return Failure(Error{ErrorKind::invalid, 0, std::move(reason)});
}
[[nodiscard]] inline Failure stale(std::string reason) {
  return Failure(Error{ErrorKind::stale, 0, std::move(reason)});
}
/// `sys`: an errno value. `doing`: the operation that failed, such as "open" or "pread". `why`: the cause, if it is
/// more than errno says: "open: Read-only file system (the mount has the option ro)".
[[nodiscard]] Failure io_error(int sys, const std::string& doing, const std::string& why = {});

/// Returns whether the error means that no file has the name.
bool is_missing(const Error& error);

/// Returns one line for users: "PATH: chunk 3 at file offset 1234: REASON". Omits unknown parts.
std::string describe(const Error& error);

/// Returns the name of a kind in logs and JSON: "damaged", "unsupported", "I/O error", "stale", "invalid".
const char* kind_name(ErrorKind kind);

}  // namespace cframefs::codec
