#include "frame/cframe/frame_encoding.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "codec/format/chunk_header.h"

namespace cframefs::frame {

namespace {

using codec::store_be;
using codec::store_le;
using namespace layout;

using Bytes = std::vector<std::uint8_t>;

/// The numbers of threads for encoding and decoding that C-Blosc2 records by default.
constexpr std::int16_t kThreads = 1;

template <class T>
void put_be(Bytes& to, std::uint8_t marker, T value) {
  std::array<std::uint8_t, sizeof value> bytes{};
  store_be(bytes.data(), value);
  to.push_back(marker);
  codec::append(to, bytes);
}

std::vector<MetalayerLength> lengths_of(const std::vector<Metalayer>& layers) {
  std::vector<MetalayerLength> lengths;
  lengths.reserve(layers.size());
  for (const Metalayer& layer : layers)
    lengths.push_back({layer.name, layer.content.size()});
  return lengths;
}

/// Encodes the map of names and content offsets; the contents follow it. `base`: offset of the map from the point that
/// content offsets count from. `size_offset`: bytes that the size field leaves out.
Bytes metalayer_map(const std::vector<MetalayerLength>& layers, std::size_t base, std::size_t size_offset) {
  std::size_t length = kMapEntriesAt;
  for (const MetalayerLength& layer : layers)
    length += 1 + layer.name.size() + 5;
  const auto count = static_cast<std::uint16_t>(layers.size());
  Bytes map = {kFixArray3};
  put_be(map, kUint16, static_cast<std::uint16_t>(length - size_offset));
  put_be(map, kMap16, count);
  std::size_t place = base + length + 3;
  for (const MetalayerLength& layer : layers) {
    map.push_back(static_cast<std::uint8_t>(kFixString + layer.name.size()));
    for (const char c : layer.name)
      map.push_back(static_cast<std::uint8_t>(c));
    put_be(map, kInt32, static_cast<std::int32_t>(place));
    place += kContentPrefix + layer.length;
  }
  put_be(map, kArray16, count);
  return map;
}

void append_contents(Bytes& to, const std::vector<Metalayer>& layers) {
  for (const Metalayer& layer : layers) {
    codec::append(to, content_prefix(layer.content.size()));
    codec::append(to, layer.content);
  }
}

std::uint8_t general_flags(const NewFrame& frame) {
  const bool variable = frame.chunksize == 0;
  if (!variable && !frame.vl_blocks) return kOffsetWidth64 | kFirstFrameVersion;
  unsigned flags = kOffsetWidth64 | static_cast<unsigned>(kLastFrameVersion);
  if (variable) flags |= kVariableChunksFlag;
  if (frame.vl_blocks) flags |= kVlBlocksFlag;
  return static_cast<std::uint8_t>(flags);
}

/// Encodes the fixed part of a header, with all lengths 0.
Bytes fixed_header(const NewFrame& frame) {
  const codec::EncodeParameters& encode = frame.encode;
  Bytes header = {kFixArray14};
  codec::append(header, kMagic);
  put_be(header, kInt32, std::int32_t{0});
  put_be(header, kUint64, std::uint64_t{0});
  const std::uint8_t nibble = std::min(encode.compcode, kCodecElsewhere);
  const std::uint8_t split = encode.split_mode == 0 ? 3 : static_cast<std::uint8_t>((encode.split_mode - 1) & 3);
  header.push_back(kFixString4);
  header.push_back(general_flags(frame));
  header.push_back(kContiguous);
  header.push_back(static_cast<std::uint8_t>(static_cast<unsigned>(encode.clevel) << 4 | nibble));
  header.push_back(split);
  put_be(header, kInt64, std::int64_t{0});
  put_be(header, kInt64, std::int64_t{0});
  put_be(header, kInt32, encode.typesize);
  put_be(header, kInt32, encode.blocksize);
  put_be(header, kInt32, frame.chunksize);
  put_be(header, kInt16, kThreads);
  put_be(header, kInt16, kThreads);
  header.push_back(kFalse);
  header.push_back(kFixExt16);
  header.push_back(codec::kFilterSlots);
  codec::append(header, encode.filters);
  header.push_back(encode.compcode);
  header.push_back(encode.compcode_meta);
  codec::append(header, encode.filters_meta);
  header.push_back(encode.use_dict ? 1 : 0);
  header.push_back(0);
  return header;
}

/// Encodes a chunk that holds `plain` uncompressed.
Bytes stored_chunk(ByteView plain) {
  Bytes chunk(codec::kExtendedHeaderLength);
  const auto nbytes = static_cast<std::int32_t>(plain.size());
  chunk[0x00] = 5;
  chunk[0x01] = 1;
  chunk[0x02] = 0x07;
  chunk[0x03] = 1;
  store_le(&chunk[0x04], nbytes);
  store_le(&chunk[0x08], std::max(nbytes, 1));
  store_le(&chunk[0x0c], static_cast<std::int32_t>(nbytes + static_cast<std::int32_t>(chunk.size())));
  codec::append(chunk, plain);
  return chunk;
}

}  // namespace

void encode_update(const HeaderUpdate& fields, ByteSpan header) {
  store_be(&header[kFrameLengthAt], fields.frame_length);
  store_be(&header[kNbytesAt], fields.nbytes);
  store_be(&header[kCbytesAt], fields.cbytes);
  store_be(&header[kChunksizeAt], fields.chunksize);
  header[kHasVlmetaAt] = fields.has_vlmetalayers ? kTrue : kFalse;
}

Bytes with_metalayers(ByteView header, const std::vector<Metalayer>& layers) {
  Bytes bytes(header.begin(), header.begin() + kFixedHeaderLength);
  codec::append(bytes, metalayer_map(lengths_of(layers), kMetalayersAt, 0));
  append_contents(bytes, layers);
  store_be(&bytes[kHeaderLengthAt], static_cast<std::int32_t>(bytes.size()));
  return bytes;
}

Result<void> check_metalayer_room(const std::vector<std::uint64_t>& contents) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::int32_t>::max();
  // The fixed parts of a header and of a trailer.
  std::uint64_t length = layout::kMinHeaderLength + layout::kMinTrailerLength;
  for (const std::uint64_t content : contents) {
    length += layout::kMaxMapEntry + layout::kContentPrefix + std::min(content, kMax);
    if (length > kMax) return codec::invalid("the metalayers take more than 2 GiB, the limit of a frame");
  }
  return {};
}

