// The uncommitted changes of a FrameWriter to the chunks of its frame, held in memory.
//
// Thread safety: one thread. Ownership: owns the encoded chunks. Units: bytes, chunk numbers.
// Errors: invalid for changes that no frame can hold.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "codec/chunk_encoder.h"
#include "frame/base/chunk_intervals.h"
#include "frame/cframe/frame_container.h"

namespace cframefs::frame {

class PendingChanges {
 public:
  PendingChanges() = default;
  /// Starts without changes to the committed state.
  explicit PendingChanges(const FrameContainer& committed);

  std::uint64_t nbytes() const { return nbytes_; }
  std::int32_t chunksize() const { return chunksize_; }
  std::int64_t chunk_count() const;
  /// Returns the uncompressed bytes of a chunk. REQUIRES: 0 <= chunk < chunk_count().
  std::int32_t chunk_nbytes(std::int64_t chunk) const;
  /// Returns the bytes of the encoded chunks.
  std::uint64_t bytes() const { return bytes_; }
  bool any_chunks() const { return changed_; }

  Result<void> store(ChunkNumber chunk, codec::EncodedChunk encoded);
  /// As FrameWriter::store_zeros().
  void store_zeros(std::int64_t begin, std::int64_t end);
  Result<void> resize(std::uint64_t nbytes);
  /// Encodes zero chunks whose length is not a multiple of the typesize, because C-Blosc2 rejects such special chunks.
  /// If runs hold more than 2^18 of them, the chunks of these runs stay special, which only our own readers accept.
  Result<void> store_odd_zeros(const FrameContainer& committed);
  /// Returns invalid, with the chunk that must be stored again, if a stored chunk does not have the length that
  /// nbytes() requires.
  Result<void> check(const FrameContainer& committed) const;

  /// Returns the changed chunks, stored or special, by number.
  const std::map<std::int64_t, codec::EncodedChunk>& chunks() const { return chunks_; }
  /// Returns the first chunk from which on all chunks that are not in chunks() are zeros, even if they are committed.
  std::int64_t kept() const { return kept_; }

  /// A run of chunks of the next state that are of one kind.
  struct Piece {
    enum class Kind : std::uint8_t {
      kept,     // as committed
      zeros,    // special chunks of zeros
      changed,  // one chunk, which `chunk` points to
    };
    Kind kind = Kind::kept;
    std::int64_t end = 0;  // one past the last
    const codec::EncodedChunk* chunk = nullptr;
  };
  /// Returns the longest run of one kind that begins at `from`. REQUIRES: 0 <= from < chunk_count().
  Piece piece(std::int64_t from) const;
  /// Returns the runs of committed chunks that the next state replaces or removes.
  std::vector<ChunkIntervals::Run> killed(std::int64_t committed_count) const;

 private:
  Result<std::vector<std::int64_t>> odd_zeros(const FrameContainer& committed) const;
  void drop(std::int64_t chunk);
  void drop_odd_zeros();
  void put(std::int64_t chunk, codec::EncodedChunk encoded);
  Result<void> check_length(const FrameContainer& committed, std::int64_t chunk) const;

  std::map<std::int64_t, codec::EncodedChunk> chunks_;
  ChunkIntervals zeros_;              // zero chunks before kept_ that are not in chunks_
  std::set<std::int64_t> odd_zeros_;  // chunks of chunks_ that store_odd_zeros() added
  std::uint64_t nbytes_ = 0;
  std::int32_t chunksize_ = 0;
  std::int64_t kept_ = 0;
  std::uint64_t bytes_ = 0;
  bool changed_ = false;
};

}  // namespace cframefs::frame
