// Parsing and formatting of numbers and sizes: "64K", "4.0 MiB".
//
// Thread safety: functions only. Errors: invalid; the reason says what is allowed, for use after the option's name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "codec/base/error.h"

namespace cframefs::tools {

/// Parses a number of bytes: digits, then at most one of K, M, G, T (powers of 1024, either case), then an optional
/// "iB".
codec::Result<std::uint64_t> parse_size(std::string_view text);

/// Parses a size from 1 to `most`; returns 0 for "auto".
codec::Result<std::uint64_t> parse_size_or_auto(std::string_view text, std::uint64_t most);

/// Parses a number of digits only.
codec::Result<std::uint64_t> parse_count(std::string_view text);

/// Parses a number of seconds, 0 to 1000000000, with an optional fraction.
codec::Result<double> parse_seconds(std::string_view text);

/// Returns "512 bytes", "64 KiB" or "1.5 MiB": exact for a multiple of the unit, else with one digit after the point.
std::string human_size(std::uint64_t bytes);

/// Returns human_size(), from 1 KiB on with the number of bytes: "1.5 MiB (1572865 bytes)".
std::string exact_size(std::uint64_t bytes);

}  // namespace cframefs::tools
