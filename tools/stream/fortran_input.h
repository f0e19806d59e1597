// The items of an array in Fortran's order, read in C order.
//
// A band of rows at a time is put together in memory: of each column its part of the band is fetched and scattered. So
// memory is bounded however large the array is, and of one that fits into a band each byte is read once. Of a larger
// one only the wanted parts of columns are read where these are long; a row that is itself larger than a band costs a
// walk through the whole for each step along the first dimension.
//
// Thread safety: one thread. Ownership: owns its source. Errors: those of the source; corruption, if it is too short.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tools/lib/io.h"

namespace cframefs::tools {

/// An input that can go on anywhere.
class SeekableInput : public Input {
 public:
  /// The next read() begins at byte `at`.
  virtual void go_to(std::uint64_t at) = 0;
};

inline constexpr std::uint64_t kBandBytes = std::uint64_t{512} << 20;

/// REQUIRES: the items together have fewer than 2^63 bytes.
std::unique_ptr<Input> in_c_order(std::unique_ptr<SeekableInput> fortran, const std::vector<std::int64_t>& shape,
                                  std::uint64_t itemsize, std::uint64_t band_bytes = kBandBytes);

}  // namespace cframefs::tools
