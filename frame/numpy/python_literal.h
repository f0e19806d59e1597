// Parses Python literals as NumPy prints them: strings, non-negative integers, True and False, tuples, lists,
// dictionaries.
//
// Text comes from untrusted files: it is never evaluated, and nesting is bounded. Thread safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cframefs::frame {

struct Literal;
struct Tuple {
  std::vector<Literal> items;
};
struct List {
  std::vector<Literal> items;
};
struct Dictionary {
  std::vector<Literal> keys;
  std::vector<Literal> values;  // of the same size as keys
};

struct Literal {
  std::variant<std::u32string, std::uint64_t, bool, Tuple, List, Dictionary> value;
};

/// Parses `text` (UTF-8), which must be one literal. Returns nullopt if it is not, or is nested more than 32 levels
/// deep.
std::optional<Literal> parse_literal(std::string_view text);

/// Returns the code points of `text`; nullopt if it is not valid UTF-8.
std::optional<std::u32string> decode_utf8(std::string_view text);
void append_utf8(std::string& out, char32_t code_point);

/// Returns Python's repr() of a string, as UTF-8.
std::string python_repr(std::u32string_view text);

/// Returns Python's repr() of a tuple of integers.
template <class Integer>
std::string python_tuple(std::span<const Integer> items) {
  std::string text = "(";
  for (std::size_t i = 0; i < items.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(items[i]);
  return text + (items.size() == 1 ? ",)" : ")");
}

}  // namespace cframefs::frame
