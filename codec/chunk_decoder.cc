#include "codec/chunk_decoder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include <fmt/core.h>

#include "codec/stream/stream_decoders.h"
#include "codec/stream/streams.h"

namespace cframefs::codec {
namespace {

// Bytes per block of memcpyed and special chunks.
constexpr std::uint32_t kPieceBytes = 64 << 10;
constexpr std::size_t kLengthField = 4;
// Stored bytes that a block may have beyond those of its uncompressed streams.
constexpr std::uint32_t kSlack = 64;

// Returns the quiet NaN of the reference library, little-endian on every machine.
std::vector<std::uint8_t> nan_value(std::int32_t typesize) {
  if (typesize == 4) return {0, 0, 0xc0, 0x7f};
  return {0, 0, 0, 0, 0, 0, 0xf8, 0x7f};
}

// Fills `out` with the endlessly repeated `value`, from offset `begin` of that sequence. Empty `value`: zeros.
void fill_pattern(ByteView value, std::uint64_t begin, ByteSpan out) {
  if (out.empty()) return;
  if (value.empty()) {
    std::memset(out.data(), 0, out.size());
    return;
  }
  const auto phase = static_cast<std::size_t>(begin % value.size());
  const std::size_t head = std::min(out.size(), value.size() - phase);
  std::memcpy(out.data(), &value[phase], head);
  const std::size_t rest = std::min(out.size() - head, phase);
  std::memcpy(out.data() + head, value.data(), rest);
  // The filled prefix is a multiple of the period, so double it.
  for (std::size_t done = head + rest; done < out.size();) {
    const std::size_t more = std::min(done, out.size() - done);
    std::memcpy(out.data() + done, out.data(), more);
    done += more;
  }
}

bool has_blocks(const ChunkHeader& header) {
  return header.nbytes > 0 && !header.memcpyed && header.special == SpecialValue::none;
}

Failure in_block(std::uint32_t block, Error error) {
  error.reason = fmt::format("block {}: {}", block, error.reason);
  return Failure(std::move(error));
}

// Reads the dictionary after the block starts. `at`: offset of its length field; moved to the end of the dictionary.
Result<std::shared_ptr<const Dictionary>> read_dictionary(ByteView prefix, const ChunkHeader& header,
                                                          std::uint64_t& at) {
  const auto cbytes = static_cast<std::uint64_t>(header.cbytes);
  if (at + kLengthField > cbytes || at + kLengthField > prefix.size()) return corrupt("the dictionary is missing");
  const auto size = load_le<std::int32_t>(&prefix[at]);
  at += kLengthField;
  if (size <= 0 || size > kMaxDictionaryBytes || at + static_cast<std::uint64_t>(size) > cbytes) {
    return corrupt(
        fmt::format("dictionary of {} bytes, allowed are 1 to {} within the chunk", size, kMaxDictionaryBytes));
  }
  const auto length = static_cast<std::size_t>(size);
  if (at + length > prefix.size()) return invalid("the prefix ends inside the dictionary");
  const ByteView bytes = prefix.subspan(at, length);
  at += length;
  return decoder_dictionary(header.format, header.compcode, bytes);
}

}  // namespace

std::uint64_t ChunkDecoder::prefix_size(const ChunkHeader& header) {
  const auto cbytes = static_cast<std::uint64_t>(header.cbytes);
  if (header.special == SpecialValue::repeated) return cbytes;
  if (!has_blocks(header)) return header.length;
  if (header.vl_blocks) return cbytes;
  return tables_size(header);
}

std::uint64_t ChunkDecoder::tables_size(const ChunkHeader& header) {
  const auto cbytes = static_cast<std::uint64_t>(header.cbytes);
  const std::uint64_t starts = header.length + std::uint64_t{4} * block_geometry(header).count;
  return header.dictionary ? std::min(cbytes, starts + kLengthField + kMaxDictionaryBytes) : starts;
}

Result<ChunkDecoder> ChunkDecoder::parse(ByteView prefix, const DecodeParams& params) {
  Result<ChunkHeader> header = parse_chunk_header(prefix);
  if (!header) return Failure(std::move(header.error()));
  if (prefix.size() < prefix_size(*header)) return corrupt("the chunk is truncated");

  ChunkDecoder decoder;
  decoder.header_ = *header;
  if (has_blocks(*header)) {
    decoder.kind_ = Kind::streams;
    if (Result<void> parsed = decoder.parse_blocks(prefix, params); !parsed) return Failure(parsed.error());
    if (!header->vl_blocks) return decoder;
    std::vector<std::int32_t> lengths;
    for (const StoredBlock& block : decoder.blocks_)
      lengths.push_back(load_le<std::int32_t>(&prefix[block.begin]));
    if (Result<void> parsed = decoder.parse_lengths(lengths); !parsed) return Failure(parsed.error());
    return decoder;
  }
  decoder.geometry_.blocksize = kPieceBytes;
  decoder.block_count_ = (decoder.nbytes() + kPieceBytes - 1) / kPieceBytes;
  if (header->memcpyed) {
    decoder.kind_ = Kind::memcpyed;
  } else if (header->special == SpecialValue::repeated) {
    const ByteView value = prefix.subspan(header->length, static_cast<std::size_t>(header->cbytes) - header->length);
    decoder.value_.assign(value.begin(), value.end());
  } else if (header->special == SpecialValue::nan) {
    decoder.value_ = nan_value(header->typesize);
  }
  return decoder;
}

Result<ChunkDecoder> ChunkDecoder::parse_vl(ByteView tables, std::span<const std::int32_t> lengths,
                                            const DecodeParams& params) {
  Result<ChunkHeader> header = parse_chunk_header(tables);
  if (!header) return Failure(std::move(header.error()));
  if (!header->vl_blocks || !has_blocks(*header))
    return invalid("block lengths for a chunk without variable-length blocks");
  if (tables.size() < tables_size(*header)) return corrupt("the chunk is truncated");
  ChunkDecoder decoder;
  decoder.header_ = *header;
  decoder.kind_ = Kind::streams;
  if (Result<void> parsed = decoder.parse_blocks(tables, params); !parsed) return Failure(parsed.error());
  if (Result<void> parsed = decoder.parse_lengths(lengths); !parsed) return Failure(parsed.error());
  return decoder;
}

Result<void> ChunkDecoder::parse_lengths(std::span<const std::int32_t> lengths) {
  Result<std::vector<std::uint32_t>> offsets = read_vl_offsets(lengths, header_, blocks_);
  if (!offsets) return Failure(std::move(offsets.error()));
  vl_offsets_ = std::move(*offsets);
  return {};
}

// Limits the stored range of each block to the length of its uncompressed streams plus kSlack: writers store a stream
// uncompressed if it does not shrink. Without the limit, a block whose start coincides with others, or is far from the
// next higher start, would extend far past its streams.
void ChunkDecoder::cut_slack() {
  for (std::uint32_t block = 0; block < block_count_; ++block) {
    const std::uint64_t most = block_range(block).size() + kLengthField * stream_count(header_, geometry_, block);
    StoredBlock& stored = blocks_[block];
    if (stored.end - stored.begin > most + kSlack)
      stored.end = static_cast<std::uint32_t>(stored.begin + most + kSlack);
  }
}

Result<void> ChunkDecoder::parse_blocks(ByteView prefix, const DecodeParams& params) {
  geometry_ = block_geometry(header_);
  block_count_ = geometry_.count;
  if (header_.format == CodecFormat::registered) blockshape_ = params.blockshape;
  std::uint64_t blocks_begin = header_.length + std::uint64_t{4} * block_count_;
  if (header_.dictionary) {
    Result<std::shared_ptr<const Dictionary>> dictionary = read_dictionary(prefix, header_, blocks_begin);
    if (!dictionary) return Failure(std::move(dictionary.error()));
    dictionary_ = std::move(*dictionary);
  }
  Result<FilterDecoder> pipeline = FilterDecoder::create(header_, params);
  if (!pipeline) return Failure(std::move(pipeline.error()));
  pipeline_ = std::move(*pipeline);
  needs_reference_ = pipeline_.needs_reference() && block_count_ > 1;

  Result<std::vector<StoredBlock>> blocks = read_block_starts(prefix, header_, block_count_, blocks_begin);
  if (!blocks) return Failure(std::move(blocks.error()));
  blocks_ = std::move(*blocks);
  if (!header_.vl_blocks) cut_slack();
  return {};
}

Result<ChunkDecoder> ChunkDecoder::special(SpecialValue value, std::int32_t nbytes, std::int32_t typesize) {
  if (value == SpecialValue::nan && typesize != 4 && typesize != 8) {
    return unsupported(fmt::format("NaN of typesize {}, allowed are 4 and 8", typesize));
  }
  if (value != SpecialValue::zeros && (typesize <= 0 || nbytes % typesize != 0)) {
    return corrupt(fmt::format("nbytes {} of a special chunk is no multiple of typesize {}", nbytes, typesize));
  }
  ChunkDecoder decoder;
  ChunkHeader& header = decoder.header_;
  header.version = 5;
  header.flags = 0x05;
  header.length = kExtendedHeaderLength;
  header.typesize = typesize < 1 || typesize > 255 ? 1 : typesize;
  header.nbytes = nbytes;
  header.blocksize = std::max(nbytes, 1);
  header.cbytes = kExtendedHeaderLength;
  header.special = value;
  decoder.geometry_.blocksize = kPieceBytes;
  decoder.block_count_ = (decoder.nbytes() + kPieceBytes - 1) / kPieceBytes;
  if (value == SpecialValue::nan) decoder.value_ = nan_value(typesize);
  return decoder;
}

bool ChunkDecoder::is_zeros() const {
  return header_.special == SpecialValue::zeros || header_.special == SpecialValue::uninitialised;
}

ByteRange ChunkDecoder::block_range(std::uint32_t block) const {
  if (!vl_offsets_.empty()) return {vl_offsets_[block], vl_offsets_[block + 1]};
  const std::uint64_t begin = std::uint64_t{block} * geometry_.blocksize;
  return {begin, std::min<std::uint64_t>(begin + geometry_.blocksize, nbytes())};
}

std::uint32_t ChunkDecoder::block_at(std::uint32_t inner) const {
  if (vl_offsets_.empty()) return inner / geometry_.blocksize;
  const auto after = std::upper_bound(vl_offsets_.begin(), vl_offsets_.end(), inner);
  return static_cast<std::uint32_t>(after - vl_offsets_.begin()) - 1;
}

ByteRange ChunkDecoder::stored_range(std::uint32_t block) const {
  switch (kind_) {
    case Kind::pattern:
      return {};
    case Kind::memcpyed: {
      // The payload is the end of the chunk (chunk.md section 2).
      const std::uint64_t payload = static_cast<std::uint64_t>(header_.cbytes) - nbytes();
      const ByteRange plain = block_range(block);
      return {payload + plain.begin, payload + plain.end};
    }
    case Kind::streams:
      break;
  }
  const StoredBlock& own = blocks_[block];
  if (!borrows_tail(block)) return {own.begin, own.end};
  const StoredBlock& before = blocks_[block - 1];
  return {std::min(own.begin, before.begin), std::max(own.end, before.end)};
}

bool ChunkDecoder::borrows_tail(std::uint32_t block) const {
  return block > 0 && pipeline_.missing_tail(block_range(block).size()) > 0;
}

Result<void> ChunkDecoder::decode_block(DecodeContext& context, std::uint32_t block, ByteView stored, ByteSpan out,
                                        ByteView reference) const {
  if (block >= block_count_) return invalid(fmt::format("the chunk has no block {}", block));
  const ByteRange plain = block_range(block);
  if (out.size() != plain.size() || stored.size() != stored_range(block).size()) {
    return invalid(fmt::format("buffer sizes do not match block {}", block));
  }
  switch (kind_) {
    case Kind::pattern:
      fill_pattern(value_, plain.begin, out);
      return {};
    case Kind::memcpyed:
      std::memcpy(out.data(), stored.data(), out.size());
      return {};
    case Kind::streams:
      break;
  }
  if (block == 0 || !needs_reference_) {
    reference = {};
  } else if (reference.size() != block_range(0).size()) {
    return invalid(fmt::format("block {} needs the plain bytes of block 0", block));
  }
  Result<void> decoded = decode_streams(context, block, stored, out, reference);
  if (!decoded) return in_block(block, std::move(decoded.error()));
  return decoded;
}

StreamCodec ChunkDecoder::stream_codec() const {
  return {header_.format, header_.compcode, dictionary_.get(), header_.compcode_meta, header_.typesize, blockshape_};
}

// `stored`: exactly the stored bytes of that block.
Result<void> ChunkDecoder::parse_streams(std::uint32_t block, ByteView stored, BlockStreams& streams) const {
  const auto length = static_cast<std::uint32_t>(block_range(block).size());
  const StreamCodec codec = stream_codec();
  if (header_.vl_blocks) return streams.parse_vl(stored, length, codec);
  return streams.parse(stored, stream_count(header_, geometry_, block), length, header_.extended(), codec);
}

Result<void> ChunkDecoder::decode_streams(DecodeContext& context, std::uint32_t block, ByteView stored, ByteSpan out,
                                          ByteView reference) const {
  const std::size_t own = blocks_[block].begin - stored_range(block).begin;
  BlockStreams streams;
  Result<void> parsed = parse_streams(block, stored.subspan(own, blocks_[block].end - blocks_[block].begin), streams);
  if (!parsed) return parsed;
  const std::size_t length = out.size();
  const bool tail_lost = pipeline_.missing_tail(length) > 0;
  if (!tail_lost && pipeline_.keeps_zeros() && streams.all_zeros()) {
    std::memset(out.data(), 0, length);
    return {};
  }
  const StreamCodec codec = stream_codec();
  if (pipeline_.fuses_unshuffle(streams.count(), length)) {
    std::array<Plane, kMaxPlanes> planes;
    const std::span<Plane> used(planes.data(), streams.count());
    const ByteSpan scratch = context.scratch(DecodeContext::Slot::streams, length).first(length);
    Result<void> decoded = streams.decode_planes(context.states(), codec, scratch, used);
    if (decoded) unshuffle_planes(used, out);
    return decoded;
  }
  const std::size_t swaps = pipeline_.swap_count(length);
  ByteSpan other;
  if (swaps > 0) other = context.scratch(DecodeContext::Slot::streams, length).first(length);
  const ByteSpan filtered = swaps % 2 == 0 ? out : other;
  Result<void> decoded = streams.decode(context.states(), codec, filtered);
  if (decoded && tail_lost) decoded = restore_tail(context, block, stored, filtered);
  if (!decoded) return decoded;
  return pipeline_.undo(out, other, reference);
}

std::vector<std::uint8_t> ChunkDecoder::repeated_bytes(std::uint32_t block, ByteView stored) const {
  if (!decodes_partial(block) || stored.size() != stored_range(block).size()) return {};
  BlockStreams streams;
  if (!parse_streams(block, stored, streams)) return {};
  std::vector<std::uint8_t> values = streams.run_values();
  if (values.empty()) return values;
  if (std::all_of(values.begin(), values.end(), [&](std::uint8_t value) { return value == values.front(); })) {
    values.resize(1);
    return values;
  }
  if (pipeline_.fuses_unshuffle(streams.count(), static_cast<std::size_t>(block_range(block).size()))) return values;
  return {};
}

bool ChunkDecoder::decodes_partial(std::uint32_t block) const {
  return kind_ == Kind::streams && block < block_count_ && pipeline_.supports_partial();
}

Result<void> ChunkDecoder::decode_partial(DecodeContext& context, std::uint32_t block, ByteView stored,
                                          std::uint32_t begin, ByteSpan out) const {
  if (!decodes_partial(block)) return invalid(fmt::format("block {} cannot be decoded in part", block));
  const auto length = static_cast<std::size_t>(block_range(block).size());
  if (begin > length || out.size() > length - begin || stored.size() != stored_range(block).size()) {
    return invalid(fmt::format("buffer sizes do not match block {}", block));
  }
  BlockStreams streams;
  if (Result<void> parsed = parse_streams(block, stored, streams); !parsed) {
    return in_block(block, std::move(parsed.error()));
  }
  if (streams.all_zeros()) {
    std::fill(out.begin(), out.end(), std::uint8_t{0});
    return {};
  }
  const ByteSpan filtered = context.scratch(DecodeContext::Slot::streams, length).first(length);
  if (pipeline_.fuses_unshuffle(streams.count(), length)) {
    std::array<Plane, kMaxPlanes> planes;
    const std::span<Plane> used(planes.data(), streams.count());
    Result<void> decoded = streams.decode_planes(context.states(), stream_codec(), filtered, used);
    if (!decoded) return in_block(block, std::move(decoded.error()));
    unshuffle_window(used, begin, out);
    return {};
  }
  if (Result<void> decoded = streams.decode(context.states(), stream_codec(), filtered); !decoded) {
    return in_block(block, std::move(decoded.error()));
  }
  const ByteSpan scratch = context.scratch(DecodeContext::Slot::partial, pipeline_.window_scratch(out.size()));
  pipeline_.undo_window(filtered, begin, out, scratch);
  return {};
}

// Restores the bytes that filter 34 did not store. `stored`: the bytes of stored_range(block), which then include the
// previous block.
Result<void> ChunkDecoder::restore_tail(DecodeContext& context, std::uint32_t block, ByteView stored,
                                        ByteSpan filtered) const {
  if (block == 0) return unsupported("filter 34 (bytedelta) did not store the end of block 0");
  const StoredBlock& before = blocks_[block - 1];
  BlockStreams streams;
  const ByteView bytes = stored.subspan(before.begin - stored_range(block).begin, before.end - before.begin);
  if (Result<void> parsed = parse_streams(block - 1, bytes, streams); !parsed) return parsed;
  const std::size_t length = block_range(block - 1).size();
  // The slot is free: tails are restored only in pipelines that need no reference.
  const ByteSpan previous = context.scratch(DecodeContext::Slot::reference, length).first(length);
  const StreamCodec codec = stream_codec();
  if (Result<void> decoded = streams.decode(context.states(), codec, previous); !decoded) return decoded;
  return pipeline_.restore_tail(previous, filtered);
}

Result<void> decode_range(DecodeContext& context, const ChunkDecoder& decoder, ByteView chunk, std::uint32_t begin,
                          ByteSpan out) {
  if (begin > decoder.nbytes() || out.size() > decoder.nbytes() - begin)
    return invalid(fmt::format("the range ends beyond nbytes {}", decoder.nbytes()));
  if (chunk.size() < static_cast<std::size_t>(decoder.header_.cbytes))
    return invalid(fmt::format("chunk of {} bytes, cbytes is {}", chunk.size(), decoder.header_.cbytes));
  if (out.empty()) return {};
  if (decoder.kind_ == ChunkDecoder::Kind::pattern) {
    fill_pattern(decoder.value_, begin, out);
    return {};
  }
  if (decoder.kind_ == ChunkDecoder::Kind::memcpyed) {
    const std::size_t payload = static_cast<std::size_t>(decoder.header_.cbytes) - decoder.nbytes();
    std::memcpy(out.data(), &chunk[payload + begin], out.size());
    return {};
  }

  const auto stored = [&](std::uint32_t block) {
    const ByteRange range = decoder.stored_range(block);
    return chunk.subspan(range.begin, range.size());
  };
  const std::uint64_t end = begin + out.size();
  const std::uint32_t first = decoder.block_at(begin);
  const std::uint32_t last = decoder.block_at(static_cast<std::uint32_t>(end - 1));
  ByteView reference;
  if (decoder.needs_reference() && last > 0) {
    const ByteRange zero = decoder.block_range(0);
    // If the range starts with all of block 0, the loop below decodes block 0 first, directly into `out`.
    if (begin == 0) {
      reference = out.first(zero.size());
    } else {
      const ByteSpan place = context.scratch(DecodeContext::Slot::reference, zero.size()).first(zero.size());
      if (Result<void> decoded = decoder.decode_block(context, 0, stored(0), place); !decoded) return decoded;
      reference = place;
    }
  }
  for (std::uint32_t block = first; block <= last; ++block) {
    const ByteRange plain = decoder.block_range(block);
    const std::uint64_t from = std::max<std::uint64_t>(plain.begin, begin);
    const std::uint64_t to = std::min(plain.end, end);
    const ByteSpan wanted = out.subspan(from - begin, to - from);
    const bool whole = wanted.size() == plain.size();
    const ByteSpan place =
        whole ? wanted : context.scratch(DecodeContext::Slot::partial, plain.size()).first(plain.size());
    Result<void> decoded = decoder.decode_block(context, block, stored(block), place, reference);
    if (!decoded) return decoded;
    if (!whole) std::memcpy(wanted.data(), &place[from - plain.begin], wanted.size());
  }
  return {};
}

}  // namespace cframefs::codec
