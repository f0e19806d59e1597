#include "frame/cframe/frame_container.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "codec/format/chunk_header.h"
#include "frame/cframe/b2nd_meta.h"
#include "frame/cframe/chunk_runs.h"
#include "frame/io/located_error.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;
using codec::SpecialValue;

/// Bytes read at the begin and at the end of a frame. In a small frame they include header, index and trailer.
constexpr std::size_t kWindow = 4096;

/// Bytes read at once while scanning chunk headers, so that headers close together take one read.
constexpr std::size_t kScanWindow = 4096;

/// A ChunkTable takes 24 bytes for each run of chunks of one size. Tables of this many runs are always allowed.
constexpr std::uint64_t kFreeRuns = std::uint64_t{1} << 20;
/// Additional runs allowed for each stored byte of the index, as far as the chunk section has room for as many chunk
/// headers. An index of chunks of different sizes needs a byte or more for each chunk, so valid frames stay below.
constexpr std::uint64_t kRunsPerByte = 4;

/// Returns the range of the frame that the index may occupy.
Result<codec::ByteRange> index_range(const FrameHeader& header, const Trailer& trailer) {
  const FrameParameters& parameters = header.parameters;
  codec::ByteRange range{parameters.header_length, trailer.begin};
  if (header.frame_type == layout::kContiguous) {
    if (parameters.cbytes > range.size()) {
      return corrupt(fmt::format("chunk section of {} bytes does not fit into the frame", parameters.cbytes));
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

Result<void> read_index(RangeBuffer& windows, FrameParts& parts, std::shared_ptr<IndexCache> cache) {
  const auto range = index_range(parts.header, parts.trailer);
  if (!range) return Failure(range.error());
  // Index and seal end with the frame. If they are longer than what was fetched to open it, the rest is one request.
  if (parts.source->is_remote())
    parts.source->expect(FileOffset{range->begin}, parts.header.parameters.frame_length - range->begin);
  auto index = OffsetIndex::open(parts.source, FileOffset{range->begin}, range->size(), windows, cache);
  if (!index) return Failure(index.error());
  const std::int64_t expected = parts.header.chunk_count;
  if (expected >= 0 && (*index)->count() != expected) {
    return corrupt(fmt::format("the index has {} entries, but the header says {} chunks", (*index)->count(), expected));
  }
  if ((*index)->count() == 0) return corrupt("the frame holds data but its index has no entry");
  parts.index = std::move(*index);
  const FrameParameters& parameters = parts.header.parameters;
  const auto index_length = static_cast<std::uint64_t>(parts.index->stored_bytes());
  auto seal = FrameSeal::find(parts.source, windows,
                              {.header_length = parameters.header_length,
                               .nbytes = parameters.nbytes,
                               .cbytes = parameters.cbytes,
                               .chunk_count = parts.index->count(),
                               .index = {range->begin, range->begin + index_length},
                               .trailer = {parts.trailer.begin, parts.trailer.begin + parts.trailer.length}},
                              std::move(cache));
  if (!seal) return Failure(seal.error());
  parts.seal = std::move(*seal);
  return {};
}

/// Returns an empty vector if the frame is not an array.
std::vector<std::int32_t> blockshape_of(const FrameParts& parts) {
  for (const MetalayerPlace& layer : parts.metalayers.layers) {
    if ((layer.name != "b2nd" && layer.name != "caterva") || layer.length > kMaxArrayLayer) continue;
    const auto content = read_metalayer(*parts.source, layer);
    if (!content) continue;
    if (auto array = parse_array_layer(*content)) return std::move(array->blockshape);
  }
  return {};
}

/// Returns "unknown" for a damaged chunk, so that the others keep their sizes. Errors of the system are not damage and
/// are returned.
Result<std::optional<std::int32_t>> unknown_or(const Error& error) {
  if (error.kind == ErrorKind::io || error.kind == ErrorKind::stale) return Failure(error);
  return std::optional<std::int32_t>();
}

}  // namespace

Result<FrameParts> read_frame_parts(std::shared_ptr<const ByteSource> source, std::uint8_t frame_type,
                                    std::shared_ptr<IndexCache> cache) {
  FrameParts parts;
  parts.source = std::move(source);
  RangeBuffer windows(*parts.source);
  if (auto done = windows.load(FileOffset{0}, kWindow); !done) return Failure(done.error());
  auto header = parse_fixed_header(windows.peek(FileOffset{0}, layout::kFixedHeaderLength));
  if (!header) return at_offset(*parts.source, {}, header.error());
  if (header->frame_type != frame_type) {
    return corrupt(frame_type == layout::kContiguous
                       ? "this is the index file of a sparse frame: open the frame's directory instead"
                       : "the index file holds a contiguous frame, must be the index of a sparse frame");
  }
  if (auto fits = check_extent(*header, parts.source->size()); !fits) return at_offset(*parts.source, {}, fits.error());
  parts.header = *header;

  const FrameParameters& parameters = parts.header.parameters;
  auto metalayers = read_metalayers(windows, parameters.header_length);
  if (!metalayers) return Failure(metalayers.error());
  parts.metalayers = std::move(*metalayers);

  const std::uint64_t tail = std::min<std::uint64_t>(kWindow, parameters.frame_length - parameters.header_length);
  const FileOffset tail_at{parameters.frame_length - tail};
  if (auto done = windows.load(tail_at, static_cast<std::size_t>(tail)); !done) return Failure(done.error());
  auto trailer = read_trailer(windows, parts.header);
  if (!trailer) return at_offset(*parts.source, tail_at, trailer.error());
  parts.trailer = std::move(*trailer);

  if (parameters.nbytes > 0) {
    if (auto done = read_index(windows, parts, std::move(cache)); !done) return Failure(done.error());
  } else if (parts.trailer.begin != parameters.header_length) {
    // A header whose nbytes was lost must not be taken for an empty frame.
    return corrupt(
        fmt::format("the header says 0 uncompressed bytes, but the trailer begins at {}, not after the header at {}",
                    parts.trailer.begin, parameters.header_length));
  }
  return parts;
}

FrameContainer::FrameContainer(FrameParts parts)
    : parts_(std::move(parts)),
      environment_{.frame_typesize = parts_.header.parameters.typesize,
                   .old_bitshuffle = parts_.old_bitshuffle,
                   .blockshape = blockshape_of(parts_)} {}

Result<ChunkLocation> FrameContainer::location_of_entry(std::int64_t entry) const {
  ChunkLocation location;
  if (entry >= 0) {
    if (auto found = find_stored(entry, location); !found) return Failure(found.error());
    return location;
  }
  if (!parts_.all_stored) location.special = special_of(entry);
  if (location.special == SpecialValue::none) {
    return corrupt(fmt::format("index entry {} is neither an offset nor a special value", entry));
  }
  return location;
}

Result<void> FrameContainer::find_in_section(std::int64_t entry, std::uint64_t least, ChunkLocation& location) const {
  const FrameParameters& parameters = this->parameters();
  const auto offset = static_cast<std::uint64_t>(entry);
  if (parameters.cbytes < least || offset > parameters.cbytes - least) {
    return corrupt(fmt::format("offset {} lies outside the chunk section of {} bytes", entry, parameters.cbytes));
  }
  location.source = parts_.source;
  location.offset = FileOffset{parameters.header_length + offset};
  location.limit = parameters.cbytes - offset;
  return {};
}

Result<ChunkLocation> FrameContainer::locate_chunk(ChunkNumber chunk) const {
  const auto fail = [&](Error error) {
    if (!error.chunk) error.chunk = chunk.value;
    return Failure(std::move(error));
  };
  if (chunk.value < 0 || chunk.value >= chunk_count()) {
    return codec::invalid(fmt::format("chunk {} does not exist, the container has {}", chunk.value, chunk_count()));
  }
  const auto entry = parts_.index->entry(chunk.value);
  if (!entry) return fail(entry.error());
  auto location = location_of_entry(*entry);
  if (!location) return fail(location.error());

  const FrameParameters& parameters = this->parameters();
  if (!parameters.variable_chunks) {
    const auto chunksize = static_cast<std::uint64_t>(parameters.chunksize);
    const std::uint64_t begin = static_cast<std::uint64_t>(chunk.value) * chunksize;
    location->nbytes = static_cast<std::int32_t>(std::min(chunksize, parameters.nbytes - begin));
    return location;
  }
  std::shared_ptr<const ChunkTable> table;
  if (location->special == SpecialValue::none) {
    // The chunk's header records its length. The table is used as a check only if it is already built.
    const codec::MutexLock lock(table_mutex_);
    table = table_;
  } else {
    auto built = chunk_table();
    if (!built) return fail(built.error());
    table = std::move(*built);
  }
  if (table) {
    if (const auto size = table->size(chunk.value)) location->nbytes = *size;
  }
  if (location->special != SpecialValue::none && location->nbytes < 0) {
    return fail(corrupt("the length of a special chunk is unknown: the frame has chunks of different sizes").value());
  }
  return location;
}

Result<ChunkDigests> FrameContainer::digests(ChunkNumber chunk) const {
  return parts_.seal ? parts_.seal->digests(chunk) : Result<ChunkDigests>();
}

Result<ChunkSpan> FrameContainer::chunk_at(FlatOffset at) const {
  const FrameParameters& parameters = this->parameters();
  if (at.value >= parameters.nbytes) return codec::invalid("offset past the end of the data");
  if (parameters.variable_chunks) {
    const auto table = chunk_table();
    if (!table) return Failure(table.error());
    return (*table)->chunk_at(at);
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

std::unique_ptr<ChunkRuns> FrameContainer::runs(ChunkNumber begin, ChunkNumber end) const {
  if (!parts_.index) return Container::runs(begin, end);
  const FrameParameters& parameters = this->parameters();
  const bool last_is_short =
      parameters.chunksize > 0 && parameters.nbytes % static_cast<std::uint64_t>(parameters.chunksize) != 0;
  return std::make_unique<IndexRuns>(*parts_.index, begin.value, end.value, chunk_count() - (last_is_short ? 1 : 0));
}

std::int64_t FrameContainer::chunks_decoded_together() const {
  return parts_.index && parts_.index->period() == 0 ? parts_.index->unit_end(0) : 1;
}

Result<std::vector<std::uint8_t>> FrameContainer::stored_trailer() const {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(parts_.trailer.length));
  if (auto done = parts_.source->read(FileOffset{parts_.trailer.begin}, bytes); !done) return Failure(done.error());
  return bytes;
}

std::vector<std::string> FrameContainer::vlmetalayer_names() const {
  std::vector<std::string> names;
  for (const MapEntry& entry : parts_.trailer.map.entries)
    names.push_back(entry.name);
  return names;
}

Result<std::vector<std::uint8_t>> FrameContainer::metalayer(const MetalayerPlace& place) const {
  auto content = read_metalayer(*parts_.source, place);
  if (!content) return at_offset(*parts_.source, place.offset, content.error());
  return content;
}

Result<VlmetaChunk> FrameContainer::vlmetalayer_chunk(const std::string& name) const {
  const MetalayerMap& map = parts_.trailer.map;
  const MapEntry* entry = map.find(name);
  if (entry == nullptr) {
    if (map.damage) return Failure(*map.damage);
    return codec::invalid("variable-length metalayer '" + name + "' does not exist");
  }
  auto chunk = find_vlmetalayer(*parts_.source, parts_.trailer, *entry);
  if (!chunk) return at_offset(*parts_.source, FileOffset{parts_.trailer.begin}, chunk.error());
  return chunk;
}

Result<std::uint64_t> FrameContainer::vlmetalayer_length(const std::string& name) const {
  const auto chunk = vlmetalayer_chunk(name);
  if (!chunk) return Failure(chunk.error());
  return chunk->nbytes();
}

Result<std::vector<std::uint8_t>> FrameContainer::vlmetalayer(const std::string& name) const {
  const auto chunk = vlmetalayer_chunk(name);
  if (!chunk) return Failure(chunk.error());
  auto content = read_vlmetalayer(*parts_.source, *chunk);
  if (!content) return at_offset(*parts_.source, chunk->offset, content.error());
  return content;
}

Result<std::uint64_t> FrameContainer::stored_vlmetalayer_length(const std::string& name) const {
  const auto chunk = vlmetalayer_chunk(name);
  if (!chunk) return Failure(chunk.error());
  return chunk->stored;
}

Result<std::vector<std::uint8_t>> FrameContainer::stored_vlmetalayer(const std::string& name,
                                                                     ParseBudget& budget) const {
  const auto chunk = vlmetalayer_chunk(name);
  if (!chunk) return Failure(chunk.error());
  auto stored = read_stored_vlmetalayer(*parts_.source, *chunk, budget);
  if (!stored) return at_offset(*parts_.source, chunk->offset, stored.error());
  return stored;
}

Result<void> FrameContainer::check_vlmetalayer(const std::string& name, ParseBudget& budget) const {
  const auto chunk = vlmetalayer_chunk(name);
  if (!chunk) return Failure(chunk.error());
  auto done = frame::check_vlmetalayer(*parts_.source, *chunk, budget);
  if (!done) return at_offset(*parts_.source, chunk->offset, done.error());
  return done;
}

// ---- sizes of chunks that differ in size ----

/// The bytes read with the last chunk header. In a contiguous frame they often include the next header.
struct FrameContainer::HeaderScan {
  std::shared_ptr<const ByteSource> source;
  std::uint64_t begin = 0;
  std::vector<std::uint8_t> bytes;

  Result<ByteView> header_at(const ChunkLocation& location) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(location.limit, codec::kExtendedHeaderLength));
    const std::uint64_t at = location.offset.value;
    const bool same = source == location.source;
    if (!same || at < begin || at - begin > bytes.size() || wanted > bytes.size() - (at - begin)) {
      const std::size_t window = same ? kScanWindow : wanted;
      source = location.source;
      begin = at;
      bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(window, source->size() - at)));
      if (auto done = source->read(location.offset, bytes); !done) {
        bytes.clear();
        return Failure(done.error());
      }
    }
    return ByteView(bytes).subspan(at - begin, wanted);
  }
};

