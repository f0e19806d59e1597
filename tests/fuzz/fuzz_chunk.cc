// A chunk from its first byte on: header, block starts, dictionary, every block; and ranges against the blocks.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "codec/chunk_decoder.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace cframefs::codec;

// Plain bytes decoded per input; a few bytes may honestly stand for gigabytes.
constexpr std::uint64_t kBudget = 1 << 20;

std::vector<std::uint8_t> copy(ByteView bytes, ByteRange range) {
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(range.begin);
  return {begin, begin + static_cast<std::ptrdiff_t>(range.size())};
}

void check_ranges(DecodeContext& context, const ChunkDecoder& decoder, ByteView chunk,
                  const std::vector<std::uint8_t>& plain) {
  const std::size_t parts[][2] = {
      {0, plain.size()}, {plain.size() / 3, plain.size() / 2}, {plain.size() / 2, plain.size()}};
  for (const auto& [begin, end] : parts) {
    std::vector<std::uint8_t> out(end - begin);
    FUZZ_CHECK(decode_range(context, decoder, chunk, static_cast<std::uint32_t>(begin), out));
    FUZZ_CHECK(std::equal(out.begin(), out.end(), plain.begin() + static_cast<std::ptrdiff_t>(begin)));
  }
}

// Every buffer is exactly as long as the decoder asked for, so that a sanitizer sees a byte too far.
void decode_blocks(const ChunkDecoder& decoder, ByteView chunk) {
  static DecodeContext context;
  std::vector<std::uint8_t> plain;
  std::vector<std::uint8_t> reference;
  for (std::uint32_t block = 0; block < decoder.block_count(); ++block) {
    const ByteRange range = decoder.block_range(block);
    const ByteRange stored = decoder.stored_range(block);
    FUZZ_CHECK(range.begin == plain.size() && range.begin < range.end && range.end <= decoder.nbytes());
    FUZZ_CHECK(decoder.block_at(static_cast<std::uint32_t>(range.begin)) == block);
    FUZZ_CHECK(decoder.block_at(static_cast<std::uint32_t>(range.end - 1)) == block);
    FUZZ_CHECK(stored.begin <= stored.end && stored.end <= static_cast<std::uint64_t>(decoder.header().cbytes));
    if (range.end > kBudget) return;
    std::vector<std::uint8_t> out(range.size(), 0xa5);
    if (!decoder.decode_block(context, block, copy(chunk, stored), out, reference)) return;
    if (block == 0) reference = out;
    plain.insert(plain.end(), out.begin(), out.end());
  }
  FUZZ_CHECK(plain.size() == decoder.nbytes());
  check_ranges(context, decoder, chunk, plain);
}

}  // namespace

FUZZ_TARGET(chunk)(const std::uint8_t* data, std::size_t size) {
  const ByteView chunk(data, size);
  const Result<ChunkHeader> header = parse_chunk_header(chunk);
  if (!header || static_cast<std::uint64_t>(header->cbytes) > size) return 0;
  const std::uint64_t prefix = ChunkDecoder::prefix_size(*header);
  FUZZ_CHECK(prefix >= header->length && prefix <= static_cast<std::uint64_t>(header->cbytes));
  for (const DecodeParams& environment : {DecodeParams{}, DecodeParams{300, true}}) {
    const Result<ChunkDecoder> decoder = ChunkDecoder::parse(copy(chunk, {0, prefix}), environment);
    if (decoder) decode_blocks(*decoder, chunk.first(static_cast<std::size_t>(header->cbytes)));
  }
  return 0;
}
