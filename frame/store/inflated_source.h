// A deflated stream read at any place: it is inflated from the nearest restart point on.
//
// A restart point is a copy of the inflater's state, which is possible anywhere in a stream, so that a stream of one
// huge block has them, too. They are left behind while the stream is walked for the first time, one for each MiB as
// long as there is room for them, fewer then: every second one goes. What was inflated last is kept for those who read
// it in small steps. The length and the checksum of the whole are verified when the first walk comes to the end: from
// then on nothing of a damaged stream is given out. (A frame's reader asks for its end before anything else.)
//
// Nothing is allocated for what sizes claim: memory is one state and a piece for each open stream, and for all of them
// together what InflateMemory allows.
//
// Thread safety: internally synchronised. Ownership: shares the source and the memory.
// Errors: corruption of the stream, on what lies behind the damage; io passes through.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "codec/base/mutex.h"
#include "codec/base/turns.h"
#include "frame/base/lru_cache.h"
#include "frame/io/byte_source.h"

namespace cframefs::frame {

/// What all streams together may hold in memory. Thread safety: internally synchronised.
class InflateMemory {
 public:
  using Piece = std::shared_ptr<const std::vector<std::uint8_t>>;

  /// Bounds in bytes: of pieces that were inflated last, and of restart points.
  explicit InflateMemory(std::size_t pieces = std::size_t{6} << 20, std::size_t points = std::size_t{8} << 20)
      : room_(points), pieces_(pieces) {}

  std::uint64_t new_stream() { return next_stream_.fetch_add(1, std::memory_order_relaxed); }
  std::optional<Piece> find(std::uint64_t stream, std::uint64_t piece) { return pieces_.find({stream, piece}); }
  void keep(std::uint64_t stream, std::uint64_t number, const Piece& piece) {
    pieces_.insert({stream, number}, piece, piece->size());
  }
  /// Room for a restart point, to be given back.
  bool try_reserve(std::size_t bytes);
  void give_room(std::size_t bytes) { room_.fetch_add(bytes, std::memory_order_relaxed); }
  /// Of long walks: as many at once as there are processors, so that they leave time for everything else.
  codec::Turns& walks() { return walks_; }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  struct Hash {
    std::size_t operator()(const Key& key) const { return key.first * 0x9e3779b97f4a7c15U + key.second; }
  };

  std::atomic<std::size_t> room_;
  std::atomic<std::uint64_t> next_stream_{0};
  LruCache<Key, Piece, Hash> pieces_;
  codec::Turns walks_{std::max(1U, std::thread::hardware_concurrency())};
};

class InflatedSource final : public ByteSource {
 public:
  struct Stream {
    FileOffset begin;            // in the source
    std::uint64_t stored = 0;    // bytes of the source
    std::uint64_t size = 0;      // bytes that come of them
    std::uint32_t checksum = 0;  // CRC-32 of these
    std::string name;            // for messages
  };

  /// corruption: so few bytes cannot inflate to so many. REQUIRES: the stream lies inside the source.
  static Result<std::shared_ptr<const InflatedSource>> open(std::shared_ptr<const ByteSource> source, Stream stream,
                                                            std::shared_ptr<InflateMemory> memory);
  ~InflatedSource() override;
  InflatedSource(const InflatedSource&) = delete;
  InflatedSource& operator=(const InflatedSource&) = delete;

  std::uint64_t size() const override { return stream_.size; }
  Result<void> read(FileOffset at, ByteSpan into) const override;
  std::string label() const override { return source_->label(); }

  /// Restart points that there are, and bytes inflated since it was opened. For tests.
  std::size_t restart_points() const;
  std::uint64_t inflated_bytes() const;

 private:
  class Inflater;

  InflatedSource(std::shared_ptr<const ByteSource> source, Stream stream, std::shared_ptr<InflateMemory> memory);

  std::uint64_t piece_count() const;
  std::size_t piece_size(std::uint64_t piece) const;
  Result<InflateMemory::Piece> find_piece(std::uint64_t piece) const;
  Result<InflateMemory::Piece> inflate_piece(std::uint64_t piece) const REQUIRES(mutex_);
  void seek_checkpoint(std::uint64_t piece) const REQUIRES(mutex_);
  Result<void> step(ByteSpan out) const REQUIRES(mutex_);
  Result<void> pass_frontier(ByteView plain) const REQUIRES(mutex_);
  void add_checkpoint() const REQUIRES(mutex_);
  void drop_every_second() const REQUIRES(mutex_);

  const std::shared_ptr<const ByteSource> source_;
  const Stream stream_;
  const std::shared_ptr<InflateMemory> memory_;
  const std::uint64_t number_;

  mutable std::atomic<std::uint64_t> broken_at_;  // pieces from this one on cannot be had
  mutable codec::Mutex mutex_;
  mutable std::optional<Error> damage_ GUARDED_BY(mutex_);
  mutable std::unique_ptr<Inflater> cursor_ GUARDED_BY(mutex_);  // where the last step has ended; null: at the begin
  mutable std::uint64_t cursor_piece_ GUARDED_BY(mutex_) = 0;    // the piece that comes next there
  mutable std::uint64_t frontier_ GUARDED_BY(mutex_) = 0;        // the first piece that was never inflated
  mutable std::uint32_t checksum_ GUARDED_BY(mutex_) = 0;        // of what lies before it
  mutable std::uint64_t inflated_ GUARDED_BY(mutex_) = 0;
  mutable std::map<std::uint64_t, std::unique_ptr<const Inflater>> points_ GUARDED_BY(mutex_);  // by the next piece
  mutable std::uint64_t spacing_ GUARDED_BY(mutex_);                                            // in pieces
};

}  // namespace cframefs::frame
