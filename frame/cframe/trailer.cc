#include "frame/cframe/trailer.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/core.h>

#include "codec/chunk_decoder.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;
using codec::load_be;
using namespace layout;

/// Bytes that the stored content may take beyond twice its uncompressed length: header and block starts.
constexpr std::uint64_t kFreeOverhead = std::uint64_t{64} << 10;

Failure trouble(const std::string& name, const std::string& what) {
  return corrupt("variable-length metalayer '" + name + "' " + what);
}

/// Decodes the blocks one after the other into `plain`, whose memory is taken from the budget.
Result<void> decode_blocks(const codec::ChunkDecoder& decoder, ByteView stored, ParseBudget& budget,
                           const std::string& thing, std::vector<std::uint8_t>& plain) {
  codec::DecodeContext context;
  for (std::uint32_t block = 0; block < decoder.block_count(); ++block) {
    const codec::ByteRange range = decoder.block_range(block);
    if (range.size() > plain.size()) {
      if (auto may = budget.take_memory(range.size() - plain.size(), thing); !may) return may;
      plain.resize(range.size());
    }
    const ByteSpan out = ByteSpan(plain).first(range.size());
    auto done = codec::decode_range(context, decoder, stored, static_cast<std::uint32_t>(range.begin), out);
    if (!done) return done;
  }
  return {};
}

}  // namespace

Result<Trailer> read_trailer(RangeBuffer& windows, const FrameHeader& header) {
  const std::uint64_t frame_length = header.parameters.frame_length;
  const std::uint64_t header_length = header.parameters.header_length;
  const auto end = windows.get(FileOffset{frame_length - kTrailerEnd}, kTrailerEnd);
  if (!end) return Failure(end.error());
  if ((*end)[0] != kUint32) return corrupt("the frame does not end in a trailer");
  Trailer trailer;
  trailer.length = load_be<std::uint32_t>(&(*end)[1]);
  if (trailer.length < kMinTrailerLength || trailer.length > frame_length - header_length) {
    return corrupt(fmt::format("trailer length {} does not fit into the frame", trailer.length));
  }
  trailer.begin = frame_length - trailer.length;

  // Reads as many bytes as the map can have. Nearly always they lie in the window that was read already.
  const std::uint64_t body = trailer.length - kTrailerMapAt - kTrailerEnd;
  const std::uint64_t longest = kMapEntriesAt + kMaxVlmetalayers * kMaxMapEntry + 3;
  const auto most = static_cast<std::size_t>(std::min(body, longest));
  const FileOffset map_at{trailer.begin + kTrailerMapAt};
  const auto start = windows.get(map_at, std::min(most, kMapEntriesAt));
  if (!start) return Failure(start.error());
  std::size_t wanted = most;
  if (start->size() == kMapEntriesAt) {
    const std::size_t count = load_be<std::uint16_t>(&(*start)[kMapCountAt]);
    wanted = std::min(most, kMapEntriesAt + count * kMaxMapEntry + 3);
  }
  const auto map = windows.get(map_at, wanted);
  if (!map) return Failure(map.error());
  trailer.map = parse_map(*map, kMaxVlmetalayers);
  return trailer;
}

Result<VlmetaChunk> look_at_vlmetalayer(const ByteSource& source, const std::string& name, FileOffset offset,
                                        std::uint64_t stored) {
  std::array<std::uint8_t, codec::kExtendedHeaderLength> bytes{};
  const ByteSpan first = ByteSpan(bytes).first(static_cast<std::size_t>(std::min<std::uint64_t>(stored, bytes.size())));
  if (auto done = source.read(offset, first); !done) return Failure(done.error());
  const auto header = codec::parse_chunk_header(first);
  if (!header) return trouble(name, "is damaged: " + header.error().reason);
  VlmetaChunk chunk{name, offset, stored, *header};
  if (static_cast<std::uint64_t>(header->cbytes) != stored) {
    return trouble(name, fmt::format("has a content of {} bytes, but its chunk has {}", stored, header->cbytes));
  }
  if (chunk.nbytes() > kMaxVlmetalayer) {
    return codec::unsupported(fmt::format("variable-length metalayer '{}' has {} bytes, at most {} are supported", name,
                                          chunk.nbytes(), kMaxVlmetalayer));
  }
  if (stored > 2 * chunk.nbytes() + kFreeOverhead) {
    return trouble(name, fmt::format("takes {} bytes for {} uncompressed", stored, chunk.nbytes()));
  }
  return chunk;
}

