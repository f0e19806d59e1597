// Collects the digests of a frame's next state, and writes its seal (frame/doc/seal.md).
//
// Pages of which no chunk has changed stay where they are in the file, so a commit writes the changed pages and the
// root.
//
// Thread safety: one thread. Memory: 16 bytes for each chunk and 8 for each block of the changed pages. Errors: io.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "codec/chunk_encoder.h"
#include "frame/base/chunk_intervals.h"
#include "frame/cframe/frame_container.h"
#include "frame/cframe/seal_layout.h"
#include "frame/io/buffered_appender.h"

namespace cframefs::frame {

/// What a seal is bound to.
struct SealedState {
  ByteView header;  // as it will be on disk
  std::uint64_t nbytes = 0;
  std::uint64_t cbytes = 0;
  std::int64_t chunk_count = 0;
  std::uint64_t index_digest = 0;  // xxh3() of the index chunk
};

class SealWriter {
 public:
  /// `chunksize`: of the frame; 0 if its chunks differ in size.
  explicit SealWriter(std::int32_t chunksize);

  /// Takes over the digests of a committed state, whose seal holds, as far as no other digests are put. `in_place`: the
  /// new state is written behind the old one, so its pages may stay.
  Result<void> keep(const FrameContainer& committed, bool in_place);
  /// Drops the digests of chunks that are not stored any more. Call it before put().
  void drop(std::int64_t begin, std::int64_t end) { dropped_.add(begin, end); }
  /// Digests a chunk; drops the digests of a special one, which is not stored.
  void put(ChunkNumber chunk, const codec::EncodedChunk& encoded);
  void put(ChunkNumber chunk, std::span<const std::uint64_t> digests);

  /// Appends pages and root for a frame of `chunk_count` chunks. Call it once, before seal().
  Result<void> write_pages(BufferedAppender& out, std::int64_t chunk_count);
  /// Returns the seal of the new state. REQUIRES: write_pages().
  Seal seal(const SealedState& state, std::uint64_t trailer_digest) const;
  /// Returns how many bytes of pages and root in the committed chunk section the new state does not refer to.
  std::uint64_t killed_bytes() const { return killed_; }
  /// Returns how many bytes of pages behind the committed chunk section the new state refers to.
  std::uint64_t kept_behind() const { return kept_behind_; }

 private:
  bool is_in_section(const SealedPart& part) const { return part.place < section_end_; }
  Result<void> merge_page(std::size_t number);
  Result<void> append_page(BufferedAppender& out, std::int64_t first, const PageDigests& digests);

  const std::int64_t chunks_per_page_;
  std::map<std::int64_t, PageDigests> changed_;  // by first chunk; no digests of a chunk: as committed
  ChunkIntervals dropped_;
  std::shared_ptr<const FrameSeal> committed_;  // null: nothing is kept
  std::vector<SealPage> kept_;                  // of the committed state
  bool in_place_ = false;
  std::uint64_t section_end_ = 0;  // of the committed state
  std::vector<SealPage> pages_;    // of the new state
  SealedPart root_;
  std::uint64_t killed_ = 0;
  std::uint64_t kept_behind_ = 0;
};

/// Puts the digests of all stored chunks of `frame`: those that it has, others computed. Chunks that cannot be parsed
/// get none. `hashed`: called after each chunk with its stored bytes; false ends the call with EINTR. Errors: those of
/// the index; io.
Result<void> put_stored_digests(
    const FrameContainer& frame, SealWriter& seal,
    const std::function<bool(std::uint64_t bytes)>& hashed = [](std::uint64_t) { return true; });

}  // namespace cframefs::frame
