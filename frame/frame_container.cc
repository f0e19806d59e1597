#include "frame/frame_container.h"

#include <algorithm>
#include <array>
#include <utility>

#include "codec/chunk_header.h"
#include "frame/array_layer.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;
using codec::SpecialValue;

/// Header, trailer and index of a small frame lie in one window of this size.
constexpr std::size_t kWindow = 4096;

/// Chunk headers that lie close together are read together.
constexpr std::size_t kScanWindow = 4096;

/// A table of chunk sizes takes 8 bytes a chunk, and a chunk at least 32 bytes of the file, unless several entries
/// refer to one chunk. That many entries beyond what the file's length makes possible are put up with.
constexpr std::uint64_t kFreeChunks = std::uint64_t{1} << 20;

Failure at_place(const ByteSource& source, FileOffset offset, Error error) {
  if (!error.file_offset) error.file_offset = source.place().value + offset.value;
  return Failure(std::move(error));
}

/// Where the index begins and how many bytes are left for it.
Result<codec::ByteRange> index_range(const FrameHeader& header, const Trailer& trailer) {
  const FrameParameters& parameters = header.parameters;
  codec::ByteRange range{parameters.header_length, trailer.begin};
  if (header.frame_type == layout::kContiguous) {
    if (parameters.cbytes > range.size()) {
      return corrupt("chunk section of " + std::to_string(parameters.cbytes) + " bytes does not fit into the frame");
    }
    range.begin += parameters.cbytes;
  }
  if (range.size() < codec::kMinHeaderLength) return corrupt("the frame has no room for its index");
  return range;
}

SpecialValue special_of(std::int64_t entry) {
  if (entry == layout::kZerosEntry) return SpecialValue::zeros;
  if (entry == layout::kNanEntry) return SpecialValue::nan;
  if (entry == layout::kUninitialisedEntry) return SpecialValue::uninitialised;
  return SpecialValue::none;
}

Result<void> read_index(Windows& windows, FrameParts& parts, std::shared_ptr<IndexCache> cache) {
  const auto range = index_range(parts.header, parts.trailer);
  if (!range) return Failure(range.error());
  auto index = OffsetIndex::open(parts.source, FileOffset{range->begin}, range->size(), windows, std::move(cache));
  if (!index) return Failure(index.error());
  const std::int64_t expected = parts.header.chunk_count;
  if (expected >= 0 && (*index)->count() != expected) {
    return corrupt("index of " + std::to_string((*index)->count()) + " entries for " + std::to_string(expected) +
                   " chunks");
  }
  if ((*index)->count() == 0) return corrupt("the frame holds data but its index has no entry");
  parts.index = std::move(*index);
  return {};
}

/// Empty where the frame is no array.
std::vector<std::int32_t> blockshape_of(const std::vector<Metalayer>& layers) {
  for (const Metalayer& layer : layers) {
    if (layer.name != "b2nd" && layer.name != "caterva") continue;
    if (auto array = parse_array_layer(layer.content)) return std::move(array->blockshape);
  }
  return {};
}

}  // namespace

Result<FrameParts> read_frame_parts(std::shared_ptr<const ByteSource> source, std::uint8_t frame_type,
                                    std::shared_ptr<IndexCache> cache) {
  FrameParts parts;
  parts.source = std::move(source);
  Windows windows(*parts.source);
  if (auto done = windows.load(FileOffset{0}, kWindow); !done) return Failure(done.error());
  auto header = parse_fixed_header(windows.peek(FileOffset{0}, layout::kFixedHeaderLength));
  if (!header) return at_place(*parts.source, {}, header.error());
  if (header->frame_type != frame_type) {
    return corrupt(frame_type == layout::kContiguous ? "index file of a sparse frame, which is read as its folder"
                                                     : "contiguous frame where a sparse one must be");
  }
  if (auto fits = check_extent(*header, parts.source->size()); !fits) return at_place(*parts.source, {}, fits.error());
  parts.header = std::move(*header);

  const FrameParameters& parameters = parts.header.parameters;
  const auto whole = windows.get(FileOffset{0}, static_cast<std::size_t>(parameters.header_length));
  if (!whole) return Failure(whole.error());
  parts.metalayers = parse_metalayers(*whole);

  const std::uint64_t tail = std::min<std::uint64_t>(kWindow, parameters.frame_length - parameters.header_length);
  const FileOffset tail_at{parameters.frame_length - tail};
  if (auto done = windows.load(tail_at, static_cast<std::size_t>(tail)); !done) return Failure(done.error());
  auto trailer = read_trailer(windows, parts.header);
  if (!trailer) return at_place(*parts.source, tail_at, trailer.error());
  parts.trailer = std::move(*trailer);

  if (parameters.nbytes > 0) {
    if (auto done = read_index(windows, parts, std::move(cache)); !done) return Failure(done.error());
  } else if (parts.trailer.begin != parameters.header_length) {
    // Else a lost length would pass for an empty file.
    return corrupt("the frame says that it is empty, but its trailer does not follow the header");
  }
  return parts;
}

