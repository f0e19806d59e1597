// Random access to a deflated stream: a read inflates from the nearest restart point on.
//
// A restart point is a copy of the inflater's state. It can be taken anywhere in a stream, so even a stream of one huge
// block has restart points. The first pass over the stream takes one for each MiB. When their memory is used up, every
// second one is dropped and the distance doubles. The pieces inflated last are cached, for readers with small reads.
// Length and checksum of the stream are verified when the first pass reaches its end. From then on all reads of a
// damaged stream fail. (Opening a frame reads its end first.)
//
// No allocation depends on a size that the file claims. Each open stream takes one inflater state and a piece, and all
// streams together take what InflateMemory allows.
//
// Thread safety: internally synchronised. Ownership: shares the source and the memory.
// Errors: corruption for pieces after the damage; io passes through.
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

/// The memory that all streams share. Thread safety: internally synchronised.
class InflateMemory {
 public:
  using Piece = std::shared_ptr<const std::vector<std::uint8_t>>;

  /// Bounds in bytes for the cache of inflated pieces and for restart points.
  explicit InflateMemory(std::size_t pieces = std::size_t{6} << 20, std::size_t points = std::size_t{8} << 20)
      : room_(points), pieces_(pieces) {}

  std::uint64_t new_stream() { return next_stream_.fetch_add(1, std::memory_order_relaxed); }
  std::optional<Piece> find(std::uint64_t stream, std::uint64_t piece) { return pieces_.find({stream, piece}); }
  void keep(std::uint64_t stream, std::uint64_t number, const Piece& piece) {
    pieces_.insert({stream, number}, piece, piece->size());
  }
  /// Reserves memory for restart points, which the caller returns with give_room(). Returns false if too little is
  /// left.
  bool try_reserve(std::size_t bytes);
  void give_room(std::size_t bytes) { room_.fetch_add(bytes, std::memory_order_relaxed); }
  /// Limits concurrent long passes over streams to the number of processors, so that other work gets time, too.
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
    std::uint64_t stored = 0;    // deflated bytes
    std::uint64_t size = 0;      // inflated bytes
    std::uint32_t checksum = 0;  // CRC-32 of the inflated bytes
    std::string name;            // for messages
  };

  /// Opens a stream without reading it. corruption: `stored` bytes cannot inflate to `size` bytes. unsupported: `size`
  /// exceeds ParseBudget::asked(). REQUIRES: the stream lies inside the source.
  static Result<std::shared_ptr<const InflatedSource>> open(std::shared_ptr<const ByteSource> source, Stream stream,
                                                            std::shared_ptr<InflateMemory> memory);
  ~InflatedSource() override;
  InflatedSource(const InflatedSource&) = delete;
  InflatedSource& operator=(const InflatedSource&) = delete;

  std::uint64_t size() const override { return stream_.size; }
  Result<void> read(FileOffset at, ByteSpan into) const override;
  std::string label() const override { return source_->label(); }

  /// Return the number of restart points, and the bytes inflated since open(). For tests.
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

  mutable std::atomic<std::uint64_t> broken_at_;  // pieces from this one on are damaged
  mutable codec::Mutex mutex_;
  mutable std::optional<Error> damage_ GUARDED_BY(mutex_);
  mutable std::unique_ptr<Inflater> cursor_ GUARDED_BY(mutex_);  // position after the last step; null: the begin
  mutable std::uint64_t cursor_piece_ GUARDED_BY(mutex_) = 0;    // the next piece at the cursor
  mutable std::uint64_t frontier_ GUARDED_BY(mutex_) = 0;        // the first piece that was never inflated
  mutable std::uint32_t checksum_ GUARDED_BY(mutex_) = 0;        // CRC-32 of the pieces before frontier_
  mutable std::uint64_t inflated_ GUARDED_BY(mutex_) = 0;
  mutable std::map<std::uint64_t, std::unique_ptr<const Inflater>> points_ GUARDED_BY(mutex_);  // by the next piece
  mutable std::uint64_t spacing_ GUARDED_BY(mutex_);                                            // in pieces
};

}  // namespace cframefs::frame
