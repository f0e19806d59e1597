#include "frame/numpy/dtype.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "frame/numpy/python_literal.h"

namespace cframefs::frame {

namespace {

// NumPy's own limit, that of a C int.
constexpr std::uint64_t kMaxItemBytes = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMaxSubdimensions = 32;
/// Greatest length of a description, enough for about 15,000 fields. Parsing takes about 30 times the length in memory.
constexpr std::size_t kMaxText = std::size_t{256} << 10;

/// A type; for a field that is an array, with its shape. `descr` describes one element.
struct Type {
  std::string descr;
  std::uint64_t itemsize = 0;        // of all elements together
  std::vector<std::uint64_t> shape;  // empty: not an array
};

using Shape = std::vector<std::uint64_t>;

std::optional<Type> type_of(const Literal& literal);

std::optional<std::string> ascii(const std::u32string& text) {
  std::string out;
  for (const char32_t c : text) {
    if (c < 0x20 || c > 0x7e) return std::nullopt;
    out += static_cast<char>(c);
  }
  return out;
}

// ---- plain types -------------------------------------------------------------------------------------------------

struct Name {
  std::string_view name;
  std::string_view code;  // kind and size, without byte order
};

/// Names and one-letter codes with their kind and size.
constexpr std::array<Name, 41> kNames = {{
    {"bool", "b1"},      {"bool8", "b1"},       {"?", "b1"},           {"int8", "i1"},    {"int16", "i2"},
    {"int32", "i4"},     {"int64", "i8"},       {"uint8", "u1"},       {"uint16", "u2"},  {"uint32", "u4"},
    {"uint64", "u8"},    {"float16", "f2"},     {"float32", "f4"},     {"float64", "f8"}, {"float128", "f16"},
    {"complex64", "c8"}, {"complex128", "c16"}, {"complex256", "c32"}, {"b", "i1"},       {"B", "u1"},
    {"h", "i2"},         {"H", "u2"},           {"i", "i4"},           {"I", "u4"},       {"l", "i8"},
    {"L", "u8"},         {"q", "i8"},           {"Q", "u8"},           {"p", "i8"},       {"P", "u8"},
    {"e", "f2"},         {"f", "f4"},           {"d", "f8"},           {"g", "f16"},      {"F", "c8"},
    {"D", "c16"},        {"G", "c32"},          {"int", "i8"},         {"uint", "u8"},    {"float", "f8"},
    {"complex", "c16"},
}};

constexpr std::array<std::string_view, 16> kNumbers = {"b1", "i1", "i2", "i4", "i8",  "u1", "u2",  "u4",
                                                       "u8", "f2", "f4", "f8", "f16", "c8", "c16", "c32"};

std::optional<std::uint64_t> parse_number(std::string_view digits) {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (digits.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<Type> named(const std::string& descr, std::uint64_t itemsize) {
  if (itemsize > kMaxItemBytes) return std::nullopt;
  return Type{"'" + descr + "'", itemsize, {}};
}

/// Parses the unit after M8 or m8: "[ns]", "[25s]" or nothing. Returns its normal form.
std::optional<std::string> time_unit(std::string_view text) {
  if (text.empty()) return std::string();
  if (text.size() < 3 || text.front() != '[' || text.back() != ']') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  if (text == "generic") return std::string();
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string count;
  if (digits > 0) {
    const auto number = parse_number(text.substr(0, digits));
    if (!number || *number == 0 || *number > kMaxItemBytes) return std::nullopt;
    if (*number > 1) count = std::to_string(*number);
  }
  constexpr std::array<std::string_view, 13> kUnits = {"Y",  "M",  "W",  "D",  "h",  "m", "s",
                                                       "ms", "us", "ns", "ps", "fs", "as"};
  const std::string_view unit = text.substr(digits);
  if (std::find(kUnits.begin(), kUnits.end(), unit) == kUnits.end()) return std::nullopt;
  return "[" + count + std::string(unit) + "]";
}

/// `order`: '<' or '>'. `code`: the text after the byte order.
std::optional<Type> scalar_of(char order, std::string_view code) {
  for (const Name& name : kNames) {
    if (code == name.name) code = name.code;
  }
  for (const auto& [word, kind] :
       {Name{"datetime64", "M8"}, Name{"timedelta64", "m8"}, Name{"M8", "M8"}, Name{"m8", "m8"}}) {
    if (!code.starts_with(word)) continue;
    const auto unit = time_unit(code.substr(word.size()));
    if (!unit) return std::nullopt;
    return named(order + std::string(kind) + *unit, 8);
  }
  if (code == "M" || code == "m") return named(order + std::string(code) + "8", 8);
  if (code.empty()) return std::nullopt;
  const auto size = parse_number(code.substr(1));
  if (!size || *size > kMaxItemBytes) return std::nullopt;
  const std::string digits = std::to_string(*size);
  switch (code.front()) {
    case 'S':
    case 'a':
      return named("|S" + digits, *size);
    case 'V':
      return named("|V" + digits, *size);
    case 'U':
      return named(order + ("U" + digits), *size * 4);
    default:
      break;
  }
  const std::string plain = code.front() + digits;
  if (std::find(kNumbers.begin(), kNumbers.end(), plain) == kNumbers.end()) return std::nullopt;
  return named((*size == 1 ? '|' : order) + plain, *size);
}

std::optional<Type> plain_type(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const char first = text.front();
  const bool has_order = first == '<' || first == '>' || first == '=' || first == '|';
  if (has_order) text.remove_prefix(1);
  return scalar_of(first == '>' ? '>' : '<', text);
}

// ---- arrays as fields --------------------------------------------------------------------------------------------

/// Returns the type of an array of `type` with the shape of `literal`.
std::optional<Type> with_shape(Type type, const Literal& literal) {
  Shape shape;
  if (const auto* length = std::get_if<std::uint64_t>(&literal.value)) {
    // A length of 1 that is not a tuple means a plain field.
    if (*length == 1) return type;
    shape.push_back(*length);
  } else if (const auto* tuple = std::get_if<Tuple>(&literal.value)) {
    for (const Literal& item : tuple->items) {
      const auto* extent = std::get_if<std::uint64_t>(&item.value);
      if (extent == nullptr) return std::nullopt;
      shape.push_back(*extent);
    }
  } else {
    return std::nullopt;
  }
  for (const std::uint64_t extent : shape) {
    if (extent > kMaxItemBytes || (extent != 0 && type.itemsize > kMaxItemBytes / extent)) return std::nullopt;
    type.itemsize *= extent;
  }
  // An array of arrays is an array of both shapes.
  type.shape.insert(type.shape.begin(), shape.begin(), shape.end());
  if (type.shape.size() > kMaxSubdimensions) return std::nullopt;
  return type;
}

// ---- records -----------------------------------------------------------------------------------------------------

struct Field {
  std::u32string name;
  std::optional<std::u32string> title;
  Type type;
  std::uint64_t offset = 0;
};

/// Returns an item of the list of fields: "('name', '<i4')".
std::string tuple_of(const Field& field) {
  const std::string name = python_repr(field.name);
  const std::string label = field.title ? "(" + python_repr(*field.title) + ", " + name + ")" : name;
  const std::string shape = field.type.shape.empty() ? "" : ", " + python_tuple<std::uint64_t>(field.type.shape);
  return "(" + label + ", " + field.type.descr + shape + ")";
}

/// Returns a record type with the list of fields of `dtype.descr`, including padding.
std::optional<Type> record_of(const std::vector<Field>& fields, std::optional<std::uint64_t> itemsize) {
  std::set<std::u32string> names;
  std::string text = "[";
  std::uint64_t at = 0;
  const auto add = [&text](const std::string& tuple) { text += (text.size() == 1 ? "" : ", ") + tuple; };
  const auto pad = [&](std::uint64_t until) {
    if (until > at) add(fmt::format("('', '|V{}')", until - at));
  };
  for (const Field& field : fields) {
    if (!names.insert(field.name).second) return std::nullopt;
    if (field.title && !names.insert(*field.title).second) return std::nullopt;
    if (field.offset < at || field.offset > kMaxItemBytes) return std::nullopt;
    pad(field.offset);
    add(tuple_of(field));
    at = field.offset + field.type.itemsize;
    if (at > kMaxItemBytes) return std::nullopt;
  }
  const std::uint64_t whole = itemsize.value_or(at);
  if (whole < at || whole > kMaxItemBytes) return std::nullopt;
  pad(whole);
  return Type{text + "]", whole, {}};
}

/// Reads a field's name, which may be a pair of title and name.
bool read_name(const Literal& literal, Field& field) {
  if (const auto* name = std::get_if<std::u32string>(&literal.value)) {
    field.name = *name;
    return true;
  }
  const auto* pair = std::get_if<Tuple>(&literal.value);
  if (pair == nullptr || pair->items.size() != 2) return false;
  const auto* title = std::get_if<std::u32string>(&pair->items[0].value);
  const auto* name = std::get_if<std::u32string>(&pair->items[1].value);
  if (title == nullptr || name == nullptr) return false;
  field.title = *title;
  field.name = *name;
  return true;
}

std::u32string default_name(std::size_t number) {
  const std::string digits = std::to_string(number);
  return U"f" + std::u32string(digits.begin(), digits.end());
}

/// Parses [('a', '<i4'), ('b', '<f8', (2,))].
std::optional<Type> from_list(const List& list) {
  std::vector<Field> fields;
  std::uint64_t at = 0;
  for (const Literal& item : list.items) {
    const auto* tuple = std::get_if<Tuple>(&item.value);
    if (tuple == nullptr || tuple->items.size() < 2 || tuple->items.size() > 3) return std::nullopt;
    Field field;
    if (!read_name(tuple->items[0], field)) return std::nullopt;
    // As in NumPy, a field without a name is named by its title or its number.
    if (field.name.empty()) field.name = field.title ? *std::exchange(field.title, {}) : default_name(fields.size());
    auto type = type_of(tuple->items[1]);
    if (type && tuple->items.size() == 3) type = with_shape(std::move(*type), tuple->items[2]);
    if (!type) return std::nullopt;
    field.type = std::move(*type);
    field.offset = at;
    at += field.type.itemsize;
    if (at > kMaxItemBytes) return std::nullopt;
    fields.push_back(std::move(field));
  }
  return record_of(fields, std::nullopt);
}

const Literal* find(const Dictionary& dictionary, std::u32string_view key) {
  for (std::size_t i = 0; i < dictionary.keys.size(); ++i) {
    const auto* text = std::get_if<std::u32string>(&dictionary.keys[i].value);
    if (text != nullptr && *text == key) return &dictionary.values[i];
  }
  return nullptr;
}

/// Returns the list under `key`; nullptr if there is none, or none of `size` items.
const List* list_at(const Dictionary& dictionary, std::u32string_view key, std::optional<std::size_t> size) {
  const Literal* found = find(dictionary, key);
  const auto* list = found == nullptr ? nullptr : std::get_if<List>(&found->value);
  return list != nullptr && (!size || list->items.size() == *size) ? list : nullptr;
}

/// Parses {'names': ['a'], 'formats': ['<i4'], 'offsets': [0], 'itemsize': 8}, with optional 'titles' and 'aligned'.
/// NumPy always prints the offsets, so 'aligned' is ignored.
std::optional<Type> from_dictionary(const Dictionary& dictionary) {
  const List* names = list_at(dictionary, U"names", std::nullopt);
  if (names == nullptr) return std::nullopt;
  const List* formats = list_at(dictionary, U"formats", names->items.size());
  const List* offsets = list_at(dictionary, U"offsets", names->items.size());
  const List* titles = list_at(dictionary, U"titles", names->items.size());
  if (formats == nullptr || offsets == nullptr) return std::nullopt;
  if (titles == nullptr && find(dictionary, U"titles") != nullptr) return std::nullopt;
  std::vector<Field> fields;
  for (std::size_t i = 0; i < names->items.size(); ++i) {
    Field field;
    const auto* name = std::get_if<std::u32string>(&names->items[i].value);
    const auto* offset = std::get_if<std::uint64_t>(&offsets->items[i].value);
    auto type = type_of(formats->items[i]);
    if (name == nullptr || offset == nullptr || !type) return std::nullopt;
    if (titles != nullptr) {
      const auto* title = std::get_if<std::u32string>(&titles->items[i].value);
      if (title == nullptr) return std::nullopt;
      field.title = *title;
    }
    field.name = *name;
    field.offset = *offset;
    field.type = std::move(*type);
    fields.push_back(std::move(field));
  }
  std::optional<std::uint64_t> itemsize;
  if (const Literal* found = find(dictionary, U"itemsize")) {
    const auto* size = std::get_if<std::uint64_t>(&found->value);
    if (size == nullptr) return std::nullopt;
    itemsize = *size;
  }
  return record_of(fields, itemsize);
}

std::optional<Type> type_of(const Literal& literal) {
  if (const auto* text = std::get_if<std::u32string>(&literal.value)) {
    const auto name = ascii(*text);
    return name ? plain_type(*name) : std::nullopt;
  }
  if (const auto* list = std::get_if<List>(&literal.value)) return from_list(*list);
  if (const auto* dictionary = std::get_if<Dictionary>(&literal.value)) return from_dictionary(*dictionary);
  if (const auto* tuple = std::get_if<Tuple>(&literal.value); tuple != nullptr && tuple->items.size() == 2) {
    auto base = type_of(tuple->items[0]);
    return base ? with_shape(std::move(*base), tuple->items[1]) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ItemType> parse_dtype(std::string_view text) {
  if (text.size() > kMaxText) return std::nullopt;
  auto type = plain_type(text);
  if (!type) {
    const auto literal = parse_literal(text);
    if (literal) type = type_of(*literal);
  }
  // A type that is an array itself would add dimensions to the whole array.
  if (!type || !type->shape.empty()) return std::nullopt;
  return ItemType{std::move(type->descr), type->itemsize};
}

ItemType opaque_type(std::uint64_t itemsize) {
  if (itemsize == 1) return {"'|u1'", 1};
  return {fmt::format("'|V{}'", itemsize), itemsize};
}

}  // namespace cframefs::frame
