#include "frame/container/chunk_reader.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "codec/format/chunk_header.h"
#include "frame/container/chunk_prefix.h"
#include "frame/container/chunk_requests.h"

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

/// Verifies header, block starts and dictionary if they have a digest of their own. `head`: bytes of the chunk from its
/// begin on that are already read.
Result<void> check_tables(const ChunkLocation& location, const codec::ChunkDecoder& decoder, ByteView head,
                          const ChunkDigests& digests) {
  if (auto fits = digests.check_count(decoder); !fits) return fits;
  if (!digests.any() || digests.is_whole()) return {};
  const auto size = static_cast<std::size_t>(first_block_begin(decoder));
  if (size <= head.size()) return digests.check(0, head.first(size));
  const auto found = digest_of_range(*location.source, location.offset, size, digests.seed(0));
  if (!found) return Failure(found.error());
  return digests.check_value(0, *found);
}

Result<codec::ChunkDecoder> parse_stored(const ChunkLocation& location, const codec::DecodeParams& environment,
                                         const ChunkDigests& digests) {
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
  auto decoder = parse_chunk(*location.source, location.offset, *header, head, environment);
  if (!decoder) return decoder;
  if (auto good = check_tables(location, *decoder, head, digests); !good) return Failure(good.error());
  return decoder;
}

}  // namespace

Result<std::shared_ptr<const ChunkReader>> ChunkReader::open(const Container& container, ChunkNumber chunk,
                                                             const std::optional<ByteRange>& soon) {
  auto location = container.locate_chunk(chunk);
  if (!location) return Failure(location.error());
  if (location->source && location->source->is_remote()) request_chunk(container, chunk, *location, soon);
  auto digests = location->special != SpecialValue::none ? Result<ChunkDigests>() : container.digests(chunk);
  if (!digests) return Failure(at_chunk(location->source.get(), chunk, location->offset, digests.error()));
  auto decoder =
      location->special != SpecialValue::none
          ? codec::ChunkDecoder::special(location->special, location->nbytes, container.parameters().typesize)
          : parse_stored(*location, container.environment(), *digests);
  if (!decoder) {
    Error error = decoder.error();
    // Only chunks that a reader understood were sealed.
    if (error.kind == ErrorKind::unsupported && digests->any()) {
      error = corrupt("sealed, but its header is damaged: " + error.reason).value();
    }
    return Failure(at_chunk(location->source.get(), chunk, location->offset, std::move(error)));
  }
  if (location->source && decoder->block_count() > 0)
    container.note_blocksize(static_cast<std::int32_t>(decoder->block_range(0).size()));
  auto reader = std::make_shared<const ChunkReader>(Private{}, chunk, std::move(*location), std::move(*decoder),
                                                    std::move(*digests));
  // Callers never decode these chunks, because the header determines their bytes. So verify them here.
  if (reader->decoder().header().special != SpecialValue::none || reader->decoder().nbytes() == 0) {
    if (auto good = reader->verify(); !good) return Failure(good.error());
  }
  return reader;
}

ChunkReader::ChunkReader(Private, ChunkNumber chunk, ChunkLocation location, codec::ChunkDecoder decoder,
                         ChunkDigests digests)
    : chunk_(chunk),
      location_(std::move(location)),
      decoder_(std::move(decoder)),
      digests_(std::move(digests)),
      verified_(digests_.has_blocks() && decoder_.header().memcpyed ? block_units(decoder_) : 0) {}

Storage ChunkReader::storage() const {
  if (decoder_.is_zeros()) return Storage::zeros;
  return decoder_.header().memcpyed ? Storage::raw : Storage::blocks;
}

