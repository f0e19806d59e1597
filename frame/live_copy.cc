#include "frame/live_copy.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "codec/chunk_header.h"
#include "frame/frame_layout.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::SpecialValue;

/// Small chunks lie close together: this much is read at once.
constexpr std::uint64_t kWindow = std::uint64_t{1} << 18;

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
      bytes_.resize(static_cast<std::size_t>(std::min(left, kWindow)));
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

Result<void> copy_live_chunks(const FrameContainer& from, const PendingChanges& pending, std::uint64_t section,
                              TailWriter& out, IndexEncoder& index) {
  ChunkCopier copier(from, out);
  auto next = pending.chunks().begin();
  const auto end = pending.chunks().end();
  const std::int64_t count = pending.chunk_count();
  for (std::int64_t chunk = 0; chunk < count;) {
    if (next != end && next->first == chunk) {
      const codec::EncodedChunk& encoded = next->second;
      const bool stored = encoded.special == SpecialValue::none;
      index.append(stored ? static_cast<std::int64_t>(out.position() - section) : special_entry_of(encoded.special));
      if (auto put = out.append(encoded.bytes); !put) return put;
      ++next;
      ++chunk;
    } else if (chunk < pending.kept()) {
      const auto entry = from.index_entry(ChunkNumber{chunk});
      if (!entry) return Failure(entry.error());
      index.append(*entry < 0 ? *entry : static_cast<std::int64_t>(out.position() - section));
      if (*entry >= 0) {
        auto copied = copier.copy(chunk);
        if (!copied) {
          copied.error().chunk = chunk;
          return copied;
        }
      }
      ++chunk;
    } else {
      const std::int64_t until = next == end ? count : next->first;
      index.append_run(layout::kZerosEntry, until - chunk);
      chunk = until;
    }
  }
  return {};
}

}  // namespace cframefs::frame
