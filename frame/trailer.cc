#include "frame/trailer.h"

#include <algorithm>
#include <string>

#include "codec/chunk_decoder.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;
using codec::load_be;
using namespace layout;

/// Every metalayer may have this plain length, whatever it takes in the file …
constexpr std::uint64_t kFreeLength = std::uint64_t{1} << 20;
/// … and this many times what it takes. Beyond, a few bytes would be made to claim gigabytes.
constexpr std::uint64_t kMaxExpansion = 1024;

Failure trouble(const std::string& name, const std::string& what) {
  return corrupt("variable-length metalayer '" + name + "' " + what);
}

}  // namespace

Result<Trailer> read_trailer(Windows& windows, const FrameHeader& header) {
  const std::uint64_t frame_length = header.parameters.frame_length;
  const std::uint64_t header_length = header.parameters.header_length;
  const auto end = windows.get(FileOffset{frame_length - kTrailerEnd}, kTrailerEnd);
  if (!end) return Failure(end.error());
  if ((*end)[0] != kUint32) return corrupt("the frame does not end in a trailer");
  Trailer trailer;
  trailer.length = load_be<std::uint32_t>(&(*end)[1]);
  if (trailer.length < kMinTrailerLength || trailer.length > frame_length - header_length) {
    return corrupt("trailer length " + std::to_string(trailer.length) + " does not fit into the frame");
  }
  trailer.begin = frame_length - trailer.length;

  // What the map can take at most; nearly always it lies in the window that was read already.
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

Result<std::vector<std::uint8_t>> unpack_vlmetalayer(const std::string& name, ByteView stored) {
  const auto header = codec::parse_chunk_header(stored);
  if (!header) return trouble(name, "is damaged: " + header.error().reason);
  if (static_cast<std::uint64_t>(header->cbytes) != stored.size()) {
    return trouble(name, "holds a chunk of " + std::to_string(header->cbytes) + " bytes in a content of " +
                             std::to_string(stored.size()));
  }
  if (static_cast<std::uint64_t>(header->nbytes) > std::max(kFreeLength, kMaxExpansion * stored.size())) {
    return trouble(name, "claims " + std::to_string(header->nbytes) + " bytes, which its " +
                             std::to_string(stored.size()) + " stored ones do not make likely");
  }
  const auto decoder = codec::ChunkDecoder::parse(stored);
  if (!decoder) return Failure(decoder.error());
  std::vector<std::uint8_t> plain(decoder->nbytes());
  codec::DecodeContext context;
  if (auto done = codec::decode_range(context, *decoder, stored, 0, plain); !done) return Failure(done.error());
  return plain;
}

Result<std::vector<std::uint8_t>> read_vlmetalayer(const ByteSource& source, const Trailer& trailer,
                                                   const MapEntry& entry) {
  const std::uint64_t end = trailer.length - kTrailerEnd;
  if (entry.offset < 0) return trouble(entry.name, "lies before the trailer");
  const auto at = static_cast<std::uint64_t>(entry.offset);
  if (at > end || end - at < kContentPrefix) return trouble(entry.name, "lies past the trailer");
  std::array<std::uint8_t, kContentPrefix> prefix{};
  if (auto done = source.read(FileOffset{trailer.begin + at}, prefix); !done) return Failure(done.error());
  if (prefix[0] != kBin32) return trouble(entry.name, "has no content where its offset points");
  const std::uint64_t length = load_be<std::uint32_t>(&prefix[1]);
  if (length > end - at - kContentPrefix) return trouble(entry.name, "reaches past the trailer");

  std::vector<std::uint8_t> stored(static_cast<std::size_t>(length));
  const auto begin = FileOffset{trailer.begin + at + kContentPrefix};
  if (auto done = source.read(begin, stored); !done) return Failure(done.error());
  return unpack_vlmetalayer(entry.name, stored);
}

}  // namespace cframefs::frame
