#include "frame/numpy/python_literal.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <utility>

#include <utf8cpp/utf8.h>

namespace cframefs::frame {

namespace {

constexpr int kDeepestLiteral = 32;
constexpr char32_t kLastCodePoint = 0x10ffff;

bool is_surrogate(char32_t c) {
  return c >= 0xd800 && c <= 0xdfff;
}

/// Returns true for the characters beyond ASCII that str.isprintable() rejects: controls, separators, format
/// characters, private use. Unassigned code points are not covered.
bool is_unprintable(char32_t c) {
  struct Range {
    char32_t first, last;
  };
  static constexpr std::array<Range, 21> kRanges = {{
      {0x7f, 0xa0},        {0xad, 0xad},     {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},
      {0x70f, 0x70f},      {0x8e2, 0x8e2},   {0x1680, 0x1680},   {0x180e, 0x180e},   {0x2000, 0x200f},
      {0x2028, 0x202f},    {0x205f, 0x206f}, {0x3000, 0x3000},   {0xd800, 0xf8ff},   {0xfeff, 0xfeff},
      {0xfff0, 0xfffb},    {0xfffe, 0xffff}, {0x110bd, 0x110bd}, {0x1d173, 0x1d17a}, {0xe0000, 0xe00ff},
      {0xf0000, 0x10ffff},
  }};
  return std::any_of(kRanges.begin(), kRanges.end(),
                     [c](const Range& range) { return c >= range.first && c <= range.last; });
}

void append_hex(std::string& out, char32_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    out += "0123456789abcdef"[value >> shift & 0xf];
}

class Parser {
 public:
  explicit Parser(std::u32string_view text) : text_(text) {}

  std::optional<Literal> whole() {
    auto value = literal(0);
    skip_blanks();
    if (!value || at_ != text_.size()) return std::nullopt;
    return value;
  }

