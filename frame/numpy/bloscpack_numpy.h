// NumPy arrays in Bloscpack files: what the metadata say of the bytes, and the header that makes a .npy file of them.
//
// The bytes are the array's buffer, in the order that the metadata name, so nothing has to be moved. Metadata come from
// files: they are parsed, never believed. Format: bloscpack.md section 8.
//
// Thread safety: functions and plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "frame/container/container.h"
#include "frame/numpy/dtype.h"

namespace cframefs::frame {

struct BloscpackNumpy {
  ItemType type;
  std::vector<std::int64_t> shape;
  bool fortran_order = false;

  /// nullopt: more than any file has.
  std::optional<std::uint64_t> nbytes() const;
};

/// nullopt: the text (JSON) tells of no NumPy array, or of one whose type NumPy could not save.
std::optional<BloscpackNumpy> parse_numpy_metadata(ByteView text);

/// Whether the container is a Bloscpack file of a NumPy array, and what it says. Metadata that are damaged tell
/// nothing: then the bytes are bytes. Errors: corruption, if there are not as many bytes as the array has; io.
Result<std::optional<BloscpackNumpy>> numpy_pack_of(const Container& container);

}  // namespace cframefs::frame