Result<VlmetaChunk> find_vlmetalayer(const ByteSource& source, const Trailer& trailer, const MapEntry& entry) {
  const std::uint64_t end = trailer.length - kTrailerEnd;
  if (entry.offset < 0) return trouble(entry.name, "lies before the trailer");
  const auto at = static_cast<std::uint64_t>(entry.offset);
  if (at > end || end - at < kContentPrefix) return trouble(entry.name, "lies past the trailer");
  std::array<std::uint8_t, kContentPrefix> prefix{};
  if (auto done = source.read(FileOffset{trailer.begin + at}, prefix); !done) return Failure(done.error());
  if (prefix[0] != kBin32) return trouble(entry.name, "has no content where its offset points");
  const std::uint64_t length = load_be<std::uint32_t>(&prefix[1]);
  if (length > end - at - kContentPrefix) return trouble(entry.name, "reaches past the trailer");
  return look_at_vlmetalayer(source, entry.name, FileOffset{trailer.begin + at + kContentPrefix}, length);
}

Result<std::vector<std::uint8_t>> read_vlmetalayer(const ByteSource& source, const VlmetaChunk& chunk) {
  std::vector<std::uint8_t> stored(static_cast<std::size_t>(chunk.stored));
  if (auto done = source.read(chunk.offset, stored); !done) return Failure(done.error());
  const auto decoder = codec::ChunkDecoder::parse(stored);
  if (!decoder) return Failure(decoder.error());
  std::vector<std::uint8_t> plain(decoder->nbytes());
  codec::DecodeContext context;
  if (auto done = codec::decode_range(context, *decoder, stored, 0, plain); !done) return Failure(done.error());
  return plain;
}

Result<std::vector<std::uint8_t>> read_stored_vlmetalayer(const ByteSource& source, const VlmetaChunk& chunk,
                                                          ParseBudget& budget) {
  const std::string thing = "variable-length metalayer '" + chunk.name + "'";
  if (auto may = budget.take_memory(chunk.stored, thing); !may) return Failure(may.error());
  std::vector<std::uint8_t> stored(static_cast<std::size_t>(chunk.stored));
  if (auto done = source.read(chunk.offset, stored); !done) return Failure(done.error());
  return stored;
}

Result<void> check_vlmetalayer(const ByteSource& source, const VlmetaChunk& chunk, ParseBudget& budget) {
  const std::string thing = "variable-length metalayer '" + chunk.name + "'";
  if (auto may = budget.spend_work(chunk.stored + ParseBudget::kStep, thing); !may) return may;
  const auto read = read_stored_vlmetalayer(source, chunk, budget);
  if (!read) return Failure(read.error());
  budget.release_memory(chunk.stored);
  const ByteView stored(*read);
  const auto decoder = codec::ChunkDecoder::parse(stored);
  if (!decoder) return Failure(decoder.error());
  // A special chunk stores no bytes that could be damaged.
  if (chunk.header.special != codec::SpecialValue::none) return {};
  if (auto may = budget.spend_work(chunk.nbytes(), thing); !may) return may;
  std::vector<std::uint8_t> plain;
  auto decoded = decode_blocks(*decoder, stored, budget, thing, plain);
  budget.release_memory(plain.size());
  return decoded;
}

}  // namespace cframefs::frame
