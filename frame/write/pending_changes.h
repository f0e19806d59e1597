// What a writer has been told to change and has not committed yet, held in memory.
//
// Thread safety: one thread. Ownership: owns the encoded chunks. Units: bytes, chunk numbers.
// Errors: invalid, for what no frame can hold.
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
  /// None yet, beside what is committed.
  explicit PendingChanges(const FrameContainer& committed);

  std::uint64_t nbytes() const { return nbytes_; }
  std::int32_t chunksize() const { return chunksize_; }
  std::int64_t chunk_count() const;
  /// Plain length that a chunk has. REQUIRES: 0 <= chunk < chunk_count().
  std::int32_t chunk_nbytes(std::int64_t chunk) const;
  /// Bytes held.
  std::uint64_t bytes() const { return bytes_; }
  bool any_chunks() const { return changed_; }

  Result<void> store(ChunkNumber chunk, codec::EncodedChunk encoded);
  /// Chunks become zeros, however many: a run costs as much as one chunk. REQUIRES: 0 <= begin <= end <= chunk_count().
  void store_zeros(std::int64_t begin, std::int64_t end);
  Result<void> resize(std::uint64_t nbytes);
  /// Has chunks of zeros stored that are no whole number of items: the reference library reads special chunks of whole
  /// items alone. Of very many they stay special, which our own readers know how to read.
  Result<void> store_odd_zeros(const FrameContainer& committed);
  /// Whether all chunks have the lengths that the whole wants; if not, which one must be stored again.
  Result<void> check(const FrameContainer& committed) const;

  /// Stored or special, by number.
  const std::map<std::int64_t, codec::EncodedChunk>& chunks() const { return chunks_; }
  /// Chunks from here on that are not in chunks() are zeros, whatever the committed state says of them.
  std::int64_t kept() const { return kept_; }

  /// Chunks of the next state that are of one kind.
  struct Piece {
    enum class Kind : std::uint8_t {
      kept,     // as committed
      zeros,    // not stored, whatever they were
      changed,  // one, as `chunk` says
    };
    Kind kind = Kind::kept;
    std::int64_t end = 0;  // behind the last
    const codec::EncodedChunk* chunk = nullptr;
  };
  /// From a chunk on as far as they are of one kind. REQUIRES: 0 <= from < chunk_count().
  Piece piece(std::int64_t from) const;
  /// Runs of committed chunks that the next state does without.
  std::vector<ChunkIntervals::Run> killed(std::int64_t committed_count) const;

 private:
  Result<std::vector<std::int64_t>> odd_zeros(const FrameContainer& committed) const;
  void drop(std::int64_t chunk);
  void drop_odd_zeros();
  void put(std::int64_t chunk, codec::EncodedChunk encoded);
  Result<void> check_length(const FrameContainer& committed, std::int64_t chunk) const;

  std::map<std::int64_t, codec::EncodedChunk> chunks_;
  ChunkIntervals zeros_;              // others, before kept_
  std::set<std::int64_t> odd_zeros_;  // those of chunks_ that store_odd_zeros() has made
  std::uint64_t nbytes_ = 0;
  std::int32_t chunksize_ = 0;
  std::int64_t kept_ = 0;
  std::uint64_t bytes_ = 0;
  bool changed_ = false;
};

}  // namespace cframefs::frame