std::size_t ChunkReader::footprint() const {
  // Block starts and ranges, and a dictionary with what the codec derives from it: about twice the stored tables.
  const std::uint64_t tables = location_.source ? codec::ChunkDecoder::tables_size(decoder_.header()) : 0;
  return sizeof *this + 2 * static_cast<std::size_t>(tables) + verified_.size();
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
    const ByteRange span = group_range(begin, stop);
    const auto size = static_cast<std::size_t>(span.size());
    const ByteSpan stored = context.scratch(DecodeContext::Slot::stored, size).first(size);
    if (auto done = read_range(span, stored); !done) return done;
    for (std::uint32_t block = begin; block < stop; ++block) {
      const ByteRange range = decoder_.stored_range(block);
      const ByteSpan out = outs[block - first];
      const ByteView bytes = stored.subspan(range.begin - span.begin, range.size());
      if (auto good = check_block(block, bytes); !good) return good;
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

/// Returns the least range of the stored chunk that holds these blocks.
ByteRange ChunkReader::group_range(std::uint32_t first, std::uint32_t stop) const {
  ByteRange span = decoder_.stored_range(first);
  for (std::uint32_t block = first + 1; block < stop; ++block) {
    const ByteRange range = decoder_.stored_range(block);
    span = ByteRange{std::min(span.begin, range.begin), std::max(span.end, range.end)};
  }
  return span;
}

Result<void> ChunkReader::fetch(std::uint32_t first, std::uint32_t count) const {
  if (!is_remote() || storage() != Storage::blocks) return {};
  const std::uint32_t end = first + std::min(count, decoder_.block_count() - first);
  for (std::uint32_t begin = first; begin < end;) {
    const std::uint32_t stop = group_end(begin, end);
    const ByteRange span = group_range(begin, stop);
    const auto done = location_.source->fetch(FileOffset{location_.offset.value + span.begin}, span.size());
    if (!done) return Failure(located(done.error()));
    begin = stop;
  }
  return {};
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
    for (; begin < stop; ++begin) {
      const std::uint64_t inner = decoder_.block_range(first + static_cast<std::uint32_t>(begin)).begin;
      if (auto good = check_raw(static_cast<std::uint32_t>(inner), outs[begin]); !good) return good;
    }
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
  if (auto good = check_block(block, stored); !good) return good;
  if (auto done = decoder_.decode_partial(context, block, stored, begin, out); !done) {
    return Failure(located(done.error()));
  }
  return {};
}

Result<void> ChunkReader::read_plain(std::uint32_t inner, ByteSpan out) const {
  if (out.empty()) return {};
  if (auto good = verify(); !good) return good;
  if (!digests_.has_blocks()) {
    const std::uint64_t at = decoder_.stored_range(0).begin + inner;
    return read_range(ByteRange{at, at + out.size()}, out);
  }
  // Of units that the range has only a part of, the whole is read, once.
  std::array<std::uint8_t, kRawUnit> whole;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled before use
  const std::uint64_t payload = decoder_.stored_range(0).begin;
  for (const std::uint64_t end = inner + out.size(); inner < end;) {
    const std::uint32_t unit = inner / kRawUnit;
    const ByteRange range{std::uint64_t{unit} * kRawUnit,
                          std::min<std::uint64_t>((std::uint64_t{unit} + 1) * kRawUnit, decoder_.nbytes())};
    if (!is_verified(unit) && (inner > range.begin || end < range.end)) {
      const ByteSpan bytes = ByteSpan(whole).first(static_cast<std::size_t>(range.size()));
      if (auto done = read_range(ByteRange{payload + range.begin, payload + range.end}, bytes); !done) return done;
      if (auto good = check_block(unit, bytes); !good) return good;
      const auto part = static_cast<std::size_t>(std::min(range.end, end) - inner);
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(inner - range.begin), part, out.begin());
      inner += static_cast<std::uint32_t>(part);
      out = out.subspan(part);
      continue;
    }
    // Whole units, and parts of those that are verified, up to the next one that is neither.
    std::uint64_t until = range.end;
    while (until < end && (end - until >= kRawUnit || is_verified(static_cast<std::uint32_t>(until / kRawUnit))))
      until += kRawUnit;
    const auto part = static_cast<std::size_t>(std::min(until, end) - inner);
    if (auto done = read_range(ByteRange{payload + inner, payload + inner + part}, out.first(part)); !done) return done;
    if (auto good = check_raw(inner, out.first(part)); !good) return good;
    inner += static_cast<std::uint32_t>(part);
    out = out.subspan(part);
  }
  return {};
}

std::uint64_t ChunkReader::stored_bytes() const {
  return location_.source ? static_cast<std::uint64_t>(decoder_.header().cbytes) : 0;
}

Result<void> ChunkReader::read_stored(std::uint64_t from, ByteSpan out) const {
  if (from > stored_bytes() || out.size() > stored_bytes() - from) {
    return codec::invalid("the range ends past the " + std::to_string(stored_bytes()) + " stored bytes of the chunk");
  }
  const bool is_all = out.size() == stored_bytes() && digests_.any() && !location_.verifier;
  if (!is_all) {
    if (auto good = verify(); !good) return good;
    if (auto good = verify_blocks(); !good) return good;
  }
  if (auto done = read_range(ByteRange{from, from + out.size()}, out); !done) return done;
  if (!is_all) return {};
  // One read serves the digests, too.
  return check_all(digests_.is_whole() ? digest_of_whole(chunk_, out) : digests_of(chunk_, decoder_, out));
}

Result<std::vector<std::uint64_t>> ChunkReader::compute_digests(ChunkNumber as) const {
  auto digests = digests_of(as, decoder_, *location_.source, location_.offset);
  if (!digests) return Failure(located(digests.error()));
  return digests;
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

/// Verifies the chunk if one digest covers the whole of it.
Result<void> ChunkReader::verify() const {
  if (digests_.is_whole() && !is_whole_verified_) {
    const auto found = digest_of_range(*location_.source, location_.offset, stored_bytes(), digests_.seed(0));
    if (!found) return Failure(located(found.error()));
    if (auto good = digests_.check_value(0, *found); !good) return Failure(located(good.error()));
    is_whole_verified_ = true;
  }
  if (!location_.verifier) return {};
  const auto good = location_.verifier->verify(chunk_, location_, static_cast<std::uint64_t>(decoder_.header().cbytes));
  if (!good) return Failure(located(good.error()));
  return {};
}

/// Verifies all blocks that have digests of their own, once.
Result<void> ChunkReader::verify_blocks() const {
  if (!digests_.has_blocks() || is_whole_verified_) return {};
  const auto found = compute_digests(chunk_);
  if (!found) return Failure(found.error());
  return check_all(*found);
}

/// Verifies the chunk by the digests that its units have.
Result<void> ChunkReader::check_all(const std::vector<std::uint64_t>& found) const {
  if (found.size() != digests_.values().size())
    return Failure(located(corrupt("its blocks do not lie as they did when the chunk was sealed").value()));
  for (std::uint32_t unit = 0; unit < found.size(); ++unit) {
    if (auto good = digests_.check_value(unit, found[unit]); !good) return Failure(located(good.error()));
  }
  is_whole_verified_ = true;
  return {};
}

/// Verifies a block if it has a digest of its own. `stored`: the bytes of decoder().stored_range(block).
Result<void> ChunkReader::check_block(std::uint32_t block, ByteView stored) const {
  if (!digests_.has_blocks()) return {};
  if (auto good = digests_.check(block + 1, stored); !good) return Failure(located(good.error()));
  note_verified(block);
  return {};
}

/// Verifies the whole units in these bytes of an uncompressed chunk, which begin at `inner`.
Result<void> ChunkReader::check_raw(std::uint32_t inner, ByteView plain) const {
  if (!digests_.has_blocks()) return {};
  std::uint32_t unit = (inner + kRawUnit - 1) / kRawUnit;
  for (std::uint64_t begin = std::uint64_t{unit} * kRawUnit;; begin += kRawUnit, ++unit) {
    const std::uint64_t end = std::min<std::uint64_t>(begin + kRawUnit, decoder_.nbytes());
    if (begin >= end || end > inner + plain.size()) return {};
    const ByteView bytes =
        plain.subspan(static_cast<std::size_t>(begin - inner), static_cast<std::size_t>(end - begin));
    if (auto good = check_block(unit, bytes); !good) return good;
  }
}

bool ChunkReader::is_verified(std::uint32_t block) const {
  return block < verified_.size() && verified_[block].load(std::memory_order_relaxed);
}

void ChunkReader::note_verified(std::uint32_t block) const {
  if (block < verified_.size()) verified_[block].store(true, std::memory_order_relaxed);
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
