// Builds chunks as chunk.md describes them, without code of our decoder or encoder, so that the decoder is tested
// independently. Also builds chunks that no writer makes: any order of blocks, slack between them, any version.
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
  bool short_header = false;  // 16 bytes; REQUIRES: the flags can express the pipeline
  bool runs = true;           // store runs as runs (never with a short header)
  bool old_bitshuffle = false;
  std::array<std::uint8_t, 6> filters{};
  std::array<std::uint8_t, 6> metas{};
  Bytes dictionary = {};                        // raw content
  std::vector<std::uint32_t> block_order = {};  // order of the stored blocks; empty: ascending
  std::size_t slack = 0;                        // stray bytes after each block
  std::vector<std::uint32_t> vl_lengths = {};   // of variable-length blocks; empty: blocks of equal length
};

Bytes assemble(const ChunkPlan& plan, const Bytes& plain);

/// Build chunks without blocks. The header has 32 bytes unless `header_length` says otherwise.
Bytes assemble_memcpyed(const Bytes& plain, std::uint8_t version, std::size_t header_length, std::size_t payload_at);
Bytes assemble_special(codec::SpecialValue value, std::uint8_t typesize, std::int32_t nbytes, const Bytes& repeated);

/// Returns a 32-byte header; `flags2` and `blosc2_flags` as in chunk.md.
Bytes extended_header(std::uint8_t flags, std::uint8_t typesize, std::int32_t nbytes, std::int32_t blocksize,
                      std::int32_t cbytes, std::uint8_t flags2 = 0, std::uint8_t blosc2_flags = 0);

/// Returns one codec stream; empty if the codec cannot compress `plain`.
Bytes compress(codec::CodecFormat format, const Bytes& dictionary, const Bytes& plain);

}  // namespace cframefs
