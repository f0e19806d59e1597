// Decodes whole assembled chunks in all ways, and compares the results.
//
// Thread safety: functions only. Ownership: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include <gtest/gtest.h>

#include "codec/chunk_decoder.h"
#include "tests/codec/chunk_assembler.h"
#include "tests/codec/plain_filters.h"

namespace cframefs {

using codec::ChunkDecoder;
using codec::CodecFormat;
using codec::DecodeContext;
using codec::DecodeParams;
using codec::ErrorKind;
using codec::SpecialValue;

/// Decodes as the frame layer does: parses a prefix, then decodes each block from exactly its stored range.
inline codec::Result<Bytes> decode(const Bytes& chunk, const DecodeParams& environment = {}) {
  const auto header = codec::parse_chunk_header(chunk);
  if (!header) return codec::Failure(header.error());
  const std::uint64_t prefix_size = ChunkDecoder::prefix_size(*header);
  if (prefix_size > chunk.size()) return codec::corrupt("truncated");
  const Bytes prefix(chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(prefix_size));
  const auto decoder = ChunkDecoder::parse(prefix, environment);
  if (!decoder) return codec::Failure(decoder.error());
  DecodeContext context;
  Bytes plain;
  Bytes reference;
  for (std::uint32_t i = 0; i < decoder->block_count(); ++i) {
    const codec::ByteRange stored = decoder->stored_range(i);
    if (stored.end > chunk.size()) return codec::corrupt("truncated");
    const Bytes bytes(chunk.begin() + static_cast<std::ptrdiff_t>(stored.begin),
                      chunk.begin() + static_cast<std::ptrdiff_t>(stored.end));
    EXPECT_EQ(decoder->block_range(i).begin, plain.size());
    Bytes out(decoder->block_range(i).size(), 0xa5);
    const auto decoded = decoder->decode_block(context, i, bytes, out, reference);
    if (!decoded) return codec::Failure(decoded.error());
    if (i == 0) reference = out;
    plain += out;
  }
  return plain;
}

inline ErrorKind error_of(const codec::Result<Bytes>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? ErrorKind::invalid : result.error().kind;
}

/// Checks that decode_partial() gives the same bytes for all blocks that support it.
inline void expect_windows(const Bytes& chunk, const Bytes& plain, const ChunkDecoder& decoder, DecodeContext& context,
                           std::mt19937& random) {
  for (std::uint32_t block = 0; block < decoder.block_count(); ++block) {
    const codec::ByteRange range = decoder.block_range(block);
    const codec::ByteRange stored = decoder.stored_range(block);
    const codec::ByteView bytes = codec::ByteView(chunk).subspan(stored.begin, stored.size());
    const auto begin = static_cast<std::uint32_t>(random() % (range.size() + 1));
    Bytes out(random() % (range.size() - begin + 1), 0xa5);
    const auto decoded = decoder.decode_partial(context, block, bytes, begin, out);
    ASSERT_EQ(decoded.has_value(), decoder.decodes_partial(block));
    if (!decoded) continue;
    ASSERT_TRUE(std::equal(out.begin(), out.end(), plain.begin() + static_cast<std::ptrdiff_t>(range.begin + begin)))
        << out.size() << " bytes from " << begin << " of block " << block;
  }
}

/// Decodes a chunk, and checks that ranges give the same bytes.
inline void expect_decodes(const Bytes& chunk, const Bytes& plain, const DecodeParams& environment = {}) {
  const auto whole = decode(chunk, environment);
  ASSERT_TRUE(whole) << codec::describe(whole.error());
  ASSERT_EQ(*whole, plain);
  const auto decoder = ChunkDecoder::parse(chunk, environment);
  DecodeContext context;
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    const std::size_t begin = random() % (plain.size() + 1);
    const std::size_t end = round == 0 ? plain.size() : begin + random() % (plain.size() - begin + 1);
    const std::size_t from = round == 0 ? 0 : begin;
    ASSERT_NO_FATAL_FAILURE(expect_windows(chunk, plain, *decoder, context, random));
    Bytes out(end - from, 0xa5);
    const auto decoded = decode_range(context, *decoder, chunk, static_cast<std::uint32_t>(from), out);
    ASSERT_TRUE(decoded) << codec::describe(decoded.error());
    ASSERT_TRUE(std::equal(out.begin(), out.end(), plain.begin() + static_cast<std::ptrdiff_t>(from)))
        << from << " to " << end;
    if (from < plain.size()) {
      const std::uint32_t block = decoder->block_at(static_cast<std::uint32_t>(from));
      EXPECT_LE(decoder->block_range(block).begin, from);
      EXPECT_GT(decoder->block_range(block).end, from);
    }
  }
}

constexpr std::uint8_t kShuffle = 1, kBitshuffle = 2, kDelta = 3, kTruncPrec = 4, kOldBytedelta = 34, kBytedelta = 35,
                       kIntTrunc = 36;

}  // namespace cframefs
