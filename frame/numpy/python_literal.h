// Python's literals as NumPy prints them: strings, whole numbers, True and False, tuples, lists, dictionaries.
//
// Text comes from files: nothing is evaluated, and nesting is bounded. Thread safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
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
  std::vector<Literal> values;  // as many
};

struct Literal {
  std::variant<std::u32string, std::uint64_t, bool, Tuple, List, Dictionary> value;
};

/// The one literal that `text` (UTF-8) consists of; none if it is anything else, or nested too deeply.
std::optional<Literal> parse_literal(std::string_view text);

/// The code points of `utf8`; none if it is not UTF-8.
std::optional<std::u32string> decode_utf8(std::string_view utf8);
void append_utf8(std::string& out, char32_t code_point);

/// repr() of a string, as UTF-8.
std::string python_repr(std::u32string_view text);

}  // namespace cframefs::frame
