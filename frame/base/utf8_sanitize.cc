#include "frame/base/utf8_sanitize.h"

#include <cstdint>

#include <utf8cpp/utf8.h>

namespace cframefs::frame {

namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// Returns true for C0, delete and C1.
bool is_control(std::uint32_t code_point) {
  return code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0);
}

/// Calls on_character(code point, its bytes) for each character, and on_invalid(byte) for each byte that is no part of
/// one.
template <class OnCharacter, class OnInvalid>
void for_each_character(std::string_view text, const OnCharacter& on_character, const OnInvalid& on_invalid) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    const char* const valid_end = utf8::find_invalid(at, end);
    while (at != valid_end) {
      const char* const begin = at;
      const std::uint32_t code_point = utf8::unchecked::next(at);
      on_character(code_point, std::string_view(begin, static_cast<std::size_t>(at - begin)));
    }
    if (at != end) on_invalid(*at++);
  }
}

void append_escaped(std::string& out, std::string_view bytes) {
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    out += "\\x";
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
}

}  // namespace

bool is_utf8(std::string_view text) {
  return utf8::is_valid(text.begin(), text.end());
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string valid;
  for_each_character(
      text, [&valid](std::uint32_t, std::string_view bytes) { valid += bytes; },
      [&valid](char) { valid += kReplacement; });
  return valid;
}

bool is_plain_text(codec::ByteView bytes) {
  if (!utf8::is_valid(bytes.begin(), bytes.end())) return false;
  for (auto at = bytes.begin(); at != bytes.end();) {
    const std::uint32_t c = utf8::unchecked::next(at);
    if (is_control(c) && c != '\t' && c != '\n' && c != '\r') return false;
  }
  return true;
}

std::string printable(std::string_view text) {
  std::string shown;
  for_each_character(
      text,
      [&shown](std::uint32_t c, std::string_view bytes) {
        if (is_control(c)) {
          append_escaped(shown, bytes);
        } else {
          shown += bytes;
        }
      },
      [&shown](char byte) { append_escaped(shown, std::string_view(&byte, 1)); });
  return shown;
}

std::string hex(codec::ByteView bytes) {
  std::string digits;
  digits.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    digits += kDigits[byte >> 4];
    digits += kDigits[byte & 15];
  }
  return digits;
}

}  // namespace cframefs::frame
