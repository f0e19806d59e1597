#include "tests/support/frame_builder.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <initializer_list>
#include <numeric>

namespace cframefs::test {

namespace {

void append(Bytes& to, codec::ByteView bytes) {
  to.insert(to.end(), bytes.data(), bytes.data() + bytes.size());
}

void append(Bytes& to, std::initializer_list<std::uint8_t> bytes) {
  for (const std::uint8_t byte : bytes)
    to.push_back(byte);
}

Bytes chunk_header(std::uint8_t flags, std::uint8_t typesize, std::int32_t nbytes, std::int32_t blocksize,
                   std::int32_t cbytes) {
  Bytes header(32);
  header[0] = 5;
  header[1] = 1;
  header[2] = flags;
  header[3] = typesize;
  codec::store_le(&header[4], nbytes);
  codec::store_le(&header[8], blocksize);
  codec::store_le(&header[12], cbytes);
  return header;
}

using Layers = std::vector<std::pair<std::string, Bytes>>;

/// 93 | CD size | DE n | names with offsets | DC n | contents. `base`: what offsets count from, before the first byte.
Bytes metalayer_section(const Layers& layers, std::size_t base, std::uint16_t size_correction) {
  std::size_t map = 7;
  for (const auto& [name, content] : layers)
    map += 1 + name.size() + 5;
  Bytes bytes = {0x93, 0xcd};
  append_be(bytes, static_cast<std::uint16_t>(map + size_correction));
  bytes.push_back(0xde);
  append_be(bytes, static_cast<std::uint16_t>(layers.size()));
  std::size_t place = base + map + 3;
  for (const auto& [name, content] : layers) {
    bytes.push_back(static_cast<std::uint8_t>(0xa0 + name.size()));
    for (const char c : name)
      bytes.push_back(static_cast<std::uint8_t>(c));
    bytes.push_back(0xd2);
    append_be(bytes, static_cast<std::int32_t>(place));
    place += 5 + content.size();
  }
  bytes.push_back(0xdc);
  append_be(bytes, static_cast<std::uint16_t>(layers.size()));
  for (const auto& [name, content] : layers) {
    bytes.push_back(0xc6);
    append_be(bytes, static_cast<std::uint32_t>(content.size()));
    append(bytes, content);
  }
  return bytes;
}

}  // namespace

Bytes plain_chunk(codec::ByteView plain, std::uint8_t typesize) {
  const auto nbytes = static_cast<std::int32_t>(plain.size());
  Bytes chunk = chunk_header(0x07, typesize, nbytes, std::max(nbytes, 1), nbytes + 32);
  append(chunk, plain);
  return chunk;
}

Bytes repeated_chunk(codec::ByteView value, std::int32_t nbytes, std::uint8_t typesize) {
  const std::int32_t blocksize = std::clamp(nbytes, 1, 1 << 20);
  Bytes chunk = chunk_header(0x05, typesize, nbytes, blocksize, static_cast<std::int32_t>(32 + value.size()));
  chunk[31] = 3 << 4;
  append(chunk, value);
  return chunk;
}

Bytes raw_block_chunk(codec::ByteView plain, std::uint32_t blocksize, const std::vector<std::uint32_t>& order,
                      std::uint32_t gap) {
  const auto count = static_cast<std::uint32_t>((plain.size() + blocksize - 1) / blocksize);
  std::vector<std::uint32_t> places = order;
  if (places.empty()) {
    places.resize(count);
    std::iota(places.begin(), places.end(), 0);
  }
  Bytes blocks;
  std::vector<std::int32_t> starts(count);
  const std::size_t begin = 32 + std::size_t{4} * count;
  for (const std::uint32_t block : places) {
    starts[block] = static_cast<std::int32_t>(begin + blocks.size());
    const std::size_t at = std::size_t{block} * blocksize;
    const codec::ByteView bytes = plain.subspan(at, std::min<std::size_t>(blocksize, plain.size() - at));
    Bytes length(4);
    codec::store_le(length.data(), static_cast<std::int32_t>(bytes.size()));
    append(blocks, length);
    append(blocks, bytes);
    blocks.insert(blocks.end(), gap, 0xee);
  }
  // Blosclz, never split, no filters.
  Bytes chunk = chunk_header(0x15, 1, static_cast<std::int32_t>(plain.size()), static_cast<std::int32_t>(blocksize),
                             static_cast<std::int32_t>(begin + blocks.size()));
  for (const std::int32_t start : starts) {
    Bytes field(4);
    codec::store_le(field.data(), start);
    append(chunk, field);
  }
  append(chunk, blocks);
  return chunk;
}

Bytes plain_index(const std::vector<std::int64_t>& entries) {
  Bytes plain(entries.size() * 8);
  for (std::size_t i = 0; i < entries.size(); ++i)
    codec::store_le(&plain[i * 8], entries[i]);
  return plain_chunk(plain, 8);
}

std::size_t FrameBuilder::header_length() const {
  return 87 + metalayer_section(metalayers, 87, 0).size();
}

Bytes FrameBuilder::header() const {
  const std::size_t length = header_length();
  const std::size_t frame = length + chunk_section.size() + index.size() + gap.size() + trailer().size();
  Bytes bytes = {0x9e, 0xa8, 'b', '2', 'f', 'r', 'a', 'm', 'e', 0, 0xd2};
  append_be(bytes, static_cast<std::int32_t>(length));
  bytes.push_back(0xcf);
  append_be(bytes, static_cast<std::uint64_t>(frame));
  append(bytes, {0xa4, general_flags, frame_type, 0x51, 0x03, 0xd3});
  append_be(bytes, nbytes);
  bytes.push_back(0xd3);
  append_be(bytes, cbytes >= 0 ? cbytes : static_cast<std::int64_t>(chunk_section.size()));
  for (const std::int32_t value : {typesize, blocksize, chunksize}) {
    bytes.push_back(0xd2);
    append_be(bytes, value);
  }
  for (int i = 0; i < 2; ++i)
    append(bytes, {0xd1, 0x00, 0x01});
  bytes.push_back(vlmetalayers.empty() ? 0xc2 : 0xc3);
  append(bytes, {0xd8, 6, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  append(bytes, metalayer_section(metalayers, 87, 0));
  return bytes;
}

Bytes FrameBuilder::trailer() const {
  Bytes bytes = {0x94, 0x01};
  // The map's size field counts one byte less here than in the header.
  append(bytes, metalayer_section(vlmetalayers, 2, static_cast<std::uint16_t>(-1)));
  const auto length = static_cast<std::uint32_t>(bytes.size() + 23);
  bytes.push_back(0xce);
  append_be(bytes, length);
  append(bytes, {0xd8, 0});
  bytes.insert(bytes.end(), 16, 0);
  return bytes;
}

Bytes FrameBuilder::build() const {
  Bytes bytes = header();
  append(bytes, chunk_section);
  append(bytes, index);
  append(bytes, gap);
  append(bytes, trailer());
  return bytes;
}

FrameBuilder plain_frame(codec::ByteView plain, std::int32_t chunksize) {
  FrameBuilder frame;
  frame.chunksize = chunksize;
  frame.nbytes = static_cast<std::int64_t>(plain.size());
  std::vector<std::int64_t> offsets;
  for (std::size_t at = 0; at < plain.size(); at += static_cast<std::size_t>(chunksize)) {
    offsets.push_back(static_cast<std::int64_t>(frame.chunk_section.size()));
    append(frame.chunk_section,
           plain_chunk(plain.subspan(at, std::min(plain.size() - at, static_cast<std::size_t>(chunksize)))));
  }
  if (!offsets.empty()) frame.index = plain_index(offsets);
  return frame;
}

std::map<std::string, Bytes> sparse_frame(codec::ByteView plain, std::int32_t chunksize) {
  std::map<std::string, Bytes> files;
  FrameBuilder index;
  index.frame_type = 1;
  index.chunksize = chunksize;
  index.nbytes = static_cast<std::int64_t>(plain.size());
  index.cbytes = 0;
  std::vector<std::int64_t> numbers;
  for (std::size_t at = 0; at < plain.size(); at += static_cast<std::size_t>(chunksize)) {
    Bytes chunk = plain_chunk(plain.subspan(at, std::min(plain.size() - at, static_cast<std::size_t>(chunksize))));
    index.cbytes += static_cast<std::int64_t>(chunk.size());
    std::array<char, 32> name{};
    std::snprintf(name.data(), name.size(), "%08X.chunk", static_cast<unsigned>(numbers.size()));
    files[name.data()] = std::move(chunk);
    numbers.push_back(static_cast<std::int64_t>(numbers.size()));
  }
  if (!numbers.empty()) index.index = plain_index(numbers);
  files["chunks.b2frame"] = index.build();
  return files;
}

}  // namespace cframefs::test
