// New versions of chunks that take over blocks of an earlier one. Without a dictionary blocks do not depend on each
// other, so the result is what encode_chunk() makes of all bytes.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codec/chunk_decoder.h"
#include "codec/chunk_encoder.h"
#include "tests/codec/test_bytes.h"

namespace cframefs {
namespace {

using codec::ByteView;
using codec::EncodedChunk;
using codec::EncodeParameters;
using codec::FilterId;

constexpr std::int32_t kBlockLength = 4096;

EncodeParameters parameters_of(std::uint8_t compcode, FilterId filter, std::uint8_t split_mode) {
  EncodeParameters parameters;
  parameters.compcode = compcode;
  parameters.typesize = 4;
  parameters.blocksize = kBlockLength;
  parameters.split_mode = split_mode;
  parameters.filters[codec::kFilterSlots - 1] = static_cast<std::uint8_t>(filter);
  return parameters;
}

EncodedChunk encoded(const EncodeParameters& parameters, const Bytes& plain) {
  codec::EncodeContext context;
  auto chunk = codec::encode_chunk(context, parameters, plain);
  EXPECT_TRUE(chunk);
  return chunk ? *std::move(chunk) : EncodedChunk();
}

codec::ChunkHeader header_in(const EncodedChunk& chunk) {
  const auto header = codec::parse_chunk_header(chunk.bytes);
  EXPECT_TRUE(header);
  return header ? *header : codec::ChunkHeader();
}

bool can_keep(const EncodeParameters& parameters, const EncodedChunk& earlier, std::size_t nbytes) {
  return codec::can_keep_blocks(parameters, header_in(earlier), static_cast<std::int32_t>(nbytes));
}

/// Encodes `now`, which has the blocks of `before` but those in `changed` and those after its end. The bytes of blocks
/// that are kept are not given to the encoder.
codec::Result<EncodedChunk> patch(const EncodeParameters& parameters, const EncodedChunk& earlier, const Bytes& now,
                                  const std::vector<std::size_t>& changed) {
  const auto decoder = codec::ChunkDecoder::parse(earlier.bytes);
  EXPECT_TRUE(decoder);
  Bytes plain = now;
  std::vector<ByteView> kept((now.size() + kBlockLength - 1) / kBlockLength);
  for (std::size_t block = 0; block < kept.size(); ++block) {
    const std::size_t end = std::min((block + 1) * kBlockLength, now.size());
    const bool is_there = block < decoder->block_count() && decoder->block_range(block).end == end;
    if (!is_there || std::count(changed.begin(), changed.end(), block) != 0) continue;
    const codec::ByteRange range = decoder->stored_range(block);
    kept[block] = ByteView(earlier.bytes).subspan(range.begin, range.size());
    std::fill(plain.begin() + static_cast<std::ptrdiff_t>(block * kBlockLength),
              plain.begin() + static_cast<std::ptrdiff_t>(end), std::uint8_t{0xee});
  }
  codec::EncodeContext context;
  return codec::encode_with_kept_blocks(context, parameters, plain, kept);
}

TEST(KeptBlocks, GiveTheChunkThatEncodingAllBytesGives) {
  for (const std::uint8_t compcode : {std::uint8_t{0}, codec::kLz4, std::uint8_t{2}, std::uint8_t{4}, codec::kZstd}) {
    for (const FilterId filter : {FilterId::none, FilterId::shuffle, FilterId::bitshuffle}) {
      for (const std::uint8_t split_mode : {std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{4}}) {
        const EncodeParameters parameters = parameters_of(compcode, filter, split_mode);
        const Bytes before = mixed_bytes(10 * kBlockLength + 100, 3);
        const EncodedChunk earlier = encoded(parameters, before);
        ASSERT_FALSE(earlier.bytes.empty());
        constexpr std::size_t kBlock = kBlockLength;
        for (const std::size_t size : {before.size(), before.size() + 1, 12 * kBlock, 7 * kBlock, 5 * kBlock + 4}) {
          SCOPED_TRACE("codec " + std::to_string(compcode) + ", filter " + std::to_string(int(filter)) + ", split " +
                       std::to_string(split_mode) + ", " + std::to_string(size) + " bytes");
          Bytes now = mixed_bytes(12 * kBlockLength, 4);
          std::copy_n(before.begin(), std::min(before.size(), size), now.begin());
          now.resize(size);
          for (std::size_t at = 2 * kBlockLength + 10; at < 2 * kBlockLength + 60; ++at)
            now[at] ^= 0x55;
          ASSERT_TRUE(can_keep(parameters, earlier, size));
          const auto patched = patch(parameters, earlier, now, {2});
          ASSERT_TRUE(patched);
          EXPECT_EQ(patched->nbytes, static_cast<std::int32_t>(size));
          EXPECT_EQ(patched->bytes, encoded(parameters, now).bytes);
        }
      }
    }
  }
}

TEST(KeptBlocks, AChunkThatWouldNotShrinkHasNoBytes) {
  const EncodeParameters parameters = parameters_of(codec::kLz4, FilterId::none, 2);
  Bytes before = random_bytes(8 * kBlockLength, 5);
  std::fill_n(before.begin(), kBlockLength, std::uint8_t{7});
  const EncodedChunk earlier = encoded(parameters, before);
  ASSERT_FALSE(header_in(earlier).memcpyed);
  Bytes now = before;
  const Bytes noise = random_bytes(kBlockLength, 6);
  std::copy(noise.begin(), noise.end(), now.begin());
  const auto patched = patch(parameters, earlier, now, {0});
  ASSERT_TRUE(patched);
  EXPECT_TRUE(patched->bytes.empty());
}

TEST(KeptBlocks, AreOfTheSameForm) {
  const EncodeParameters usual = parameters_of(codec::kLz4, FilterId::shuffle, 1);
  const Bytes plain = mixed_bytes(10 * kBlockLength, 3);
  const EncodedChunk earlier = encoded(usual, plain);
  ASSERT_TRUE(can_keep(usual, earlier, plain.size()));
  const auto refuses = [&](const auto& change) {
    EncodeParameters other = usual;
    change(other);
    return !can_keep(other, earlier, plain.size());
  };
  EXPECT_TRUE(refuses([](EncodeParameters& other) { other.compcode = codec::kZstd; }));
  EXPECT_TRUE(refuses([](EncodeParameters& other) { other.clevel = 0; }));
  EXPECT_TRUE(refuses([](EncodeParameters& other) { other.typesize = 8; }));
  EXPECT_TRUE(refuses([](EncodeParameters& other) { other.blocksize = 2 * kBlockLength; }));
  EXPECT_TRUE(refuses([](EncodeParameters& other) { other.split_mode = 2; }));
  EXPECT_TRUE(refuses([](EncodeParameters& other) { other.filters[5] = 2; }));
  EXPECT_TRUE(refuses([](EncodeParameters& other) { other.use_dict = true; }));
  EXPECT_TRUE(refuses([](EncodeParameters& other) { other.filters[0] = 200; }));
  EXPECT_FALSE(can_keep(usual, earlier, kBlockLength / 2)) << "blocks are no longer than the chunk";
  EXPECT_FALSE(refuses([](EncodeParameters& other) { other.clevel = 9; })) << "readers need not know the level";
}

TEST(KeptBlocks, NotOfChunksWhoseBlocksDependOnOthers) {
  const Bytes plain = mixed_bytes(10 * kBlockLength, 3);
  const EncodeParameters delta = parameters_of(codec::kLz4, FilterId::delta, 4);
  EXPECT_FALSE(can_keep(delta, encoded(delta, plain), plain.size()));
  EncodeParameters dictionary = parameters_of(codec::kZstd, FilterId::shuffle, 4);
  dictionary.use_dict = true;
  const EncodedChunk with_dictionary = encoded(dictionary, mixed_bytes(64 * kBlockLength, 3));
  ASSERT_TRUE(header_in(with_dictionary).dictionary);
  EXPECT_FALSE(can_keep(dictionary, with_dictionary, 64UL * kBlockLength));
  dictionary.use_dict = false;
  EXPECT_FALSE(can_keep(dictionary, with_dictionary, 64UL * kBlockLength));
  const EncodeParameters usual = parameters_of(codec::kLz4, FilterId::shuffle, 4);
  const EncodedChunk raw = encoded(usual, random_bytes(10 * kBlockLength, 5));
  ASSERT_TRUE(header_in(raw).memcpyed);
  EXPECT_FALSE(can_keep(usual, raw, 10UL * kBlockLength));
}

}  // namespace
}  // namespace cframefs
