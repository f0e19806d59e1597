// What programs have written into one chunk whose other bytes are those that lie below it: pieces of bytes, and no more
// memory than they take. So thousands of small writes all over a large file wait for one commit, which reads, changes
// and encodes each chunk once.
//
// Invariant: pieces neither overlap nor touch each other. Thread safety: none; the file's mutex guards it, and what a
// commit has taken is not changed any more. Ownership: shared by the layers of a write-back. Units: bytes, places
// within the chunk.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "codec/base/bytes.h"

namespace cframefs::fs {

class ChunkPatches {
 public:
  using Pieces = std::map<std::uint64_t, std::vector<std::uint8_t>>;  // by where they begin

  /// `counter`: has the memory added to it for as long as it is held.
  explicit ChunkPatches(std::atomic<std::uint64_t>& counter) : counter_(counter) {}
  ~ChunkPatches();
  ChunkPatches(const ChunkPatches&) = delete;
  ChunkPatches& operator=(const ChunkPatches&) = delete;

  const Pieces& pieces() const { return pieces_; }
  std::uint64_t footprint() const { return footprint_; }
  /// Behind the last piece.
  std::uint64_t end() const { return pieces_.empty() ? 0 : pieces_.rbegin()->first + pieces_.rbegin()->second.size(); }
  /// Bytes in the pieces.
  std::uint64_t written() const;
  /// Whether nothing of the first `length` bytes is missing.
  bool covers(std::uint64_t length) const;

  void write(std::uint64_t from, codec::ByteView bytes);
  /// What lies at `end` and behind it is gone.
  void cut(std::uint64_t end);
  /// Puts the pieces where they belong in the plain bytes of a chunk, as far as those reach.
  void apply_to(codec::ByteSpan plain) const;
  void merge_into(ChunkPatches& below) const;

 private:
  void count(std::uint64_t before, std::uint64_t after);

  Pieces pieces_;
  std::uint64_t footprint_ = 0;
  std::atomic<std::uint64_t>& counter_;
};

}  // namespace cframefs::fs
