#include "frame/base/utf8_sanitize.h"

#include <cstdint>
#include <vector>

namespace cframefs::frame {

namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

bool is_continuation(std::uint8_t byte) {
  return (byte & 0xc0) == 0x80;
}

/// Returns true for C0, delete, and C1 in its two-byte UTF-8 form.
bool is_control(codec::ByteView sequence) {
  if (sequence.size() == 1) return sequence[0] < 0x20 || sequence[0] == 0x7f;
  return sequence.size() == 2 && sequence[0] == 0xc2 && sequence[1] < 0xa0;
}

}  // namespace

std::size_t utf8_length(codec::ByteView bytes) {
  const std::uint8_t lead = bytes[0];
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xc2 && lead < 0xe0   ? 2
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
  if (length == 0 || bytes.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(bytes[i])) return 0;
  }
  // The second byte shows overlong forms, surrogates and code points past U+10FFFF.
  const std::uint8_t second = bytes[1];
  if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second >= 0xa0) || (lead == 0xf0 && second < 0x90) ||
      (lead == 0xf4 && second >= 0x90)) {
    return 0;
  }
  return length;
}

bool is_plain_text(codec::ByteView bytes) {
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    if (length == 0) return false;
    const std::uint8_t first = bytes[0];
    if (is_control(bytes.first(length)) && first != '\t' && first != '\n' && first != '\r') return false;
    bytes = bytes.subspan(length);
  }
  return true;
}

std::string printable(std::string_view text) {
  const std::vector<std::uint8_t> copy(text.begin(), text.end());
  codec::ByteView bytes(copy);
  std::string shown;
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    if (length == 0 || is_control(bytes.first(length))) {
      for (std::size_t i = 0; i < (length == 0 ? 1 : length); ++i)
        shown += "\\x" + hex(bytes.subspan(i, 1));
    } else {
      shown.append(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    }
    bytes = bytes.subspan(length == 0 ? 1 : length);
  }
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
