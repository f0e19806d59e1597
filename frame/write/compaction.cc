#include "frame/write/compaction.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "codec/format/chunk_header.h"
#include "frame/cframe/frame_layout.h"
#include "frame/container/chunk_reader.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::SpecialValue;

/// Bytes read at once. Small chunks lie close together, so one read covers several.
constexpr std::uint64_t kCopiedAtOnce = std::uint64_t{1} << 18;
/// A chunk up to this length is verified by the read that copies it.
constexpr std::uint64_t kReadWhole = std::uint64_t{4} << 20;

/// Copies chunks as they are stored, those without a digest through a window that may cover several.
class ChunkCopier {
 public:
  ChunkCopier(const FrameContainer& from, BufferedAppender& out) : from_(from), out_(out) {}

  Result<void> copy(std::int64_t chunk) {
    const auto location = from_.locate_chunk(ChunkNumber{chunk});
    if (!location) return Failure(location.error());
    const auto digests = from_.digests(ChunkNumber{chunk});
    if (!digests) return Failure(digests.error());
    if (location->verifier || digests->any()) return copy_verified(chunk);
    const auto length = length_at(*location);
    if (!length) return Failure(length.error());
    if (auto may = count(*length); !may) return may;
    for (std::uint64_t done = 0; done < *length;) {
      const auto bytes = window(*location, done, *length - done);
      if (!bytes) return Failure(bytes.error());
      if (auto put = out_.append(*bytes); !put) return put;
      done += bytes->size();
    }
    return {};
  }

 private:
  /// Copies a chunk that has a digest, which the window below would skip.
  Result<void> copy_verified(std::int64_t chunk) {
    const auto reader = ChunkReader::open(from_, ChunkNumber{chunk});
    if (!reader) return Failure(reader.error());
    const std::uint64_t length = (*reader)->stored_bytes();
    if (auto may = count(length); !may) return may;
    codec::UninitializedBytes part(static_cast<std::size_t>(length <= kReadWhole ? length : kCopiedAtOnce));
    for (std::uint64_t done = 0; done < length;) {
      const ByteSpan bytes = ByteSpan(part).first(std::min<std::uint64_t>(part.size(), length - done));
      if (auto read = (*reader)->read_stored(done, bytes); !read) return read;
      if (auto put = out_.append(bytes); !put) return put;
      done += bytes.size();
    }
    return {};
  }

  Result<void> count(std::uint64_t length) {
    copied_ += length;
    if (copied_ > from_.parameters().cbytes) return codec::unsupported("frame whose chunks share bytes");
    return {};
  }

  Result<std::uint64_t> length_at(const ChunkLocation& location) {
    const auto bytes = window(location, 0, std::min<std::uint64_t>(location.limit, codec::kExtendedHeaderLength));
    if (!bytes) return Failure(bytes.error());
    if (bytes->size() < codec::kMinHeaderLength) return stored_length(location);
    const auto header = codec::parse_chunk_header(*bytes);
    if (!header) return stored_length(location);  // truncated by the end of the window, or damaged
    if (static_cast<std::uint64_t>(header->cbytes) > location.limit) return stored_length(location);
    return static_cast<std::uint64_t>(header->cbytes);
  }

  /// Returns 1 to `wanted` bytes of the chunk, from its byte `from` on.
  Result<ByteView> window(const ChunkLocation& location, std::uint64_t from, std::uint64_t wanted) {
    const std::uint64_t at = location.offset.value + from;
    if (at < begin_ || at - begin_ >= bytes_.size()) {
      const std::uint64_t left = location.offset.value + location.limit - at;
      bytes_.resize(static_cast<std::size_t>(std::min(left, kCopiedAtOnce)));
      begin_ = at;
      if (auto done = location.source->read(FileOffset{at}, bytes_); !done) {
        bytes_.clear();
        return Failure(done.error());
      }
    }
    const std::uint64_t skip = at - begin_;
    return ByteView(bytes_).subspan(skip, std::min<std::uint64_t>(wanted, bytes_.size() - skip));
  }

  const FrameContainer& from_;
  BufferedAppender& out_;
  std::uint64_t copied_ = 0;
  std::uint64_t begin_ = 0;  // offset of bytes_ in the source
  std::vector<std::uint8_t> bytes_;
};

}  // namespace

