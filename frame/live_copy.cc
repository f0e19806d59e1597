#include "frame/live_copy.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "codec/chunk_header.h"
#include "frame/frame_layout.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::SpecialValue;

/// Small chunks lie close together: this much is read at once.
constexpr std::uint64_t kCopiedAtOnce = std::uint64_t{1} << 18;

/// Frames of more chunks are not measured, and of the others only so many chunks are looked at.
constexpr std::int64_t kMostCounted = 1 << 16;
constexpr std::size_t kMostGaps = 256;

class ChunkCopier {
 public:
  ChunkCopier(const FrameContainer& from, TailWriter& out) : from_(from), out_(out) {}

  Result<void> copy(std::int64_t chunk) {
    const auto place = from_.place(ChunkNumber{chunk});
    if (!place) return Failure(place.error());
    const auto length = length_at(*place);
    if (!length) return Failure(length.error());
    copied_ += *length;
    if (copied_ > from_.parameters().cbytes) return codec::unsupported("frame whose chunks share bytes");
    for (std::uint64_t done = 0; done < *length;) {
      const auto bytes = window(*place, done, *length - done);
      if (!bytes) return Failure(bytes.error());
      if (auto put = out_.append(*bytes); !put) return put;
      done += bytes->size();
    }
    return {};
  }

 private:
  Result<std::uint64_t> length_at(const ChunkPlace& place) {
    const auto bytes = window(place, 0, std::min<std::uint64_t>(place.limit, codec::kExtendedHeaderLength));
    if (!bytes) return Failure(bytes.error());
    if (bytes->size() < codec::kMinHeaderLength) return stored_length(place);
    const auto header = codec::parse_chunk_header(*bytes);
    if (!header) return stored_length(place);  // cut by the end of the window, or damaged
    if (static_cast<std::uint64_t>(header->cbytes) > place.limit) return stored_length(place);
    return static_cast<std::uint64_t>(header->cbytes);
  }

  /// At least one and at most `wanted` bytes of the chunk, from its byte `from` on.
  Result<ByteView> window(const ChunkPlace& place, std::uint64_t from, std::uint64_t wanted) {
    const std::uint64_t at = place.offset.value + from;
    if (at < begin_ || at - begin_ >= bytes_.size()) {
      const std::uint64_t left = place.offset.value + place.limit - at;
      bytes_.resize(static_cast<std::size_t>(std::min(left, kCopiedAtOnce)));
      begin_ = at;
      if (auto done = place.source->read(FileOffset{at}, bytes_); !done) {
        bytes_.clear();
        return Failure(done.error());
      }
    }
    const std::uint64_t skip = at - begin_;
    return ByteView(bytes_).subspan(skip, std::min<std::uint64_t>(wanted, bytes_.size() - skip));
  }

  const FrameContainer& from_;
  TailWriter& out_;
  std::uint64_t copied_ = 0;
  std::uint64_t begin_ = 0;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace

Result<std::uint64_t> stored_length(const ChunkPlace& place) {
  std::array<std::uint8_t, codec::kExtendedHeaderLength> bytes{};
  const auto prefix = ByteSpan(bytes).first(std::min<std::uint64_t>(place.limit, bytes.size()));
  if (auto done = place.source->read(place.offset, prefix); !done) return Failure(done.error());
  const auto header = codec::parse_chunk_header(prefix);
  if (!header) return Failure(header.error());
  if (static_cast<std::uint64_t>(header->cbytes) > place.limit) {
    return codec::corrupt("chunk of " + std::to_string(header->cbytes) + " bytes where " + std::to_string(place.limit) +
                          " are left");
  }
  return static_cast<std::uint64_t>(header->cbytes);
}

std::int64_t special_entry_of(SpecialValue special) {
  return layout::special_entry(static_cast<std::uint64_t>(special));
}

Result<std::uint64_t> measure_dead_bytes(const FrameContainer& frame) {
  const std::int64_t count = frame.chunk_count();
  if (count == 0 || count > kMostCounted || frame.uniform_entry()) return std::uint64_t{0};
  struct Stored {
    std::uint64_t offset;  // in the chunk section
    std::int64_t chunk;
    std::uint64_t room;  // up to the next one
  };
  std::vector<Stored> stored;
  for (std::int64_t chunk = 0; chunk < count; ++chunk) {
    const auto entry = frame.index_entry(ChunkNumber{chunk});
    if (!entry) return Failure(entry.error());
    if (*entry >= 0) stored.push_back({static_cast<std::uint64_t>(*entry), chunk, 0});
  }
  const std::uint64_t section = frame.parameters().cbytes;
  if (stored.empty()) return section;
  std::sort(stored.begin(), stored.end(), [](const Stored& a, const Stored& b) { return a.offset < b.offset; });
  if (stored.back().offset > section) return codec::corrupt("chunk past the chunk section");
  for (std::size_t i = 0; i < stored.size(); ++i)
    stored[i].room = (i + 1 < stored.size() ? stored[i + 1].offset : section) - stored[i].offset;
  std::uint64_t dead = stored.front().offset;
  const std::size_t looked_at = std::min(stored.size(), kMostGaps);
  std::nth_element(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(looked_at - 1), stored.end(),
                   [](const Stored& a, const Stored& b) { return a.room > b.room; });
  for (const Stored& chunk : std::span(stored).first(looked_at)) {
    const auto place = frame.place(ChunkNumber{chunk.chunk});
    if (!place) return Failure(place.error());
    if (const auto length = stored_length(*place)) dead += chunk.room - std::min(chunk.room, *length);
  }
  return dead;
}

namespace {

/// Copies kept chunks from `chunk` on, up to `until` or as far as their entries are decoded together.
Result<std::int64_t> copy_some(const FrameContainer& from, std::int64_t chunk, std::int64_t until,
                               std::uint64_t section, ChunkCopier& copier, TailWriter& out, IndexEncoder& index) {
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
                              TailWriter& out, IndexEncoder& index) {
  ChunkCopier copier(from, out);
  auto next = pending.chunks().begin();
  const auto end = pending.chunks().end();
  const std::int64_t count = pending.chunk_count();
  for (std::int64_t chunk = 0; chunk < count;) {
    const std::int64_t changed = next == end ? count : next->first;
    if (chunk == changed) {
      const codec::EncodedChunk& encoded = next->second;
      const bool stored = encoded.special == SpecialValue::none;
      index.append(stored ? static_cast<std::int64_t>(out.position() - section) : special_entry_of(encoded.special));
      if (auto put = out.append(encoded.bytes); !put) return put;
      ++next;
      ++chunk;
    } else if (chunk < pending.kept()) {
      const auto done = copy_some(from, chunk, std::min(changed, pending.kept()), section, copier, out, index);
      if (!done) return Failure(done.error());
      chunk = *done;
    } else {
      index.append_run(layout::kZerosEntry, changed - chunk);
      chunk = changed;
    }
  }
  return {};
}

Result<void> copy_all_chunks(const FrameContainer& from, std::uint64_t section, TailWriter& out, IndexEncoder& index) {
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
