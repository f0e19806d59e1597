// FrameWriter: what a commit writes, from its chunks to its trailer.
#include <algorithm>
#include <array>
#include <utility>

#include "frame/base/xxh3.h"
#include "frame/cframe/cframe.h"
#include "frame/cframe/sparse_frame.h"
#include "frame/io/buffered_appender.h"
#include "frame/io/overlay_source.h"
#include "frame/write/compaction.h"
#include "frame/write/frame_writer-inl.h"
#include "frame/write/seal_writer.h"

namespace cframefs::frame {

using codec::Failure;
using codec::load_be;
using codec::SpecialValue;

namespace {

/// The index of the next state may compress a little worse.
constexpr std::uint64_t kSpareIndex = 64;

/// Returns how much later a frame must end than at `end`, so that its last block has room for `bytes` more: then a full
/// disk has room for a commit that truncates or punches. 0 if no block has as much.
std::uint64_t gap_for_spare_room(std::uint64_t end, std::uint64_t bytes) {
  const std::uint64_t wanted = bytes + kSpareIndex;
  const std::uint64_t left = (kDiskBlock - end % kDiskBlock) % kDiskBlock;
  return left >= wanted || wanted >= kDiskBlock ? 0 : left + 1;
}

}  // namespace

/// Appends all entries of the next state's index. Reuses encoded blocks without changes.
Result<void> FrameWriter::encode_index(Next& next, IndexEncoder& index) const {
  using Kind = PendingChanges::Piece::Kind;
  constexpr std::int64_t kBlock = IndexEncoder::kBlockEntries;
  const std::int64_t count = pending_.chunk_count();
  const auto uniform = container_->uniform_entry();
  auto entry = next.entries.begin();
  for (std::int64_t chunk = 0; chunk < count;) {
    const PendingChanges::Piece piece = pending_.piece(chunk);
    if (piece.kind == Kind::changed) {
      index.append((entry++)->second);
    } else if (piece.kind == Kind::zeros) {
      index.append_run(layout::kZerosEntry, piece.end - chunk);
    } else if (uniform) {
      index.append_run(*uniform, piece.end - chunk);
    } else {
      while (chunk < piece.end) {
        const auto block = static_cast<std::size_t>(chunk / kBlock);
        if (chunk % kBlock == 0 && block < index_blocks_.size() && chunk + kBlock <= piece.end) {
          index.append_block(index_blocks_[block]);
          chunk += kBlock;
          continue;
        }
        const auto kept = container_->index_piece(ChunkNumber{chunk});
        if (!kept) return Failure(kept.error());
        // Stop at the end of a block: the next one may be reusable.
        const std::int64_t until = std::min(piece.end, (chunk / kBlock + 1) * kBlock);
        const auto some = std::min(kept->entries.size(), static_cast<std::size_t>(until - chunk));
        index.append_all(kept->entries.first(some));
        chunk += static_cast<std::int64_t>(some);
      }
    }
    chunk = piece.end;
  }
  return {};
}

/// Steps 2 and 3 of commit-protocol.md section 2: writes chunks, index and trailer after the frame's end, and completes
/// next.header.
Result<void> FrameWriter::write_behind(Next& next, Extras extras) {
  const std::uint64_t section = header_.size();
  FileTarget target(files_, file_->handle());
  BufferedAppender out(target, FileOffset{parameters().frame_length});
  for (const auto& [number, encoded] : pending_.chunks()) {
    const bool stored = encoded.special == SpecialValue::none;
    next.entries.emplace_back(
        number, stored ? static_cast<std::int64_t>(out.position() - section) : special_entry_of(encoded.special));
    if (auto put = out.append(encoded.bytes); !put) return put;
  }
  IndexEncoder index;
  if (auto done = encode_index(next, index); !done) return done;
  if (auto finished = finish_image(next, std::nullopt, index, out, extras); !finished) return finished;
  // Pages that stay in the gap behind the committed index were counted as dead with all that lies there.
  if (const SealWriter* seal = extras.seal; seal != nullptr)
    next.dead_bytes = next.dead_bytes + seal->killed_bytes() - seal->kept_behind();
  return {};
}

/// Writes pages of digests, index, seal and trailer, and completes next.header. `cbytes`: of a frame that is written
/// whole, where the pages follow the index; none: they lie in the chunk section.
Result<void> FrameWriter::finish_image(Next& next, std::optional<std::uint64_t> cbytes, IndexEncoder& index,
                                       BufferedAppender& out, Extras extras) const {
  HeaderUpdate fields;
  fields.nbytes = pending_.nbytes();
  fields.chunksize = pending_.chunksize();
  fields.has_vlmetalayers = next_has_vlmetalayers();
  SealWriter* const seal = fields.nbytes > 0 ? extras.seal : nullptr;
  if (seal != nullptr && !cbytes) {
    if (auto put = seal->write_pages(out, index.count()); !put) return put;
  }
  if (fields.nbytes > 0) fields.cbytes = cbytes.value_or(out.position() - next.header.size());
  std::uint64_t index_digest = 0;
  std::uint64_t index_bytes = 0;
  if (fields.nbytes > 0) {
    const std::vector<std::uint8_t> chunk = index.finish();
    index_bytes = chunk.size();
    index_digest = xxh3(chunk);
    if (auto put = out.append(chunk); !put) return put;
  }
  if (seal != nullptr && cbytes) {
    if (auto put = seal->write_pages(out, pending_.chunk_count()); !put) return put;
  }
  next.index_blocks = index.take_blocks();
  const auto trailer = next_trailer();
  if (!trailer) return Failure(trailer.error());
  const std::size_t end = (seal != nullptr ? kSealLength : 0) + trailer->size();
  // C-Blosc2 detects a new index file of a sparse frame by its length, so the length must change.
  if (directory_ && fields.nbytes > 0 && out.position() + end == parameters().frame_length) {
    if (auto put = out.append(std::array<std::uint8_t, 1>{}); !put) return put;
  }
  if (extras.spare_room && fields.nbytes > 0) {
    const std::uint64_t gap = gap_for_spare_room(out.position() + end, index_bytes + trailer->size());
    if (auto put = out.append(std::vector<std::uint8_t>(gap)); !put) return put;
  }
  fields.frame_length = out.position() + end;
  encode_update(fields, next.header);
  if (seal != nullptr) {
    const SealedState state{next.header, fields.nbytes, fields.cbytes, pending_.chunk_count(), index_digest};
    if (auto put = out.append(encode_seal(seal->seal(state, xxh3(*trailer)))); !put) return put;
  }
  if (auto put = out.append(*trailer); !put) return put;
  return out.flush();
}

Result<void> FrameWriter::seal(const std::function<bool(std::uint64_t bytes)>& hashed) {
  auto seal = std::make_unique<SealWriter>(pending_.chunksize());
  if (auto put = put_stored_digests(*container_, *seal, hashed); !put) return put;
  new_seal_ = std::move(seal);
  return {};
}

/// Returns true if the committed state has a seal that holds, or no stored chunk that would need digests.
Result<bool> FrameWriter::keeps_seal() const {
  if (container_->seal()) return container_->seal()->holds();
  const auto uniform = container_->uniform_entry();
  const bool has_none = container_->chunk_count() == 0 || (uniform && *uniform < 0);
  return has_none && options_.checksums == Checksums::on;
}

/// Returns true if all committed chunks are copied, or the caller has time to read them. A commit to a sparse frame
/// copies none.
bool FrameWriter::reads_all_chunks(Image image) const {
  return image == Image::compacted || (image == Image::replaced && !directory_);
}

/// Returns the digests of the next state as far as they are known before its chunks are written; null if it gets no
/// seal.
Result<std::unique_ptr<SealWriter>> FrameWriter::begin_seal(Image image) const {
  auto seal = begin_committed_seal(image);
  if (!seal || !*seal) return seal;
  for (std::int64_t chunk = 0; chunk < pending_.chunk_count();) {
    const PendingChanges::Piece piece = pending_.piece(chunk);
    if (piece.kind == PendingChanges::Piece::Kind::zeros) (*seal)->drop(chunk, piece.end);
    chunk = piece.end;
  }
  for (const auto& [number, encoded] : pending_.chunks())
    (*seal)->put(ChunkNumber{number}, encoded);
  return seal;
}

/// Returns the digests of the committed chunks; null if the next state gets no seal.
Result<std::unique_ptr<SealWriter>> FrameWriter::begin_committed_seal(Image image) const {
  std::unique_ptr<SealWriter> seal;
  if (new_seal_) return std::make_unique<SealWriter>(*new_seal_);
  if (options_.checksums == Checksums::off) return seal;
  const auto keeps = keeps_seal();
  if (!keeps) return Failure(keeps.error());
  const bool is_added = !*keeps && reads_all_chunks(image) && options_.checksums == Checksums::on;
  if (!*keeps && !is_added) return seal;
  seal = std::make_unique<SealWriter>(pending_.chunksize());
  if (is_added) {
    if (auto put = put_stored_digests(*container_, *seal); !put) return Failure(put.error());
  } else if (container_->seal()) {
    if (auto kept = seal->keep(*container_, image == Image::appended); !kept) return Failure(kept.error());
  }
  return seal;
}

/// Opens the next state as readers will see it, so that a state that cannot be opened is never committed.
Result<void> FrameWriter::open_next(Next& next) const {
  const auto length = load_be<std::uint64_t>(&next.header[layout::kFrameLengthAt]);
  if (directory_) {
    auto opened = open_sparse_frame(files_, directory_, next.file, cache_, {next.state.hold});
    if (!opened) return Failure(opened.error());
    next.container = as_shared_frame(*opened);
    return {};
  }
  auto source = std::make_shared<const OverlaySource>(next.header, file_source(files_, next.file, {}, length));
  auto opened = open_cframe(std::move(source), cache_);
  if (!opened) return Failure(opened.error());
  next.container = std::move(*opened);
  return {};
}

}  // namespace cframefs::frame
