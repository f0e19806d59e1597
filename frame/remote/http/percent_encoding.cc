#include "frame/remote/http/percent_encoding.h"

#include <optional>

namespace cframefs::frame {

namespace {

constexpr std::string_view kUpperDigits = "0123456789ABCDEF";

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

std::optional<unsigned> digit_value(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

}  // namespace

std::string percent_encode(std::string_view text, Slash slash) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c) || (c == '/' && slash == Slash::kept)) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kUpperDigits[byte >> 4U];
    encoded += kUpperDigits[byte & 15U];
  }
  return encoded;
}

codec::Result<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (c == '%') {
      const auto high = at + 1 < text.size() ? digit_value(text[at + 1]) : std::nullopt;
      const auto low = at + 2 < text.size() ? digit_value(text[at + 2]) : std::nullopt;
      if (!high || !low) {
        return codec::invalid("a '%' at byte " + std::to_string(at) +
                              " without two hexadecimal digits after it (write %25)");
      }
      c = static_cast<char>(*high * 16 + *low);
      at += 2;
    }
    if (c == '\0') return codec::invalid("a NUL byte");
    decoded += c;
  }
  return decoded;
}

}  // namespace cframefs::frame