Result<std::uint64_t> stored_length(const ChunkLocation& location) {
  std::array<std::uint8_t, codec::kExtendedHeaderLength> bytes{};
  const auto prefix = ByteSpan(bytes).first(std::min<std::uint64_t>(location.limit, bytes.size()));
  if (auto done = location.source->read(location.offset, prefix); !done) return Failure(done.error());
  const auto header = codec::parse_chunk_header(prefix);
  if (!header) return Failure(header.error());
  if (static_cast<std::uint64_t>(header->cbytes) > location.limit) {
    return codec::corrupt("chunk of " + std::to_string(header->cbytes) + " bytes, at most " +
                          std::to_string(location.limit) + " can be stored there");
  }
  return static_cast<std::uint64_t>(header->cbytes);
}

std::int64_t special_entry_of(SpecialValue special) {
  return layout::special_entry(static_cast<std::uint64_t>(special));
}

namespace {

/// Copies committed chunks from `chunk` to `until` or to the end of the index unit. Returns the next chunk to copy.
Result<std::int64_t> copy_some(const FrameContainer& from, std::int64_t chunk, std::int64_t until,
                               std::uint64_t section, ChunkCopier& copier, BufferedAppender& out, IndexEncoder& index) {
  const auto uniform = from.uniform_entry();
  if (uniform && *uniform < 0) {
    index.append_run(*uniform, until - chunk);
    return until;
  }
  if (uniform) return codec::unsupported("frame whose chunks share bytes");
  const auto piece = from.index_piece(ChunkNumber{chunk});
  if (!piece) return Failure(piece.error());
  auto entries = piece->entries.first(std::min(piece->entries.size(), static_cast<std::size_t>(until - chunk)));
  while (!entries.empty()) {
    const auto stored = std::find_if(entries.begin(), entries.end(), [](std::int64_t entry) { return entry >= 0; });
    const auto special = static_cast<std::size_t>(stored - entries.begin());
    index.append_all(entries.first(special));
    chunk += static_cast<std::int64_t>(special);
    entries = entries.subspan(special);
    if (entries.empty()) break;
    index.append(static_cast<std::int64_t>(out.position() - section));
    if (auto copied = copier.copy(chunk); !copied) {
      if (!copied.error().chunk) copied.error().chunk = chunk;
      return Failure(copied.error());
    }
    ++chunk;
    entries = entries.subspan(1);
  }
  return chunk;
}

}  // namespace

Result<void> copy_live_chunks(const FrameContainer& from, const PendingChanges& pending, std::uint64_t section,
                              BufferedAppender& out, IndexEncoder& index) {
  ChunkCopier copier(from, out);
  const std::int64_t count = pending.chunk_count();
  for (std::int64_t chunk = 0; chunk < count;) {
    const PendingChanges::Piece piece = pending.piece(chunk);
    switch (piece.kind) {
      case PendingChanges::Piece::Kind::changed: {
        const codec::EncodedChunk& encoded = *piece.chunk;
        const bool stored = encoded.special == SpecialValue::none;
        index.append(stored ? static_cast<std::int64_t>(out.position() - section) : special_entry_of(encoded.special));
        if (auto put = out.append(encoded.bytes); !put) return put;
        break;
      }
      case PendingChanges::Piece::Kind::zeros:
        index.append_run(layout::kZerosEntry, piece.end - chunk);
        break;
      case PendingChanges::Piece::Kind::kept:
        while (chunk < piece.end) {
          const auto done = copy_some(from, chunk, piece.end, section, copier, out, index);
          if (!done) return Failure(done.error());
          chunk = *done;
        }
        break;
    }
    chunk = piece.end;
  }
  return {};
}

Result<void> copy_all_chunks(const FrameContainer& from, std::uint64_t section, BufferedAppender& out,
                             IndexEncoder& index) {
  ChunkCopier copier(from, out);
  const std::int64_t count = from.chunk_count();
  for (std::int64_t chunk = 0; chunk < count;) {
    const auto done = copy_some(from, chunk, count, section, copier, out, index);
    if (!done) return Failure(done.error());
    chunk = *done;
  }
  return {};
}

}  // namespace cframefs::frame
