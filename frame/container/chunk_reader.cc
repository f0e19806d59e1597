#include "frame/container/chunk_reader.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "codec/format/chunk_header.h"
#include "frame/container/chunk_prefix.h"

namespace cframefs::frame {

namespace {

using codec::ByteRange;
using codec::corrupt;
using codec::DecodeContext;
using codec::Failure;
using codec::SpecialValue;

/// Bytes of the first read of a chunk: header and the starts of up to 248 blocks.
constexpr std::size_t kFirstRead = 1024;

/// Most stored bytes per read. Larger reads are hardly faster but need more scratch memory.
constexpr std::uint64_t kBatchBytes = std::uint64_t{1} << 20;

/// Blocks after the last suitable one that group_end() examines; bounds the time of its search.
constexpr std::uint32_t kLookAhead = 256;

Error at_chunk(const ByteSource* source, ChunkNumber chunk, FileOffset offset, Error error) {
  if (!error.chunk) error.chunk = chunk.value;
  if (source != nullptr) {
    if (!error.file_offset) error.file_offset = source->base_offset().value + offset.value;
    const std::string label = source->label();
    if (!label.empty() && error.reason.find(label) == std::string::npos) error.reason = label + ": " + error.reason;
  }
  return error;
}

Result<codec::ChunkDecoder> parse_stored(const ChunkLocation& location, const codec::DecodeParams& environment) {
  std::array<std::uint8_t, kFirstRead> first;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled before use
  const ByteSpan head =
      ByteSpan(first).first(static_cast<std::size_t>(std::min<std::uint64_t>(location.limit, kFirstRead)));
  if (auto done = location.source->read(location.offset, head); !done) return Failure(done.error());
  const auto header = codec::parse_chunk_header(head);
  if (!header) return Failure(header.error());
  if (static_cast<std::uint64_t>(header->cbytes) > location.limit) {
    return corrupt(fmt::format("chunk of {} bytes, but only {} are left", header->cbytes, location.limit));
  }
  if (location.nbytes >= 0 && header->nbytes != location.nbytes) {
    return corrupt(fmt::format("chunk holds {} bytes, expected {}", header->nbytes, location.nbytes));
  }
  return parse_chunk(*location.source, location.offset, *header, head, environment);
}

}  // namespace

Result<std::shared_ptr<const ChunkReader>> ChunkReader::open(const Container& container, ChunkNumber chunk) {
  auto location = container.locate_chunk(chunk);
  if (!location) return Failure(location.error());
  auto decoder =
      location->special != SpecialValue::none
          ? codec::ChunkDecoder::special(location->special, location->nbytes, container.parameters().typesize)
          : parse_stored(*location, container.environment());
  if (!decoder) return Failure(at_chunk(location->source.get(), chunk, location->offset, decoder.error()));
  auto reader = std::make_shared<const ChunkReader>(Private{}, chunk, std::move(*location), std::move(*decoder));
  // Callers never decode these chunks, because the header determines their bytes. So verify them here.
  if (reader->decoder().header().special != SpecialValue::none || reader->decoder().nbytes() == 0) {
    if (auto good = reader->verify(); !good) return Failure(good.error());
  }
  return reader;
}

ChunkReader::ChunkReader(Private, ChunkNumber chunk, ChunkLocation location, codec::ChunkDecoder decoder)
    : chunk_(chunk), location_(std::move(location)), decoder_(std::move(decoder)) {}

Storage ChunkReader::storage() const {
  if (decoder_.is_zeros()) return Storage::zeros;
  return decoder_.header().memcpyed ? Storage::raw : Storage::blocks;
}

std::size_t ChunkReader::footprint() const {
  // Block starts and ranges, and a dictionary with what the codec derives from it: about twice the stored tables.
  const std::uint64_t tables = location_.source ? codec::ChunkDecoder::tables_size(decoder_.header()) : 0;
  return sizeof *this + 2 * static_cast<std::size_t>(tables);
}

Result<void> ChunkReader::decode(DecodeContext& context, std::uint32_t first, std::span<const ByteSpan> outs,
                                 ByteView reference) const {
  const std::uint32_t count = decoder_.block_count();
  if (first > count || outs.size() > count - first)
    return codec::invalid(fmt::format("blocks past block_count {}", count));
  for (std::size_t i = 0; i < outs.size(); ++i) {
    if (outs[i].size() != decoder_.block_range(first + static_cast<std::uint32_t>(i)).size()) {
      return codec::invalid(fmt::format("buffer of {} bytes does not match block {}", outs[i].size(), first + i));
    }
  }
  if (outs.empty()) return {};
  if (auto good = verify(); !good) return good;
  if (storage() == Storage::raw) return decode_plain(first, outs);
  if (decoder_.needs_reference() && first > 0 && reference.empty()) {
    return codec::invalid("blocks of a delta chunk need the plain bytes of block 0");
  }
  return decode_stored(context, first, outs, reference);
}

Result<void> ChunkReader::decode_stored(DecodeContext& context, std::uint32_t first, std::span<const ByteSpan> outs,
                                        ByteView reference) const {
  const std::uint32_t end = first + static_cast<std::uint32_t>(outs.size());
  for (std::uint32_t begin = first; begin < end;) {
    const std::uint32_t stop = group_end(begin, end);
    ByteRange span = decoder_.stored_range(begin);
    for (std::uint32_t block = begin + 1; block < stop; ++block) {
      const ByteRange range = decoder_.stored_range(block);
      span = ByteRange{std::min(span.begin, range.begin), std::max(span.end, range.end)};
    }
    const auto size = static_cast<std::size_t>(span.size());
    const ByteSpan stored = context.scratch(DecodeContext::Slot::stored, size).first(size);
    if (auto done = read_range(span, stored); !done) return done;
    for (std::uint32_t block = begin; block < stop; ++block) {
      const ByteRange range = decoder_.stored_range(block);
      const ByteSpan out = outs[block - first];
      const ByteView bytes = stored.subspan(range.begin - span.begin, range.size());
      if (auto done = decoder_.decode_block(context, block, bytes, out, reference); !done) {
        return Failure(located(done.error()));
      }
      if (block == 0 && decoder_.needs_reference() && reference.empty()) reference = out;
    }
    begin = stop;
  }
  return {};
}

/// Returns the end (exclusive) of the blocks from `first` to read together: they lie, in any order, in one range of at
/// most kBatchBytes of which at least half are theirs.
std::uint32_t ChunkReader::group_end(std::uint32_t first, std::uint32_t end) const {
  ByteRange span = decoder_.stored_range(first);
  std::uint64_t useful = span.size();
  std::uint32_t best = first + 1;
  for (std::uint32_t block = first + 1; block < end && block - best < kLookAhead; ++block) {
    const ByteRange range = decoder_.stored_range(block);
    span = ByteRange{std::min(span.begin, range.begin), std::max(span.end, range.end)};
    useful += range.size();
    if (span.size() > kBatchBytes) break;
    if (span.size() <= 2 * useful) best = block + 1;
  }
  return best;
}

/// Reads the payload of a memcpyed chunk directly into `outs`; one read fills adjacent buffers.
Result<void> ChunkReader::decode_plain(std::uint32_t first, std::span<const ByteSpan> outs) const {
  for (std::size_t begin = 0; begin < outs.size();) {
    std::size_t stop = begin + 1;
    std::size_t size = outs[begin].size();
    while (stop < outs.size() && outs[stop].data() == outs[begin].data() + size)
      size += outs[stop++].size();
    const std::uint64_t at = decoder_.stored_range(first + static_cast<std::uint32_t>(begin)).begin;
    if (auto done = read_range(ByteRange{at, at + size}, ByteSpan(outs[begin].data(), size)); !done) return done;
    begin = stop;
  }
  return {};
}

Result<void> ChunkReader::decode_partial(DecodeContext& context, std::uint32_t block, std::uint32_t begin,
                                         ByteSpan out) const {
  if (!decoder_.decodes_partial(block)) return codec::invalid(fmt::format("block {} cannot be decoded in part", block));
  if (auto good = verify(); !good) return good;
  const ByteRange range = decoder_.stored_range(block);
  const auto size = static_cast<std::size_t>(range.size());
  const ByteSpan stored = context.scratch(DecodeContext::Slot::stored, size).first(size);
  if (auto done = read_range(range, stored); !done) return done;
  if (auto done = decoder_.decode_partial(context, block, stored, begin, out); !done) {
    return Failure(located(done.error()));
  }
  return {};
}

Result<void> ChunkReader::read_plain(std::uint32_t inner, ByteSpan out) const {
  if (out.empty()) return {};
  if (auto good = verify(); !good) return good;
  const std::uint64_t at = decoder_.stored_range(0).begin + inner;
  return read_range(ByteRange{at, at + out.size()}, out);
}

std::uint64_t ChunkReader::stored_bytes() const {
  return location_.source ? static_cast<std::uint64_t>(decoder_.header().cbytes) : 0;
}

Result<void> ChunkReader::read_stored(std::uint64_t from, ByteSpan out) const {
  if (from > stored_bytes() || out.size() > stored_bytes() - from) {
    return codec::invalid("the range ends past the " + std::to_string(stored_bytes()) + " stored bytes of the chunk");
  }
  if (auto good = verify(); !good) return good;
  return read_range(ByteRange{from, from + out.size()}, out);
}

Result<void> ChunkReader::read_range(const ByteRange& range, ByteSpan into) const {
  if (into.empty()) return {};
  const auto done = location_.source->read(FileOffset{location_.offset.value + range.begin}, into);
  if (!done) return Failure(located(done.error()));
  return {};
}

std::uint64_t ChunkReader::scratch_bytes(std::uint32_t first, std::uint32_t count) const {
  if (!location_.source || storage() == Storage::raw) return 0;
  std::uint64_t total = 0;
  std::uint64_t largest_stored = 0;
  std::uint64_t largest_plain = 0;
  const std::uint32_t end = first + std::min(count, decoder_.block_count() - first);
  for (std::uint32_t block = first; block < end; ++block) {
    const std::uint64_t stored = decoder_.stored_range(block).size();
    total += stored;
    largest_stored = std::max(largest_stored, stored);
    largest_plain = std::max(largest_plain, decoder_.block_range(block).size());
  }
  // A group is one block, or at most kBatchBytes of which at least half belongs to its blocks.
  const std::uint64_t group = std::max(largest_stored, std::min(kBatchBytes, 2 * total));
  return group + largest_plain;
}

/// Checks the chunk's digest, if there is one.
Result<void> ChunkReader::verify() const {
  if (!location_.verifier) return {};
  const auto good = location_.verifier->verify(chunk_, location_, static_cast<std::uint64_t>(decoder_.header().cbytes));
  if (!good) return Failure(located(good.error()));
  return {};
}

Error ChunkReader::located(Error error) const {
  return at_chunk(location_.source.get(), chunk_, location_.offset, std::move(error));
}

Result<void> decode_whole(DecodeContext& context, const ChunkReader& reader, ByteSpan out) {
  const codec::ChunkDecoder& decoder = reader.decoder();
  if (out.size() != decoder.nbytes())
    return codec::invalid(
        fmt::format("buffer of {} bytes does not match the chunk of {}", out.size(), decoder.nbytes()));
  constexpr std::uint32_t kSpans = 256;
  std::array<ByteSpan, kSpans> spans;
  ByteView reference;
  for (std::uint32_t first = 0; first < decoder.block_count();) {
    const std::uint32_t count = std::min(kSpans, decoder.block_count() - first);
    for (std::uint32_t i = 0; i < count; ++i) {
      const ByteRange range = decoder.block_range(first + i);
      spans[i] = out.subspan(range.begin, range.size());
    }
    if (auto done = reader.decode(context, first, std::span(spans).first(count), reference); !done) return done;
    if (first == 0 && decoder.needs_reference()) reference = spans[0];
    first += count;
  }
  return {};
}

}  // namespace cframefs::frame
