// Reads the items of a Fortran-order array in C order.
//
// The array is transposed in bands of rows: the part of each column that belongs to the band is fetched and scattered.
// Memory is bounded by the band. Each byte of an array that fits into a band is read once. For a larger array only the
// needed parts of columns are read if they are long; if one row is larger than a band, each step along the first
// dimension reads through the whole array.
//
// Thread safety: one thread. Ownership: owns its source. Errors: those of the source; corruption, if it is too short.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tools/lib/io.h"

namespace cframefs::tools {

/// An input with a settable offset.
class SeekableInput : public Input {
 public:
  /// The next read() begins at byte `at`.
  virtual void go_to(std::uint64_t at) = 0;
};

inline constexpr std::uint64_t kBandBytes = std::uint64_t{512} << 20;

/// Returns an input of the items in C order. REQUIRES: the items together have fewer than 2^63 bytes.
std::unique_ptr<Input> in_c_order(std::unique_ptr<SeekableInput> fortran, const std::vector<std::int64_t>& shape,
                                  std::uint64_t itemsize, std::uint64_t band_bytes = kBandBytes);

}  // namespace cframefs::tools
