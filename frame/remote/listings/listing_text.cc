#include "frame/remote/listings/listing_text.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace cframefs::frame {

namespace {

bool is_decimal_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Returns the value of a hexadecimal digit, -1 for another character.
int value_of_hex_digit(char c) {
  if (is_decimal_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

bool is_entry_name(std::string_view name) {
  constexpr std::string_view kForbidden("/\0", 2);
  return !name.empty() && name != "." && name != ".." && name.size() <= kMostNameBytes &&
         name.find_first_of(kForbidden) == std::string_view::npos;
}

std::string decoded_name(std::string_view text, PlusSign plus) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '%' && text.size() - at > 2) {
      const int high = value_of_hex_digit(text[at + 1]);
      const int low = value_of_hex_digit(text[at + 2]);
      if (high >= 0 && low >= 0) {
        decoded.push_back(static_cast<char>(high * 16 + low));
        at += 2;
        continue;
      }
    }
    decoded.push_back(c == '+' && plus == PlusSign::is_space ? ' ' : c);
  }
  return decoded;
}

std::optional<std::int64_t> seconds_of_iso_date(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  if (text.size() <= kForm.size() || text.back() != 'Z') return std::nullopt;
  std::array<int, 6> fields{};  // year, month, day, hours, minutes, seconds
  std::size_t field = 0;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] != 'd') {
      if (text[i] != kForm[i]) return std::nullopt;
      ++field;
      continue;
    }
    if (!is_decimal_digit(text[i])) return std::nullopt;
    fields[field] = fields[field] * 10 + (text[i] - '0');
  }
  const std::string_view fraction = text.substr(kForm.size(), text.size() - kForm.size() - 1);
  if (!fraction.empty() &&
      (fraction.front() != '.' || !std::all_of(fraction.begin() + 1, fraction.end(), is_decimal_digit))) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(fields[0]),
                                         std::chrono::month(static_cast<unsigned>(fields[1])),
                                         std::chrono::day(static_cast<unsigned>(fields[2]))};
  // 60: a leap second.
  if (!date.ok() || fields[3] > 23 || fields[4] > 59 || fields[5] > 60) return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch();
  return std::int64_t{days.count()} * 86400 + std::int64_t{fields[3]} * 3600 + std::int64_t{fields[4]} * 60 + fields[5];
}

}  // namespace cframefs::frame
