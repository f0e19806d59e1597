#include "frame/compat/chunk_scan.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "codec/format/chunk_header.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

/// Bytes per read of chunk headers, which serves chunks that lie close together.
constexpr std::uint64_t kHeaderWindow = 4096;
/// Greatest number of chunks, which bounds the memory for their offsets; real files have fewer.
constexpr std::size_t kMaxChunks = std::size_t{1} << 24;
// Offsets per read.
constexpr std::size_t kOffsetsAtOnce = 8192;

/// The bytes of the latest read.
class HeaderWindow {
 public:
  explicit HeaderWindow(const ByteSource& source) : source_(source) {}

  /// REQUIRES: at <= source.size().
  Result<ByteView> get(std::uint64_t at) {
    const std::uint64_t wanted = std::min<std::uint64_t>(codec::kExtendedHeaderLength, source_.size() - at);
    if (at < begin_ || at + wanted > begin_ + bytes_.size()) {
      bytes_.resize(static_cast<std::size_t>(std::min(kHeaderWindow, source_.size() - at)));
      begin_ = at;
      if (auto done = source_.read(FileOffset{at}, bytes_); !done) return Failure(done.error());
    }
    return ByteView(bytes_).subspan(at - begin_, wanted);
  }

 private:
  const ByteSource& source_;
  std::uint64_t begin_ = 0;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace

Result<ChunkOffsets> walk_chunks(const ByteSource& source, std::uint64_t begin, std::uint64_t gap, std::int64_t count) {
  ChunkOffsets chunks;
  chunks.plain.push_back(0);
  chunks.end = begin;
  HeaderWindow window(source);
  const auto stop = [&](Error error) {
    error.chunk = static_cast<std::int64_t>(chunks.begins.size());
    error.file_offset = source.base_offset().value + chunks.end;
    chunks.damage = std::move(error);
  };
  const auto wanted = static_cast<std::uint64_t>(count);  // -1 becomes the largest number
  while (chunks.begins.size() < wanted && !(count < 0 && chunks.end == source.size())) {
    if (chunks.begins.size() == kMaxChunks) {
      stop(codec::unsupported(fmt::format("the file has more than {} chunks", kMaxChunks)).value());
      break;
    }
    const auto bytes = window.get(chunks.end);
    if (!bytes) return Failure(bytes.error());
    const auto header = codec::parse_chunk_header(*bytes);
    if (!header) {
      stop(header.error());
      break;
    }
    const auto length = static_cast<std::uint64_t>(header->cbytes) + gap;
    if (length > source.size() - chunks.end) {
      stop(corrupt(fmt::format("chunk of {} bytes, but only {} are left", header->cbytes, source.size() - chunks.end))
               .value());
      break;
    }
    chunks.begins.push_back(chunks.end);
    chunks.plain.push_back(chunks.plain.back() + static_cast<std::uint64_t>(header->nbytes));
    chunks.end += length;
  }
  return chunks;
}

Result<std::optional<ChunkOffsets>> read_offsets(const ByteSource& source, std::uint64_t at, std::int64_t count,
                                                 std::uint64_t begin, std::uint64_t gap) {
  if (static_cast<std::uint64_t>(count) > kMaxChunks) return std::optional<ChunkOffsets>();
  ChunkOffsets chunks;
  chunks.end = source.size();
  std::uint64_t least = begin;
  // Read in parts and check each: a section that is a hole must not cost more than its first part.
  std::vector<std::int64_t> offsets(std::min(static_cast<std::size_t>(count), kOffsetsAtOnce));
  for (auto left = static_cast<std::size_t>(count); left > 0; left -= offsets.size()) {
    offsets.resize(std::min(left, offsets.size()));
    const auto bytes = codec::bytes_of(std::span(offsets));
    if (auto done = source.read(FileOffset{at}, bytes); !done) return Failure(done.error());
    at += bytes.size();
    codec::from_little_endian(std::span(offsets));
    for (const std::int64_t offset : offsets) {
      const auto here = static_cast<std::uint64_t>(offset);
      if (offset < 0 || here < least || here > source.size() || source.size() - here < codec::kMinHeaderLength + gap) {
        return std::optional<ChunkOffsets>();
      }
      chunks.begins.push_back(here);
      least = here + codec::kMinHeaderLength + gap;
    }
  }
  chunks.begins.shrink_to_fit();  // kept while the file is open
  return std::optional<ChunkOffsets>(std::move(chunks));
}

}  // namespace cframefs::frame
