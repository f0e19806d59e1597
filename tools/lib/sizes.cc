#include "tools/lib/sizes.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace cframefs::tools {

using codec::invalid;
using codec::Result;

namespace {

constexpr std::string_view kUnits = "KMGT";
constexpr double kMaxSeconds = 1e9;  // so that nanoseconds fit into 64 bits
constexpr const char* kSizeSyntax = "must be a number of bytes, such as 4096, 64K, 1M or 2G";

}  // namespace

Result<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return invalid("does not fit into 64 bits");
  if (error != std::errc{} || end != text.data() + text.size()) return invalid("must be a number");
  return value;
}

Result<std::uint64_t> parse_size(std::string_view text) {
  if (text.ends_with("iB")) {
    text.remove_suffix(2);
    if (text.empty() || (text.back() >= '0' && text.back() <= '9')) return invalid(kSizeSyntax);
  }
  unsigned shift = 0;
  if (!text.empty()) {
    const char last =
        text.back() >= 'a' && text.back() <= 'z' ? static_cast<char>(text.back() - 'a' + 'A') : text.back();
    if (const auto unit = kUnits.find(last); unit != std::string_view::npos) {
      shift = 10 * (static_cast<unsigned>(unit) + 1);
      text.remove_suffix(1);
    }
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return invalid("must be less than 2^64 bytes");
  if (error != std::errc{} || end != text.data() + text.size()) return invalid(kSizeSyntax);
  if (value > (UINT64_MAX >> shift)) return invalid("must be less than 2^64 bytes");
  return value << shift;
}

Result<std::uint64_t> parse_size_or_auto(std::string_view text, std::uint64_t most) {
  if (text == "auto") return 0;
  auto size = parse_size(text);
  if (!size) return invalid(size.error().reason + ", or auto");
  if (*size == 0 || *size > most) return invalid("must be auto or between 1 byte and " + human_size(most));
  return size;
}

Result<double> parse_seconds(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value < 0) {
    return invalid("must be a number of seconds, such as 5 or 0.5");
  }
  if (value > kMaxSeconds) return invalid("must be at most 1000000000 seconds");
  return value;
}

std::string human_size(std::uint64_t bytes) {
  static constexpr std::array<const char*, 7> kNames = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  unsigned unit = 0;
  while (unit + 1 < kNames.size() && (bytes >> (10 * (unit + 1))) != 0)
    ++unit;
  const std::uint64_t one = std::uint64_t{1} << (10 * unit);
  if (bytes % one == 0) return std::to_string(bytes / one) + " " + kNames[unit];
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", static_cast<double>(bytes) / static_cast<double>(one), kNames[unit]);
  return text;
}

std::string exact_size(std::uint64_t bytes) {
  std::string text = human_size(bytes);
  if (bytes >= 1024) text += " (" + std::to_string(bytes) + " bytes)";
  return text;
}

}  // namespace cframefs::tools
