#include "frame/compat/bare_chunk.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "codec/stream/codec_table.h"
#include "frame/cframe/frame_layout.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

std::uint8_t compressor_code(const codec::ChunkHeader& header) {
  const auto* const codec = codec::stream_codec_info(header.format, header.compcode);
  if (codec != nullptr) return codec->id;
  return header.format == codec::CodecFormat::registered ? header.compcode : layout::kCodecElsewhere;
}

class BareChunk final : public Container {
 public:
  BareChunk(std::shared_ptr<const ByteSource> source, const codec::ChunkHeader& header) : source_(std::move(source)) {
    parameters_.kind = ContainerKind::chunk;
    parameters_.frame_version = header.version;
    describe_chunk(header, parameters_);
    parameters_.chunksize = header.nbytes > 0 ? header.nbytes : -1;
    parameters_.nbytes = static_cast<std::uint64_t>(header.nbytes);
    parameters_.cbytes = static_cast<std::uint64_t>(header.cbytes);
    parameters_.header_length = header.length;
    parameters_.frame_length = parameters_.cbytes;
  }

  const FrameParameters& parameters() const override { return parameters_; }
  bool records_level() const override { return false; }
  std::int64_t chunk_count() const override { return 1; }

  Result<ChunkLocation> locate_chunk(ChunkNumber chunk) const override {
    if (chunk.value != 0) return codec::invalid(fmt::format("there is no chunk {}", chunk.value));
    ChunkLocation location;
    location.nbytes = static_cast<std::int32_t>(parameters_.nbytes);
    location.source = source_;
    location.limit = parameters_.cbytes;
    return location;
  }

  Result<ChunkSpan> chunk_at(FlatOffset at) const override {
    if (at.value >= parameters_.nbytes) return codec::invalid("offset past the end of the data");
    return ChunkSpan{ChunkNumber{0}, FlatOffset{0}, static_cast<std::uint32_t>(parameters_.nbytes)};
  }

  Result<ChunkNumber> next_chunk(ChunkNumber from, bool hole) const override {
    return hole ? ChunkNumber{1} : std::min(from, ChunkNumber{1});
  }

  const codec::DecodeParams& environment() const override { return environment_; }
  std::vector<std::string> vlmetalayer_names() const override { return {}; }
  Result<std::vector<std::uint8_t>> vlmetalayer(const std::string& name) const override {
    return codec::invalid("there is no variable-length metalayer '" + name + "'");
  }

 private:
  const std::shared_ptr<const ByteSource> source_;
  FrameParameters parameters_;
  const codec::DecodeParams environment_;
};

}  // namespace

Result<codec::ChunkHeader> parse_bare_chunk(ByteView first, std::uint64_t size, bool whole) {
  auto header = codec::parse_chunk_header(first);
  if (!header) return header;
  const auto cbytes = static_cast<std::uint64_t>(header->cbytes);
  if (cbytes > size || (whole && cbytes != size)) {
    return corrupt(fmt::format("cbytes {} of the chunk does not fit a file of {} bytes", cbytes, size));
  }
  // A chunk whose nbytes field was lost must not appear as an empty file.
  if (header->nbytes == 0 && header->cbytes > static_cast<std::int32_t>(codec::kExtendedHeaderLength)) {
    return corrupt(fmt::format("chunk with nbytes 0 has cbytes {}, at most 32 are allowed", cbytes));
  }
  return header;
}

void describe_chunk(const codec::ChunkHeader& header, FrameParameters& parameters) {
  parameters.compcode = compressor_code(header);
  parameters.compcode_meta = header.compcode_meta;
  parameters.filters = header.filters;
  parameters.filters_meta = header.filters_meta;
  parameters.typesize = header.typesize;
  parameters.vl_blocks = header.vl_blocks;
  parameters.blocksize = header.vl_blocks ? 0 : header.blocksize;
  parameters.use_dict = header.dictionary;
}

Result<std::shared_ptr<const Container>> open_bare_chunk(std::shared_ptr<const ByteSource> source, bool whole) {
  std::array<std::uint8_t, codec::kExtendedHeaderLength> bytes{};
  const auto first =
      ByteSpan(bytes).first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), source->size())));
  if (auto done = source->read(FileOffset{0}, first); !done) return Failure(done.error());
  const auto header = parse_bare_chunk(first, source->size(), whole);
  if (!header) return Failure(header.error());
  return std::make_shared<const BareChunk>(std::move(source), *header);
}

}  // namespace cframefs::frame
