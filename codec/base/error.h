// What went wrong, as a value.
//
// Errors travel as values (Result<T>) through codec, frame and fs; only the FUSE adapter turns them into an errno, by
// the one table in fs/util/errno_table.h. The kinds are kept apart because users act on them differently: corruption is
// a damaged file, unsupported is a file we cannot read yet, io is the disk.
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
  unsupported,  // well-formed as far as can be told, but a codec, filter or version that this build cannot decode
  io,           // the system refused; `sys` holds its errno
  stale,        // what was opened has been changed or replaced by somebody else
  invalid,      // the caller asked for something that makes no sense (an offset past the end, a bad option)
};

struct Error {
  ErrorKind kind = ErrorKind::corruption;
  int sys = 0;         // errno of kind io, else 0
  std::string reason;  // what is wrong, half a sentence: "bstart 3 points past the chunk"

  // Where, as far as the layer that saw it knows; upper layers fill in what is missing.
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
/// `sys`: an errno value; `doing`: what was tried, such as "open" or "pread".
[[nodiscard]] Failure io_error(int sys, const std::string& doing);

/// One line for people: "PATH: chunk 3 at file offset 1234: REASON". Parts that are not known are left out.
std::string describe(const Error& error);

/// The word for a kind in logs and JSON: "damaged", "unsupported", "I/O error", "stale", "invalid".
const char* kind_name(ErrorKind kind);

}  // namespace cframefs::codec
