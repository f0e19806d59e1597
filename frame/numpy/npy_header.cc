#include "frame/numpy/npy_header.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "codec/base/bytes.h"
#include "frame/numpy/python_literal.h"

namespace cframefs::frame {

namespace {

constexpr std::size_t kAlignment = 64;
// NumPy reserves this many digits for the slowest extent, so that it can grow in place.
constexpr std::size_t kGrowthDigits = 21;

/// Returns nullopt if there is a character beyond Latin-1.
std::optional<std::string> to_latin1(const std::string& utf8) {
  const auto decoded = decode_utf8(utf8);
  if (!decoded) return std::nullopt;
  std::string latin1;
  for (const char32_t c : *decoded) {
    if (c > 0xff) return std::nullopt;
    latin1 += static_cast<char>(static_cast<std::uint8_t>(c));
  }
  return latin1;
}

/// Adds magic, version, length field and padding to the text. `width`: bytes of the length field.
std::vector<std::uint8_t> wrap(std::string text, std::uint8_t version, std::size_t width) {
  const std::size_t before = kNpyMagic.size() + 2 + width;
  // As NumPy, add 64 blanks if the text ends exactly at the boundary.
  const std::size_t padding = kAlignment - (before + text.size() + 1) % kAlignment;
  text.append(padding, ' ');
  text += '\n';
  std::vector<std::uint8_t> header(kNpyMagic.begin(), kNpyMagic.end());
  header.push_back(version);
  header.push_back(0);
  for (std::size_t i = 0; i < width; ++i)
    header.push_back(static_cast<std::uint8_t>(text.size() >> (8 * i)));
  header.insert(header.end(), text.begin(), text.end());
  return header;
}

}  // namespace

std::vector<std::uint8_t> npy_header(const ItemType& type, std::span<const std::int64_t> shape, bool fortran_order) {
  std::string text = "{'descr': " + type.descr + ", 'fortran_order': " + (fortran_order ? "True" : "False") +
                     ", 'shape': " + python_tuple(shape) + ", }";
  if (!shape.empty()) {
    const std::int64_t slowest = fortran_order ? shape.back() : shape.front();
    text.append(kGrowthDigits - std::min(kGrowthDigits, std::to_string(slowest).size()), ' ');
  }
  auto latin1 = to_latin1(text);
  if (!latin1) return wrap(std::move(text), 3, 4);
  constexpr std::size_t kShort = 2;
  auto header = wrap(*latin1, 1, kShort);
  if (header.size() - kNpyMagic.size() - 2 - kShort <= std::numeric_limits<std::uint16_t>::max()) return header;
  return wrap(std::move(*latin1), 2, 4);
}

}  // namespace cframefs::frame
