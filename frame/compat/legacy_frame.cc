#include "frame/compat/legacy_frame.h"

#include <algorithm>
#include <string>
#include <utility>

#include "frame/cframe/frame_container.h"
#include "frame/compat/legacy_header.h"
#include "frame/io/located_error.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

/// Bytes of the first read, which holds header and index of a small frame.
constexpr std::size_t kFirstWindow = 4096;
const char* const kUsermeta = "usermeta";

class LegacyFrame final : public FrameContainer {
 public:
  LegacyFrame(FrameParts parts, const LegacyTrailer& trailer) : FrameContainer(std::move(parts)), trailer_(trailer) {}

  std::vector<std::string> vlmetalayer_names() const override {
    if (trailer_.usermeta_size == 0) return {};
    return {kUsermeta};
  }

 private:
  Result<VlmetaChunk> vlmetalayer_chunk(const std::string& name) const override {
    if (trailer_.usermeta_size == 0 || name != kUsermeta) return FrameContainer::vlmetalayer_chunk(name);
    const FileOffset at{trailer_.usermeta_at};
    auto chunk = look_at_vlmetalayer(*parts().source, name, at, trailer_.usermeta_size);
    if (!chunk && !chunk.error().file_offset)
      chunk.error().file_offset = parts().source->base_offset().value + at.value;
    return chunk;
  }

  Result<void> find_stored(std::int64_t entry, ChunkLocation& location) const override {
    return find_in_section(entry, codec::kMinHeaderLength, location);
  }

  const LegacyTrailer trailer_;
};

/// Takes the filters from the first chunk: the header of form beta1 does not record them.
void note_filters(RangeBuffer& windows, FrameParameters& parameters) {
  const std::uint64_t length = std::min<std::uint64_t>(parameters.cbytes, codec::kExtendedHeaderLength);
  const auto bytes = windows.get(FileOffset{parameters.header_length}, static_cast<std::size_t>(length));
  if (!bytes) return;
  const auto chunk = codec::parse_chunk_header(*bytes);
  if (!chunk) return;
  parameters.filters = chunk->filters;
  parameters.filters_meta = chunk->filters_meta;
}

/// Sets the chunk size if all chunks have the header's chunk size: no chunk is longer, so if `count` chunks of that
/// size give nbytes, none is shorter.
void infer_chunksize(std::int32_t chunksize, std::int64_t count, FrameParameters& parameters) {
  const auto most = static_cast<std::uint64_t>(chunksize) * static_cast<std::uint64_t>(count);
  if (chunksize == 0 || chunksize > codec::kMaxChunkBytes || most != parameters.nbytes) return;
  parameters.chunksize = chunksize;
  parameters.variable_chunks = false;
}

Result<void> open_index(RangeBuffer& windows, const LegacyTrailer& trailer, FrameParts& parts,
                        std::shared_ptr<IndexCache> cache) {
  const FrameParameters& parameters = parts.header.parameters;
  const std::uint64_t begin = parameters.header_length + parameters.cbytes;
  const std::uint64_t limit = trailer.begin - begin;
  if (limit < codec::kMinHeaderLength)
    return corrupt("index section of " + std::to_string(limit) + " bytes is shorter than a chunk header");
  auto index = OffsetIndex::open(parts.source, FileOffset{begin}, limit, windows, std::move(cache));
  if (!index) return Failure(index.error());
  if ((*index)->count() == 0)
    return corrupt("the frame has " + std::to_string(parameters.nbytes) + " bytes, but its index has no entries");
  parts.index = std::move(*index);
  return {};
}

}  // namespace

Result<std::shared_ptr<const Container>> open_legacy_frame(std::shared_ptr<const ByteSource> source,
                                                           std::shared_ptr<IndexCache> index_cache,
                                                           bool old_bitshuffle) {
  FrameParts parts;
  parts.source = std::move(source);
  parts.all_stored = true;
  const ByteSource& bytes = *parts.source;
  RangeBuffer windows(bytes);
  if (auto done = windows.load(FileOffset{0}, kFirstWindow); !done) return Failure(done.error());
  const ByteView first = windows.peek(FileOffset{0}, layout::kFixedHeaderLength);
  if (!has_frame_magic(first) || !is_legacy_header(first))
    return corrupt("not a frame of a Blosc2 2.0 beta: magic or number of fields differ");
  auto header = parse_legacy_header(first);
  if (!header) return at_offset(bytes, {}, header.error());
  if (auto fits = check_extent(*header, bytes.size()); !fits) return at_offset(bytes, {}, fits.error());
  parts.header = header->frame;

  FrameParameters& parameters = parts.header.parameters;
  if (header->metalayers_at != 0) {
    auto metalayers = read_metalayers(windows, parameters.header_length, header->metalayers_at);
    if (!metalayers) return Failure(metalayers.error());
    parts.metalayers = std::move(*metalayers);
  }
  const auto trailer = read_legacy_trailer(windows, *header);
  if (!trailer) return at_offset(bytes, FileOffset{parameters.frame_length}, trailer.error());
  // beta.5 shuffles blocks that beta.3 and beta.4 do not (legacy-frame.md section 8).
  parts.old_bitshuffle = trailer->form != LegacyForm::beta3 || old_bitshuffle;
  if (parameters.nbytes > 0) {
    if (auto done = open_index(windows, *trailer, parts, std::move(index_cache)); !done) return Failure(done.error());
    infer_chunksize(header->chunksize, parts.index->count(), parameters);
    if (trailer->form == LegacyForm::beta1) note_filters(windows, parameters);
  }
  return std::make_shared<const LegacyFrame>(std::move(parts), *trailer);
}

}  // namespace cframefs::frame
