// Dates of HTTP headers (RFC 7231, 7.1.1.1), in the one form that servers may send: "Sun, 06 Nov 1994 08:49:37 GMT".
//
// The two obsolete forms are not read: a date that is not known is safe, a date that is read wrongly is not.
//
// Thread safety: pure functions. Ownership: none. Errors: nullopt for text that is no such date.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cframefs::frame {

/// Returns the seconds since 1970 of a date of the years 1970 to 9999. The weekday must be right, and no second is 60.
std::optional<std::int64_t> parse_http_date(std::string_view text);

/// Returns the text of a time that parse_http_date() returns.
std::string http_date(std::int64_t seconds);

}  // namespace cframefs::frame
