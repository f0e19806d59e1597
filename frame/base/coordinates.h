// The coordinates that must not be confused: each is a type of its own.
//
//   FlatOffset   byte of the flat file that users see
//   FileOffset   byte of a file on disk
//   ChunkNumber  which chunk of a container, with `inner` (a plain std::uint32_t) for the byte inside the decoded chunk
//
// Arithmetic is on `.value`, on purpose: crossing from one system to another has to be written out.
#pragma once

#include <compare>
#include <cstdint>

namespace cframefs::frame {

struct FlatOffset {
  std::uint64_t value = 0;
  auto operator<=>(const FlatOffset&) const = default;
};

struct FileOffset {
  std::uint64_t value = 0;
  auto operator<=>(const FileOffset&) const = default;
};

struct ChunkNumber {
  std::int64_t value = 0;
  auto operator<=>(const ChunkNumber&) const = default;
};

}  // namespace cframefs::frame
