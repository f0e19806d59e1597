// Numbers as people type them and as people read them: "64K", "4.0 MiB".
//
// Thread safety: functions only. Errors: invalid, with half a sentence that says what was expected.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "codec/base/error.h"

namespace cframefs::tools {

/// Bytes: digits, then at most one of K, M, G, T (powers of 1024, either case), then an optional "iB".
codec::Result<std::uint64_t> parse_size(std::string_view text);

/// A size from 1 to `most`; 0 for "auto".
codec::Result<std::uint64_t> parse_size_or_auto(std::string_view text, std::uint64_t most);

/// Digits only.
codec::Result<std::uint64_t> parse_count(std::string_view text);

/// A number of seconds, zero to a thousand million, that may have a fraction.
codec::Result<double> parse_seconds(std::string_view text);

/// "512 bytes", "64 KiB", "1.5 MiB": exact where it is a whole number of the unit, else one digit after the point.
std::string human_size(std::uint64_t bytes);

/// human_size() and, where that hides something, the bytes: "1.5 MiB (1572865 bytes)".
std::string exact_size(std::uint64_t bytes);

}  // namespace cframefs::tools
