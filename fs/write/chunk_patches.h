// The bytes that programs have written into one chunk whose other bytes are those of the layer below. Only the written
// pieces take memory, so that thousands of small writes all over a large file wait for one commit, which reads, changes
// and encodes each chunk once.
//
// Invariant: pieces neither overlap nor touch each other. Thread safety: none; the file's mutex guards the object, and
// patches taken by a commit do not change any more. Ownership: shared by the layers of a write-back. Units: bytes,
// offsets within the chunk.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "codec/base/bytes.h"

namespace cframefs::fs {

class ChunkPatches {
 public:
  using Pieces = std::map<std::uint64_t, std::vector<std::uint8_t>>;  // by offset

  /// `counter`: incremented by the footprint as long as the object exists.
  explicit ChunkPatches(std::atomic<std::uint64_t>& counter) : counter_(counter) {}
  ~ChunkPatches();
  ChunkPatches(const ChunkPatches&) = delete;
  ChunkPatches& operator=(const ChunkPatches&) = delete;

  const Pieces& pieces() const { return pieces_; }
  std::uint64_t footprint() const { return footprint_; }
  /// Returns the end of the last piece.
  std::uint64_t end() const { return pieces_.empty() ? 0 : pieces_.rbegin()->first + pieces_.rbegin()->second.size(); }
  /// Returns the bytes of all pieces.
  std::uint64_t written() const;
  /// Returns whether the pieces contain all of the first `length` bytes.
  bool covers(std::uint64_t length) const;

  void write(std::uint64_t from, codec::ByteView bytes);
  /// Removes the bytes from `end` on.
  void cut(std::uint64_t end);
  /// Copies the pieces to their offsets in the uncompressed bytes of a chunk, up to the end of `plain`.
  void apply_to(codec::ByteSpan plain) const;
  void merge_into(ChunkPatches& below) const;

 private:
  void count(std::uint64_t before, std::uint64_t after);

  Pieces pieces_;
  std::uint64_t footprint_ = 0;
  std::atomic<std::uint64_t>& counter_;
};

}  // namespace cframefs::fs
