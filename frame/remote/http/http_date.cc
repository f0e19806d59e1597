#include "frame/remote/http/http_date.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace cframefs::frame {
namespace {

constexpr std::array<std::string_view, 7> kWeekdays = {"Thu", "Fri", "Sat", "Sun",
                                                       "Mon", "Tue", "Wed"};  // 1970-01-01 first
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::int64_t kDaySeconds = 86400;

bool is_leap_year(int year) {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int days_of_month(int year, int month) {
  constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 1 && is_leap_year(year) ? 29 : kDays.at(static_cast<std::size_t>(month));
}

/// Returns the days from 1970-01-01 to the first of January.
std::int64_t days_before_year(int year) {
  const auto leap_days = [](int before) { return (before - 1) / 4 - (before - 1) / 100 + (before - 1) / 400; };
  return std::int64_t{365} * (year - 1970) + leap_days(year) - leap_days(1970);
}

/// Returns the value of digits only, or -1.
int digits_value(std::string_view digits) {
  int value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

template <std::size_t kCount>
int place_in(const std::array<std::string_view, kCount>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

}  // namespace

std::optional<std::int64_t> parse_http_date(std::string_view text) {
  constexpr std::string_view kForm = "www, DD mmm YYYY hh:mm:ss GMT";
  if (text.size() != kForm.size() || text.substr(25) != " GMT") return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if ((kForm[i] == ' ' || kForm[i] == ',' || kForm[i] == ':') && text[i] != kForm[i]) return std::nullopt;
  }
  const int weekday = place_in(kWeekdays, text.substr(0, 3));
  const int day = digits_value(text.substr(5, 2));
  const int month = place_in(kMonths, text.substr(8, 3));
  const int year = digits_value(text.substr(12, 4));
  const int hour = digits_value(text.substr(17, 2));
  const int minute = digits_value(text.substr(20, 2));
  const int second = digits_value(text.substr(23, 2));
  if (weekday < 0 || month < 0 || year < 1970 || day < 1 || day > days_of_month(year, month)) return std::nullopt;
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return std::nullopt;
  std::int64_t days = days_before_year(year) + day - 1;
  for (int before = 0; before < month; ++before)
    days += days_of_month(year, before);
  if (days % 7 != weekday) return std::nullopt;
  return days * kDaySeconds + std::int64_t{hour} * 3600 + std::int64_t{minute} * 60 + second;
}

std::string http_date(std::int64_t seconds) {
  const std::int64_t days = seconds / kDaySeconds;
  const std::int64_t of_day = seconds % kDaySeconds;
  int year = 1970 + static_cast<int>(days / 366);  // the year, or earlier
  while (days_before_year(year + 1) <= days)
    ++year;
  std::int64_t day = days - days_before_year(year);
  int month = 0;
  while (day >= days_of_month(year, month))
    day -= days_of_month(year, month++);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kWeekdays.at(static_cast<std::size_t>(days % 7)),
                     day + 1, kMonths.at(static_cast<std::size_t>(month)), year, of_day / 3600, of_day / 60 % 60,
                     of_day % 60);
}

}  // namespace cframefs::frame
