// Parses NumPy's descriptions of item types without Python.
//
// A metalayer holds the text that NumPy prints for a dtype; a .npy header needs `dtype.descr`. The two differ: 'f8'
// becomes '<f8', padding becomes fields without a name, and so on. Text comes from untrusted files: it is parsed, never
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
  std::string descr;  // Python source as in a .npy header, with quotes; UTF-8
  std::uint64_t itemsize = 0;
};

/// Returns the type that `text` (UTF-8) describes. Returns nullopt if `text` is not a description, or describes Python
/// objects or a type that NumPy cannot save (fields that overlap or are not in order).
std::optional<ItemType> parse_dtype(std::string_view text);

/// Returns the type of items of unknown type: `itemsize` bytes without meaning.
ItemType opaque_type(std::uint64_t itemsize);

}  // namespace cframefs::frame
