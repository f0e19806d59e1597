#include "fs/frames/frame_copies.h"

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

#include "frame/cframe/frame_container.h"
#include "frame/write/auto_params.h"
#include "fs/write/chunk_copy.h"

namespace cframefs::fs {
namespace {

// Bytes below which a copy is not worth a commit, unless it is a whole file.
constexpr std::uint64_t kMinCopied = std::uint64_t{256} << 10;
// Stored bytes that one copy holds at once. All copies together hold 1 / kHeldShare of dirty_limit.
constexpr std::uint64_t kMaxHeld = std::uint64_t{64} << 20;
constexpr std::uint64_t kHeldShare = 4;
// Attempts while the source changes during the copy.
constexpr int kCopyAttempts = 5;
// The version of chunks that every release of Blosc2 since 2.0.4 reads.
constexpr std::uint8_t kChunkVersion = 5;

codec::Failure by_pages() {
  return codec::io_error(EOPNOTSUPP, "copy of chunks");
}

/// Returns true if stored chunks of the frame decode to the same bytes in another frame. `parameters`: of the frame.
bool has_common_chunks(const FrameSnapshot& snapshot, const frame::FrameParameters& parameters) {
  const frame::FlatView& view = snapshot.view();
  const bool plain = view.is_chunks_only() && !snapshot.container().metalayer_damage();
  const bool even = parameters.chunksize > 0 && !parameters.variable_chunks && !parameters.vl_blocks;
  return plain && even && !parameters.use_dict && !snapshot.container().environment().old_bitshuffle;
}

/// Returns the chunk as stored; none if it cannot be copied so.
std::optional<codec::EncodedChunk> stored_chunk(const frame::ChunkReader& reader, std::int32_t nbytes,
                                                std::int32_t typesize) {
  using codec::SpecialValue;
  const codec::ChunkHeader& header = reader.decoder().header();
  codec::EncodedChunk chunk;
  chunk.nbytes = nbytes;
  if (reader.stored_bytes() == 0) {
    // Uninitialised bytes show as zeros. A chunk that ends within an item cannot be a special value.
    chunk.special = header.special == SpecialValue::nan ? SpecialValue::nan : SpecialValue::zeros;
    return nbytes % typesize == 0 ? std::optional(std::move(chunk)) : std::nullopt;
  }
  const bool common = header.version == kChunkVersion && header.extended() && !header.dictionary && !header.vl_blocks &&
                      !header.instrumented;
  const bool is_value = header.special != SpecialValue::none && header.special != SpecialValue::repeated;
  if (!common || is_value || header.nbytes != nbytes) return std::nullopt;
  chunk.bytes.resize(static_cast<std::size_t>(reader.stored_bytes()));
  if (!reader.read_stored(0, chunk.bytes)) return std::nullopt;
  return chunk;
}

/// Returns the chunks from byte `at` on that are complete in the next `length` bytes, until they hold `most` stored
/// bytes; none if they cannot be copied as stored.
CopiedChunks chunks_at(const FrameSnapshot& snapshot, std::uint64_t at, std::uint64_t length, std::uint64_t most) {
  CopiedChunks copied;
  const frame::FrameContainer* frame = snapshot.container().as_frame();
  if (frame == nullptr || !has_common_chunks(snapshot, frame->parameters())) return copied;
  const frame::FrameParameters& parameters = frame->parameters();
  const auto chunksize = static_cast<std::uint64_t>(parameters.chunksize);
  const std::uint64_t size = snapshot.view().size();
  if (at % chunksize != 0 || at >= size) return copied;
  const std::uint64_t end = at + std::min(length, size - at);
  if (end - at < kMinCopied && (at != 0 || end != size)) return copied;
  copied.like = {frame::encode_parameters(parameters), parameters.chunksize, {}};
  std::uint64_t held = 0;
  while (at < end && (held < most || copied.chunks.empty())) {
    const std::uint64_t whole = std::min(chunksize, size - at);
    if (whole > end - at) break;
    const auto nbytes = static_cast<std::int32_t>(whole);
    const auto reader = snapshot.reader(frame::ChunkNumber{static_cast<std::int64_t>(at / chunksize)});
    auto chunk = reader ? stored_chunk(**reader, nbytes, parameters.typesize) : std::nullopt;
    if (!chunk) break;
    held += chunk->bytes.size();
    copied.nbytes += whole;
    copied.chunks.push_back(std::move(*chunk));
    at += whole;
  }
  return copied;
}

std::uint64_t held_by(const CopiedChunks& copied) {
  return std::accumulate(copied.chunks.begin(), copied.chunks.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& chunk) { return sum + chunk.bytes.size(); });
}

}  // namespace

codec::Result<std::shared_ptr<const FrameSnapshot>> FrameCopies::state_to_copy(FileHandle& handle) {
  const auto writer = handle.frame->write_back();
  if (!writer) return states_.current_snapshot(handle);
  // Commit first: uncommitted data is not stored as chunks.
  if (auto done = writer->commit(frame::Durability::ordered); !done) return by_pages();
  if (auto followed = writer->refresh(); !followed) return by_pages();
  return writer->snapshot();
}

bool FrameCopies::may_be_made_like(const frame::NewFrame& frame) const {
  const std::int32_t typesize = frame.encode.typesize;
  if (mount_.options.new_frames.typesize != 0 &&
      mount_.options.new_frames.typesize != static_cast<std::uint32_t>(typesize))
    return false;
  const auto wanted = static_cast<std::int64_t>(mount_.options.new_frames.chunksize);
  if (wanted != 0 && frame::choose_chunksize(typesize, wanted) != frame.chunksize) return false;
  return codec::check_encodable(frame.encode).has_value();
}

codec::Result<std::uint64_t> FrameCopies::copy_range(FileHandle& from, std::uint64_t from_at, FileHandle& to,
                                                     std::uint64_t to_at, std::uint64_t length, ChangePermit& permit) {
  if (!to.writable) return codec::io_error(EBADF, "copy_file_range");
  if (!from.frame || !to.frame) return by_pages();
  const std::shared_ptr<WriteBack> writer = to.frame->write_back();
  for (int attempt = 0; attempt < kCopyAttempts; ++attempt) {
    auto before = state_to_copy(from);
    if (!before) return codec::Failure(before.error());
    const std::uint64_t size = (*before)->view().size();
    const std::uint64_t wanted = std::min({kMaxHeld, length, size - std::min(size, from_at)});
    CopyMemory::Reservation share(writers_.shared().copy_memory, writers_.shared().dirty_limit / kHeldShare, wanted);
    CopiedChunks copied = chunks_at(**before, from_at, length, share.bytes());
    if (copied.chunks.empty()) return by_pages();
    share.settle(held_by(copied));
    // If the source changed during the copy, discard the chunks and retry.
    auto after = state_to_copy(from);
    if (!after) return codec::Failure(after.error());
    if (*after != *before) continue;
    const std::uint64_t count = copied.chunks.size();
    const std::uint64_t nbytes = copied.nbytes;
    const bool may_remake = may_be_made_like(copied.like);
    auto stored = ChunkCopy(*writer).store(to_at, std::move(copied), may_remake, permit);
    if (!stored) return codec::Failure(stored.error());
    if (!*stored) return by_pages();
    mount_.statistics.writing.chunks_copied.fetch_add(count, std::memory_order_relaxed);
    return nbytes;
  }
  return by_pages();
}

}  // namespace cframefs::fs