 private:
  char32_t peek() const { return at_ < text_.size() ? text_[at_] : U'\0'; }
  bool accept(char32_t wanted) {
    skip_blanks();
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  void skip_blanks() {
    while (peek() == U' ' || peek() == U'\t' || peek() == U'\n' || peek() == U'\r')
      ++at_;
  }
  bool accept_word(std::u32string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  std::optional<Literal> literal(int depth) {
    if (depth > kDeepestLiteral) return std::nullopt;
    skip_blanks();
    const char32_t first = peek();
    if (first == U'\'' || first == U'"') return string();
    if (first >= U'0' && first <= U'9') return number();
    if (accept_word(U"True")) return Literal{true};
    if (accept_word(U"False")) return Literal{false};
    if (accept(U'(')) return tuple(depth);
    if (accept(U'[')) return list(depth);
    if (accept(U'{')) return dictionary(depth);
    return std::nullopt;
  }

  /// Parses literals separated by commas, up to `end`. Sets `comma` to whether a comma follows the last one.
  std::optional<std::vector<Literal>> sequence(char32_t end, int depth, bool& comma) {
    std::vector<Literal> items;
    comma = true;
    while (!accept(end)) {
      if (!comma) return std::nullopt;
      auto item = literal(depth + 1);
      if (!item) return std::nullopt;
      items.push_back(std::move(*item));
      comma = accept(U',');
    }
    return items;
  }

  std::optional<Literal> tuple(int depth) {
    bool comma = false;
    auto items = sequence(U')', depth, comma);
    if (!items) return std::nullopt;
    // Without a comma, (x) is x, not a tuple.
    if (items->size() == 1 && !comma) return std::move(items->front());
    return Literal{Tuple{std::move(*items)}};
  }

  std::optional<Literal> list(int depth) {
    bool comma = false;
    auto items = sequence(U']', depth, comma);
    if (!items) return std::nullopt;
    return Literal{List{std::move(*items)}};
  }

  std::optional<Literal> dictionary(int depth) {
    Dictionary found;
    bool comma = true;
    while (!accept(U'}')) {
      if (!comma) return std::nullopt;
      auto key = literal(depth + 1);
      if (!key || !accept(U':')) return std::nullopt;
      auto value = literal(depth + 1);
      if (!value) return std::nullopt;
      found.keys.push_back(std::move(*key));
      found.values.push_back(std::move(*value));
      comma = accept(U',');
    }
    return Literal{std::move(found)};
  }

  std::optional<Literal> number() {
    std::uint64_t value = 0;
    for (; peek() >= U'0' && peek() <= U'9'; ++at_) {
      const std::uint64_t digit = peek() - U'0';
      if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) return std::nullopt;
      value = value * 10 + digit;
    }
    return Literal{value};
  }

  std::optional<Literal> string() {
    std::u32string value;
    const char32_t quote = text_[at_++];
    while (at_ < text_.size()) {
      const char32_t c = text_[at_++];
      if (c == quote) return Literal{std::move(value)};
      if (c == U'\n') return std::nullopt;
      if (c != U'\\') {
        value += c;
        continue;
      }
      const auto escaped = escape();
      if (!escaped) return std::nullopt;
      value += *escaped;
    }
    return std::nullopt;
  }

  std::optional<char32_t> escape() {
    if (at_ >= text_.size()) return std::nullopt;
    switch (const char32_t c = text_[at_++]) {
      case U'\\':
      case U'\'':
      case U'"':
        return c;
      case U'n':
        return U'\n';
      case U'r':
        return U'\r';
      case U't':
        return U'\t';
      case U'x':
        return hex(2);
      case U'u':
        return hex(4);
      case U'U':
        return hex(8);
      default:
        return std::nullopt;  // repr() writes no other escapes
    }
  }

  std::optional<char32_t> hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const char32_t c = peek();
      if (c >= U'0' && c <= U'9') {
        value = value << 4 | (c - U'0');
      } else if ((c | 0x20) >= U'a' && (c | 0x20) <= U'f') {
        value = value << 4 | ((c | 0x20) - U'a' + 10);
      } else {
        return std::nullopt;
      }
    }
    if (value > kLastCodePoint || is_surrogate(value)) return std::nullopt;
    return value;
  }

  const std::u32string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<Literal> parse_literal(std::string_view text) {
  const auto decoded = decode_utf8(text);
  if (!decoded) return std::nullopt;
  return Parser(*decoded).whole();
}

std::optional<std::u32string> decode_utf8(std::string_view text) {
  if (!utf8::is_valid(text.begin(), text.end())) return std::nullopt;
  std::u32string decoded;
  utf8::unchecked::utf8to32(text.begin(), text.end(), std::back_inserter(decoded));
  return decoded;
}

void append_utf8(std::string& out, char32_t code_point) {
  utf8::unchecked::append(code_point, std::back_inserter(out));
}

std::string python_repr(std::u32string_view text) {
  const bool has_single = text.find(U'\'') != std::u32string_view::npos;
  const char32_t quote = has_single && text.find(U'"') == std::u32string_view::npos ? U'"' : U'\'';
  std::string out;
  append_utf8(out, quote);
  for (const char32_t c : text) {
    if (c == quote || c == U'\\') {
      out += '\\';
      append_utf8(out, c);
    } else if (c == U'\n' || c == U'\r' || c == U'\t') {
      out += c == U'\n' ? "\\n" : c == U'\r' ? "\\r" : "\\t";
    } else if (c >= 0x20 && !is_unprintable(c)) {
      append_utf8(out, c);
    } else if (c <= 0xff) {
      out += "\\x";
      append_hex(out, c, 2);
    } else if (c <= 0xffff) {
      out += "\\u";
      append_hex(out, c, 4);
    } else {
      out += "\\U";
      append_hex(out, c, 8);
    }
  }
  append_utf8(out, quote);
  return out;
}

}  // namespace cframefs::frame
