// Coordinates, each a distinct type so that the compiler rejects a mix-up.
//
//   FlatOffset   byte of the flat file that users see
//   FileOffset   byte of a file on disk
//   ChunkNumber  chunk of a container; `inner` (a plain std::uint32_t) is a byte inside the decoded chunk
//
// Arithmetic uses `.value` on purpose: code must spell out a conversion from one coordinate to another.
#pragma once

#include <compare>
#include <cstdint>

namespace cframefs::frame {

struct FlatOffset {
  std::uint64_t value = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 in the generated code for a null pointer
  auto operator<=>(const FlatOffset&) const = default;
};

struct FileOffset {
  std::uint64_t value = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 in the generated code for a null pointer
  auto operator<=>(const FileOffset&) const = default;
};

struct ChunkNumber {
  std::int64_t value = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 in the generated code for a null pointer
  auto operator<=>(const ChunkNumber&) const = default;
};

}  // namespace cframefs::frame
