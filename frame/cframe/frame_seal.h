// The seal of an open frame: finds the digests of its chunks. Format: frame/doc/seal.md.
//
// The seal is bound to the frame's index. A frame of which another program has changed the chunks has no seal, or one
// whose binding is broken: it reads as any frame without digests, and nothing of it counts as damaged.
//
// The binding is checked when the first digest is needed, because that reads the whole index. Pages of digests are
// cached in the IndexCache, as blocks of the index are. A page that is damaged itself verifies nothing.
//
// Thread safety: immutable, except for the state, which is guarded; const members may run concurrently. Ownership:
// shares source and cache. Errors: io.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "codec/base/mutex.h"
#include "frame/cframe/index_cache.h"
#include "frame/cframe/seal_layout.h"
#include "frame/container/chunk_digests.h"
#include "frame/io/byte_source.h"
#include "frame/io/range_buffer.h"

namespace cframefs::frame {

/// The ranges of a frame that the seal refers to. Units: bytes from the first byte of the frame.
struct SealedFrame {
  std::uint64_t header_length = 0;
  std::uint64_t nbytes = 0;
  std::uint64_t cbytes = 0;
  std::int64_t chunk_count = 0;
  codec::ByteRange index;  // the index chunk
  codec::ByteRange trailer;
};

class FrameSeal {
 public:
  /// Looks for a seal in front of the trailer. Returns nullptr if there is none that describes `frame`.
  static Result<std::unique_ptr<const FrameSeal>> find(std::shared_ptr<const ByteSource> source, RangeBuffer& windows,
                                                       const SealedFrame& frame, std::shared_ptr<IndexCache> cache);
  FrameSeal(std::shared_ptr<const ByteSource> source, const SealedFrame& frame, const Seal& seal,
            std::shared_ptr<IndexCache> cache);
  ~FrameSeal() { cache_->forget(owner_); }
  FrameSeal(const FrameSeal&) = delete;
  FrameSeal& operator=(const FrameSeal&) = delete;

  /// Returns true if the binding holds: index and root are those that were sealed.
  Result<bool> holds() const;
  /// Returns the digests of a stored chunk; none if the seal does not hold or does not know the chunk.
  Result<ChunkDigests> digests(ChunkNumber chunk) const;
  using Pages = std::shared_ptr<const std::vector<SealPage>>;
  /// Returns the pages; null if the seal does not hold.
  Result<Pages> pages() const;
  /// Returns the page of this number in pages(); an empty one if it is damaged.
  Result<IndexCache::Block> page(std::size_t number, const SealPage& page) const;
  /// Returns where pages and root lie, in the order of the file; nothing if the seal does not hold.
  Result<std::vector<codec::ByteRange>> ranges() const;
  /// Returns the first chunk of each page that is damaged. Reads all pages.
  Result<std::vector<std::int64_t>> damaged_pages() const;
  const Seal& seal() const { return seal_; }
  /// Returns true if header and trailer are those that were sealed.
  Result<bool> has_sealed_metadata() const;

 private:
  enum class State : std::uint8_t {
    unchecked,  // ── pages() ──▶ bound, broken
    bound,
    broken,
  };

  Result<std::vector<SealPage>> read_pages() const;
  Result<IndexCache::Block> load_page(const SealPage& page) const;

  const std::shared_ptr<const ByteSource> source_;
  const SealedFrame frame_;
  const Seal seal_;
  const std::shared_ptr<IndexCache> cache_;
  const std::uint64_t owner_;
  mutable codec::Mutex mutex_;
  mutable State state_ GUARDED_BY(mutex_) = State::unchecked;
  mutable Pages pages_ GUARDED_BY(mutex_);  // of State::bound
};

}  // namespace cframefs::frame