Result<void> check_metalayer_room(const std::vector<Metalayer>& layers) {
  std::vector<std::uint64_t> contents;
  contents.reserve(layers.size());
  for (const Metalayer& layer : layers)
    contents.push_back(layer.content.size());
  return check_metalayer_room(contents);
}

Bytes trailer_begin(const std::vector<MetalayerLength>& layers) {
  Bytes bytes = {kFixArray4, 1};
  codec::append(bytes, metalayer_map(layers, kTrailerMapAt, 1));
  return bytes;
}

Bytes content_prefix(std::uint64_t length) {
  Bytes bytes;
  put_be(bytes, kBin32, static_cast<std::uint32_t>(length));
  return bytes;
}

Bytes trailer_end(std::uint64_t before) {
  Bytes bytes;
  put_be(bytes, kUint32, static_cast<std::uint32_t>(before + kTrailerEnd));
  bytes.push_back(kFixExt16);
  bytes.insert(bytes.end(), 1 + 16, 0);  // no fingerprint
  return bytes;
}

Bytes trailer_image(const std::vector<Metalayer>& stored) {
  Bytes bytes = trailer_begin(lengths_of(stored));
  append_contents(bytes, stored);
  codec::append(bytes, trailer_end(bytes.size()));
  return bytes;
}

Bytes metalayer_chunk(ByteView plain) {
  codec::EncodeContext context;
  codec::EncodeParameters parameters;
  parameters.compcode = codec::kLz4;
  // encode_chunk() returns no bytes for zeros, which an index entry would represent. A metalayer has no index entry.
  if (auto encoded = codec::encode_chunk(context, parameters, plain); encoded && !encoded->bytes.empty()) {
    return {encoded->bytes.begin(), encoded->bytes.end()};
  }
  return stored_chunk(plain);
}

Bytes empty_frame(const NewFrame& frame) {
  Bytes bytes = with_metalayers(fixed_header(frame), frame.metalayers);
  const Bytes trailer = trailer_image(frame.vlmetalayers);
  HeaderUpdate fields;
  fields.has_vlmetalayers = !frame.vlmetalayers.empty();
  fields.frame_length = bytes.size() + trailer.size();
  fields.chunksize = frame.chunksize;
  encode_update(fields, bytes);
  codec::append(bytes, trailer);
  return bytes;
}

Bytes blank_frame() {
  NewFrame frame;
  frame.chunksize = -1;
  return empty_frame(frame);
}

codec::EncodeParameters encode_parameters(const FrameParameters& parameters) {
  codec::EncodeParameters encode;
  encode.compcode = parameters.compcode;
  encode.compcode_meta = parameters.compcode_meta;
  encode.clevel = parameters.clevel;
  encode.filters = parameters.filters;
  encode.filters_meta = parameters.filters_meta;
  encode.typesize = parameters.typesize;
  encode.blocksize = parameters.blocksize;
  encode.split_mode = parameters.split_mode;
  encode.use_dict = parameters.use_dict;
  return encode;
}

}  // namespace cframefs::frame