FrameContainer::FrameContainer(FrameParts parts)
    : parts_(std::move(parts)),
      environment_{.frame_typesize = parts_.header.parameters.typesize,
                   .old_bitshuffle = parts_.old_bitshuffle,
                   .blockshape = blockshape_of(parts_.metalayers.layers)} {}

Result<ChunkPlace> FrameContainer::place_of_entry(std::int64_t entry) const {
  ChunkPlace place;
  if (entry >= 0) {
    if (auto found = find_stored(entry, place); !found) return Failure(found.error());
    return place;
  }
  if (!parts_.all_stored) place.special = special_of(entry);
  if (place.special == SpecialValue::none) {
    return corrupt("index entry " + std::to_string(entry) + " means no kind of chunk");
  }
  return place;
}

Result<void> FrameContainer::find_in_section(std::int64_t entry, std::uint64_t least, ChunkPlace& place) const {
  const FrameParameters& parameters = this->parameters();
  const auto offset = static_cast<std::uint64_t>(entry);
  if (parameters.cbytes < least || offset > parameters.cbytes - least) {
    return corrupt("offset " + std::to_string(entry) + " lies outside the chunk section of " +
                   std::to_string(parameters.cbytes) + " bytes");
  }
  place.source = parts_.source;
  place.offset = FileOffset{parameters.header_length + offset};
  place.limit = parameters.cbytes - offset;
  return {};
}

Result<ChunkPlace> FrameContainer::place(ChunkNumber chunk) const {
  const auto fail = [&](Error error) {
    if (!error.chunk) error.chunk = chunk.value;
    return Failure(std::move(error));
  };
  if (chunk.value < 0 || chunk.value >= chunk_count()) {
    return codec::invalid("there is no chunk " + std::to_string(chunk.value));
  }
  const auto entry = parts_.index->entry(chunk.value);
  if (!entry) return fail(entry.error());
  auto place = place_of_entry(*entry);
  if (!place) return fail(place.error());

  const FrameParameters& parameters = this->parameters();
  if (!parameters.variable_chunks) {
    const auto chunksize = static_cast<std::uint64_t>(parameters.chunksize);
    const std::uint64_t begin = static_cast<std::uint64_t>(chunk.value) * chunksize;
    place->nbytes = static_cast<std::int32_t>(std::min(chunksize, parameters.nbytes - begin));
    return place;
  }
  std::shared_ptr<const ChunkTable> table;
  if (place->special == SpecialValue::none) {
    // The chunk says its length itself; only if the table is there already it must agree.
    const std::lock_guard lock(table_mutex_);
    table = table_;
  } else {
    auto built = chunk_table();
    if (!built) return fail(built.error());
    table = std::move(*built);
  }
  if (table) {
    if (const auto size = table->size(chunk.value)) place->nbytes = *size;
  }
  if (place->special != SpecialValue::none && place->nbytes < 0) {
    return fail(corrupt("chunk that is not stored, in a frame that does not tell its length").value());
  }
  return place;
}

Result<ChunkSpan> FrameContainer::locate(FlatOffset at) const {
  const FrameParameters& parameters = this->parameters();
  if (at.value >= parameters.nbytes) return codec::invalid("offset past the end of the data");
  if (parameters.variable_chunks) {
    const auto table = chunk_table();
    if (!table) return Failure(table.error());
    return (*table)->locate(at);
  }
  const auto chunksize = static_cast<std::uint64_t>(parameters.chunksize);
  const std::uint64_t chunk = at.value / chunksize;
  const std::uint64_t begin = chunk * chunksize;
  const auto nbytes = static_cast<std::uint32_t>(std::min(chunksize, parameters.nbytes - begin));
  return ChunkSpan{ChunkNumber{static_cast<std::int64_t>(chunk)}, FlatOffset{begin}, nbytes};
}

