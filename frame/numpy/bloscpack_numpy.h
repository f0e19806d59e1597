// NumPy arrays in Bloscpack files: type, shape and order from the file's metadata.
//
// The file holds the array's buffer in the order that the metadata name, so a .npy header in front makes it a .npy
// file.
// Metadata come from untrusted files and are validated. Format: bloscpack.md section 8.
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

  /// Returns the length of the array in bytes; nullopt if it exceeds 64 bits.
  std::optional<std::uint64_t> nbytes() const;
};

/// Parses the metadata text (JSON). Returns nullopt if it does not describe a NumPy array, or one with a type that
/// NumPy cannot save.
std::optional<BloscpackNumpy> parse_numpy_metadata(ByteView text);

/// Returns the NumPy array of a Bloscpack file; nullopt for other containers and for damaged metadata, whose file is
/// shown as plain bytes. Errors: corruption if the size of the array differs from that of the file; io.
Result<std::optional<BloscpackNumpy>> numpy_pack_of(const Container& container);

}  // namespace cframefs::frame
