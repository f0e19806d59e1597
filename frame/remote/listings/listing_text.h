// Text of listings: names of entries, percent-encoded names as servers write them, and the dates of ListObjectsV2.
//
// Thread safety: functions only. Ownership: values. Errors: nullopt for text of another form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cframefs::frame {

constexpr std::size_t kMostNameBytes = 255;  // of one component of a path, as on Linux

/// Returns whether a directory of a POSIX tree can hold the name: not "", ".", "..", no '/' or NUL, at most 255 bytes.
bool is_entry_name(std::string_view name);

enum class PlusSign : std::uint8_t { is_itself, is_space };

/// Returns the text with each %XX replaced by its byte. A '%' that no two hexadecimal digits follow stays, because some
/// servers do not encode it; percent_decode() refuses it.
std::string decoded_name(std::string_view text, PlusSign plus = PlusSign::is_itself);

/// Returns the seconds since 1970 of a date such as "2024-02-29T12:00:00.000Z"; a fraction is dropped.
std::optional<std::int64_t> seconds_of_iso_date(std::string_view text);

}  // namespace cframefs::frame
