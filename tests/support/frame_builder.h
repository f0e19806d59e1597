// Frames made by hand, byte for byte as the format says: an oracle that shares no code with the reader.
//
// Chunks are stored as they are given; plain_chunk() makes the simplest kind. Everything can be overridden afterwards
// in the bytes. Thread safety: one thread per object.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codec/base/bytes.h"

namespace cframefs::test {

using Bytes = std::vector<std::uint8_t>;

/// As msgpack has its numbers.
template <class T>
void append_be(Bytes& to, T value) {
  const std::size_t at = to.size();
  to.resize(at + sizeof value);
  codec::store_be(&to[at], value);
}

/// A chunk whose payload is the plain bytes.
Bytes plain_chunk(codec::ByteView plain, std::uint8_t typesize = 1);

/// A chunk of `nbytes` that repeats `value`.
Bytes repeated_chunk(codec::ByteView value, std::int32_t nbytes, std::uint8_t typesize = 8);

/// A chunk without filters whose blocks are stored raw; `order`: in which order the blocks lie (empty: as they come),
/// `gap`: dead bytes between them.
Bytes raw_block_chunk(codec::ByteView plain, std::uint32_t blocksize, const std::vector<std::uint32_t>& order = {},
                      std::uint32_t gap = 0);

/// The index chunk for these entries, uncompressed.
Bytes plain_index(const std::vector<std::int64_t>& entries);

struct FrameBuilder {
  std::int32_t typesize = 1;
  std::int32_t blocksize = 0;
  std::int32_t chunksize = 0;
  std::int64_t nbytes = 0;
  std::uint8_t general_flags = 0x12;
  std::uint8_t frame_type = 0;
  std::vector<std::pair<std::string, Bytes>> metalayers;
  std::vector<std::pair<std::string, Bytes>> vlmetalayers;  // contents are chunks
  Bytes chunk_section;
  Bytes index;
  Bytes gap;                 // between index and trailer
  std::int64_t cbytes = -1;  // -1: the length of chunk_section

  Bytes header() const;  // frame length as build() makes it
  Bytes trailer() const;
  Bytes build() const;

  std::size_t header_length() const;
};

/// A frame of chunks of `chunksize` holding `plain`, the last one shorter.
FrameBuilder plain_frame(codec::ByteView plain, std::int32_t chunksize);

/// The same as a sparse frame: the files of its directory, by their names.
std::map<std::string, Bytes> sparse_frame(codec::ByteView plain, std::int32_t chunksize);

}  // namespace cframefs::test