Result<ChunkNumber> FrameContainer::next_chunk(ChunkNumber from, bool hole) const {
  if (from.value >= chunk_count()) return ChunkNumber{chunk_count()};
  const auto found = parts_.index->next(std::max<std::int64_t>(from.value, 0), hole);
  if (!found) return Failure(found.error());
  return ChunkNumber{*found};
}

std::vector<std::string> FrameContainer::vlmetalayer_names() const {
  std::vector<std::string> names;
  for (const MapEntry& entry : parts_.trailer.map.entries)
    names.push_back(entry.name);
  return names;
}

Result<std::vector<std::uint8_t>> FrameContainer::vlmetalayer(const std::string& name) const {
  const MetalayerMap& map = parts_.trailer.map;
  const auto found = std::find_if(map.entries.begin(), map.entries.end(),
                                  [&name](const MapEntry& entry) { return entry.name == name; });
  if (found == map.entries.end()) {
    if (map.damage) return Failure(*map.damage);
    return codec::invalid("there is no variable-length metalayer '" + name + "'");
  }
  auto content = read_vlmetalayer(*parts_.source, parts_.trailer, *found);
  if (!content) return at_place(*parts_.source, FileOffset{parts_.trailer.begin}, content.error());
  return content;
}

// ---- sizes of chunks that differ in size ----

/// The bytes around the chunk header read last: in a cframe the next one is often among them.
struct FrameContainer::HeaderScan {
  std::shared_ptr<const ByteSource> source;
  std::uint64_t begin = 0;
  std::vector<std::uint8_t> bytes;

  Result<ByteView> header_at(const ChunkPlace& place) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(place.limit, codec::kExtendedHeaderLength));
    const std::uint64_t at = place.offset.value;
    const bool same = source == place.source;
    if (!same || at < begin || at - begin > bytes.size() || wanted > bytes.size() - (at - begin)) {
      const std::size_t window = same ? kScanWindow : wanted;
      source = place.source;
      begin = at;
      bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(window, source->size() - at)));
      if (auto done = source->read(place.offset, bytes); !done) {
        bytes.clear();
        return Failure(done.error());
      }
    }
    return ByteView(bytes).subspan(at - begin, wanted);
  }
};

Result<std::shared_ptr<const ChunkTable>> FrameContainer::chunk_table() const {
  // Held while the headers are read: whoever else needs the table waits for it instead of reading them, too.
  const std::lock_guard lock(table_mutex_);
  if (!table_) {
    auto table = measure_chunks();
    if (!table) return Failure(table.error());
    table_ = std::make_shared<const ChunkTable>(std::move(*table));
  }
  return table_;
}

Result<ChunkTable> FrameContainer::measure_chunks() const {
  const std::int64_t count = chunk_count();
  const std::uint64_t possible = kFreeChunks + parameters().cbytes / codec::kExtendedHeaderLength;
  if (static_cast<std::uint64_t>(count) > possible) {
    return codec::unsupported("index of " + std::to_string(count) + " chunks of different sizes in a frame of " +
                              std::to_string(parameters().frame_length) + " bytes");
  }
  HeaderScan scan;
  return ChunkTable::build(count, parameters().nbytes,
                           [this, &scan](std::int64_t chunk) { return measure(chunk, scan); });
}

Result<std::optional<std::int32_t>> FrameContainer::measure(std::int64_t chunk, HeaderScan& scan) const {
  // Damage is of this chunk alone and makes its size unknown; that the system cannot read is no damage.
  const auto unknown_or = [](const Error& error) -> Result<std::optional<std::int32_t>> {
    if (error.kind == ErrorKind::io || error.kind == ErrorKind::stale) return Failure(error);
    return std::optional<std::int32_t>();
  };
  const auto entry = parts_.index->entry(chunk);
  if (!entry) return unknown_or(entry.error());
  const auto place = place_of_entry(*entry);
  if (!place) return unknown_or(place.error());
  if (place->special != SpecialValue::none) return std::optional<std::int32_t>();
  const auto bytes = scan.header_at(*place);
  if (!bytes) return unknown_or(bytes.error());
  const auto header = codec::parse_chunk_header(*bytes);
  if (!header) return unknown_or(header.error());
  if (static_cast<std::uint64_t>(header->cbytes) > place->limit) return std::optional<std::int32_t>();
  return std::optional<std::int32_t>(header->nbytes);
}

}  // namespace cframefs::frame
