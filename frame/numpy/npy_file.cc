#include "frame/numpy/npy_file.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/core.h>

#include "frame/cframe/b2nd_meta.h"
#include "frame/numpy/npy_header.h"
#include "frame/numpy/python_literal.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

constexpr std::size_t kVersionAt = 6;
constexpr std::size_t kLengthAt = 8;  // u16 in version 1, u32 since

/// Returns the Python source of a literal: the inverse of parse_literal().
std::string source_of(const Literal& literal);

std::string joined(const std::vector<Literal>& items, const char* open, const char* close) {
  std::string text = open;
  for (const Literal& item : items)
    text += source_of(item) + ", ";
  return text + close;
}

std::string source_of(const Literal& literal) {
  return std::visit(
      [](const auto& value) -> std::string {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::u32string>) {
          return python_repr(value);
        } else if constexpr (std::is_same_v<Value, std::uint64_t>) {
          return std::to_string(value);
        } else if constexpr (std::is_same_v<Value, bool>) {
          return value ? "True" : "False";
        } else if constexpr (std::is_same_v<Value, Tuple>) {
          return joined(value.items, "(", ")");
        } else if constexpr (std::is_same_v<Value, List>) {
          return joined(value.items, "[", "]");
        } else {
          std::string text = "{";
          for (std::size_t i = 0; i < value.keys.size(); ++i)
            text += source_of(value.keys[i]) + ": " + source_of(value.values[i]) + ", ";
          return text + "}";
        }
      },
      literal.value);
}

/// Returns nullptr if the key does not exist.
const Literal* value_of(const Dictionary& dictionary, std::u32string_view key) {
  for (std::size_t i = 0; i < dictionary.keys.size(); ++i) {
    const auto* name = std::get_if<std::u32string>(&dictionary.keys[i].value);
    if (name != nullptr && *name == key) return &dictionary.values[i];
  }
  return nullptr;
}

Result<std::vector<std::int64_t>> shape_of(const Literal* literal) {
  const auto* tuple = literal == nullptr ? nullptr : std::get_if<Tuple>(&literal->value);
  if (tuple == nullptr) return corrupt(".npy header: 'shape' is missing or not a tuple");
  std::vector<std::int64_t> shape;
  for (const Literal& extent : tuple->items) {
    const auto* number = std::get_if<std::uint64_t>(&extent.value);
    if (number == nullptr || *number > INT64_MAX)
      return corrupt(".npy header: an extent of 'shape' is not an integer below 2^63");
    shape.push_back(static_cast<std::int64_t>(*number));
  }
  return shape;
}

/// Returns the text of the header as UTF-8, and the offset of its end.
Result<std::pair<std::string, std::size_t>> header_text(ByteView bytes) {
  if (!has_npy_magic(bytes) || bytes.size() < kLengthAt + 4) return corrupt("not a .npy file: the magic is missing");
  const int version = bytes[kVersionAt];
  if (version < 1 || version > 3) return codec::unsupported(fmt::format(".npy format version {}", version));
  const std::size_t begin = kLengthAt + (version == 1 ? 2 : 4);
  const std::size_t length = version == 1 ? codec::load_le<std::uint16_t>(&bytes[kLengthAt])
                                          : codec::load_le<std::uint32_t>(&bytes[kLengthAt]);
  if (length > bytes.size() - begin) return corrupt(fmt::format(".npy header of {} bytes is truncated", length));
  std::string text;
  for (const std::uint8_t byte : bytes.subspan(begin, length)) {
    // Versions 1 and 2 are Latin-1.
    if (version == 3) {
      text += static_cast<char>(byte);
    } else {
      append_utf8(text, byte);
    }
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n'))
    text.pop_back();
  return std::pair(std::move(text), begin + length);
}

}  // namespace

bool has_npy_magic(ByteView bytes) {
  return bytes.size() >= kNpyMagic.size() && std::equal(kNpyMagic.begin(), kNpyMagic.end(), bytes.begin());
}

std::optional<std::uint64_t> array_bytes(const std::vector<std::int64_t>& shape, std::uint64_t itemsize) {
  std::uint64_t total = itemsize;
  // An extent of 0 makes the array empty, however large the others are.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(total, static_cast<std::uint64_t>(extent), &total)) return std::nullopt;
  }
  return total <= INT64_MAX ? std::optional(total) : std::nullopt;
}

Result<NpyFile> parse_npy_file(ByteView bytes) {
  auto text = header_text(bytes);
  if (!text) return Failure(text.error());
  const auto literal = parse_literal(text->first);
  const auto* dictionary = literal ? std::get_if<Dictionary>(&literal->value) : nullptr;
  if (dictionary == nullptr) return corrupt(".npy header is not a dictionary");
  NpyFile file;
  file.data_at = text->second;
  auto shape = shape_of(value_of(*dictionary, U"shape"));
  if (!shape) return Failure(shape.error());
  file.shape = std::move(*shape);
  const Literal* order = value_of(*dictionary, U"fortran_order");
  const auto* is_fortran = order == nullptr ? nullptr : std::get_if<bool>(&order->value);
  if (is_fortran == nullptr) return corrupt(".npy header: 'fortran_order' is missing or not True or False");
  file.fortran_order = *is_fortran && file.shape.size() > 1;
  const Literal* descr = value_of(*dictionary, U"descr");
  if (descr == nullptr) return corrupt(".npy header: 'descr' is missing");
  const auto* plain = std::get_if<std::u32string>(&descr->value);
  std::string source;
  if (plain != nullptr) {
    for (const char32_t c : *plain)
      append_utf8(source, c);
  } else {
    source = source_of(*descr);
  }
  auto type = parse_dtype(source);
  if (!type) return codec::unsupported(".npy header: items of type " + source + " are not plain bytes");
  file.type = std::move(*type);
  return file;
}

}  // namespace cframefs::frame
