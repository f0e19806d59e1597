// Puts chunks together by hand, from chunk.md, so that the decoder is tested against something that shares no code with
// it nor with any encoder of ours. Does what no writer would, too: any order of blocks, slack between them, any
// version.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "codec/format/chunk_header.h"
#include "tests/codec/test_bytes.h"

namespace cframefs {

struct ChunkPlan {
  std::uint8_t version = 5;
  std::uint8_t typesize = 1;
  std::int32_t blocksize = 1024;
  codec::CodecFormat format = codec::CodecFormat::lz4;
  bool split = false;
  bool short_header = false;  // 16 bytes; the pipeline then has to be one that flags can tell
  bool runs = true;           // write runs as such (never behind a short header)
  bool old_bitshuffle = false;
  std::array<std::uint8_t, 6> filters{};
  std::array<std::uint8_t, 6> metas{};
  Bytes dictionary = {};                        // raw content
  std::vector<std::uint32_t> block_order = {};  // in which the blocks are stored; empty: as they come
  std::size_t slack = 0;                        // stray bytes behind each block
  std::vector<std::uint32_t> vl_lengths = {};   // plain lengths of variable-length blocks; empty: no such chunk
};

Bytes assemble(const ChunkPlan& plan, const Bytes& plain);

/// Kinds without blocks, all with a 32-byte header unless said so.
Bytes assemble_memcpyed(const Bytes& plain, std::uint8_t version, std::size_t header_length, std::size_t payload_at);
Bytes assemble_special(codec::SpecialValue value, std::uint8_t typesize, std::int32_t nbytes, const Bytes& repeated);

/// Nothing but a header; `flags2` and `blosc2_flags` as in chunk.md.
Bytes extended_header(std::uint8_t flags, std::uint8_t typesize, std::int32_t nbytes, std::int32_t blocksize,
                      std::int32_t cbytes, std::uint8_t flags2 = 0, std::uint8_t blosc2_flags = 0);

/// One codec stream; empty where the codec finds nothing to compress.
Bytes compress(codec::CodecFormat format, const Bytes& dictionary, const Bytes& plain);

}  // namespace cframefs