Result<std::shared_ptr<const ChunkTable>> FrameContainer::chunk_table() const {
  // The lock is held while the headers are read, so that other threads wait for the table instead of building it, too.
  const codec::MutexLock lock(table_mutex_);
  if (table_error_) return Failure(*table_error_);
  if (!table_) {
    auto table = measure_chunks();
    if (!table) {
      // Damage is permanent: remember it, so that later calls do not read all headers again.
      const ErrorKind kind = table.error().kind;
      if (kind == ErrorKind::corruption || kind == ErrorKind::unsupported) table_error_ = table.error();
      return Failure(table.error());
    }
    table_ = std::make_shared<const ChunkTable>(std::move(*table));
  }
  return table_;
}

/// Returns the number of runs that the table may have.
std::uint64_t FrameContainer::most_runs() const {
  return kFreeRuns + std::min(parameters().cbytes / codec::kExtendedHeaderLength,
                              kRunsPerByte * static_cast<std::uint64_t>(parts_.index->stored_bytes()));
}

Result<ChunkTable> FrameContainer::measure_chunks() const {
  const std::int64_t count = chunk_count();
  const std::uint64_t most = most_runs();
  const auto too_many = [&] {
    return codec::unsupported(
        fmt::format("index of {} chunks of different sizes in a frame of {} bytes, at most {} runs are allowed", count,
                    parameters().frame_length, most));
  };
  // The runs of an index with a period above 1 are not consecutive chunks, so each chunk is measured on its own.
  if (parts_.index->period() > 1 && static_cast<std::uint64_t>(count) > most) return too_many();
  HeaderScan scan;
  std::unique_ptr<ChunkRuns> runs = this->runs(ChunkNumber{0}, ChunkNumber{count});
  if (parts_.index->period() > 1) runs = Container::runs(ChunkNumber{0}, ChunkNumber{count});
  std::uint64_t seen = 0;
  return ChunkTable::build(parameters().nbytes, [&]() -> Result<std::optional<ChunkTable::Sizes>> {
    if (++seen > most) return too_many();
    return measure(*runs, scan);
  });
}

