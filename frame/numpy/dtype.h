// NumPy's descriptions of item types, read without Python.
//
// A metalayer holds what NumPy prints for a dtype; a .npy header wants what `dtype.descr` gives. The two differ: 'f8'
// becomes '<f8', padding becomes fields without a name, and so on. Text comes from files: it is parsed, never
// evaluated, and nesting is bounded.
//
// Thread safety: functions only. Units: bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cframefs::frame {

struct ItemType {
  std::string descr;  // Python source as NumPy writes it into a .npy header, quotes and all; UTF-8
  std::uint64_t itemsize = 0;
};

/// The type that `text` (UTF-8) describes; none if it is no such description, one of Python objects, or one that NumPy
/// cannot save (fields that overlap or are not in order).
std::optional<ItemType> parse_dtype(std::string_view text);

/// What an item is if nobody knows: `itemsize` bytes.
ItemType opaque_type(std::uint64_t itemsize);

}  // namespace cframefs::frame