/// Returns the size of the next run of chunks; nullopt after the last one.
Result<std::optional<ChunkTable::Sizes>> FrameContainer::measure(ChunkRuns& runs, HeaderScan& scan) const {
  ChunkRun run;
  const auto more = runs.next(run);
  if (!more) return Failure(more.error());
  if (!*more) return std::optional<ChunkTable::Sizes>();
  ChunkTable::Sizes sizes{run.count, std::nullopt};
  if (run.damage != nullptr) return std::optional(sizes);
  const auto entry = run.alike ? Result<std::int64_t>(run.same) : parts_.index->entry(run.first.value);
  const auto nbytes = entry ? measure_entry(*entry, scan) : unknown_or(entry.error());
  if (!nbytes) return Failure(nbytes.error());
  sizes.nbytes = *nbytes;
  return std::optional(sizes);
}

Result<std::optional<std::int32_t>> FrameContainer::measure_entry(std::int64_t entry, HeaderScan& scan) const {
  const auto location = location_of_entry(entry);
  if (!location) return unknown_or(location.error());
  if (location->special != SpecialValue::none) return std::optional<std::int32_t>();
  const auto bytes = scan.header_at(*location);
  if (!bytes) return unknown_or(bytes.error());
  const auto header = codec::parse_chunk_header(*bytes);
  if (!header) return unknown_or(header.error());
  if (static_cast<std::uint64_t>(header->cbytes) > location->limit) return std::optional<std::int32_t>();
  return std::optional<std::int32_t>(header->nbytes);
}

std::shared_ptr<const FrameContainer> as_shared_frame(const std::shared_ptr<const Container>& container) {
  const FrameContainer* frame = container->as_frame();
  return frame == nullptr ? nullptr : std::shared_ptr<const FrameContainer>(container, frame);
}

}  // namespace cframefs::frame
