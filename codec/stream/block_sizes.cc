#include "codec/stream/block_sizes.h"

#include <algorithm>
#include <array>

#include "codec/format/encode_parameters.h"
#include "codec/stream/codec_table.h"

namespace cframefs::codec {
namespace {

constexpr std::int32_t kKiB = 1024;
constexpr std::int32_t kMaxSplitTypesize = 16;    // largest typesize that the automatic rule splits
constexpr std::int32_t kMinSplitItems = 32;       // fewest items of a block that the automatic rule splits
constexpr std::int32_t kMaxHeaderTypesize = 255;  // largest typesize that a chunk header can hold

bool codec_gains(const EncodeParameters& parameters) {
  const CodecInfo* const codec = codec_info(parameters.compcode);
  switch (codec != nullptr ? codec->split : SplitRule::never) {
    case SplitRule::never:
      return false;
    case SplitRule::always:
      return true;
    case SplitRule::to_level_5:
      return parameters.clevel <= 5;
  }
  return false;
}

bool rule_splits(const EncodeParameters& parameters, std::int32_t blocksize) {
  const bool shuffled = std::find(parameters.filters.begin(), parameters.filters.end(),
                                  static_cast<std::uint8_t>(FilterId::shuffle)) != parameters.filters.end();
  return codec_gains(parameters) && shuffled && parameters.typesize <= kMaxSplitTypesize &&
         blocksize / parameters.typesize >= kMinSplitItems;
}

bool wants_split(const EncodeParameters& parameters, std::int32_t blocksize) {
  constexpr std::uint8_t kAlways = 1;
  constexpr std::uint8_t kNever = 2;
  if (parameters.use_dict || parameters.split_mode == kNever) return false;
  return parameters.split_mode == kAlways || rule_splits(parameters, blocksize);
}

std::int32_t unsplit_blocksize(const EncodeParameters& parameters, std::int32_t nbytes) {
  if (nbytes < 32 * kKiB) return nbytes;
  const CodecInfo* const codec = codec_info(parameters.compcode);
  const bool long_blocks = codec != nullptr && codec->long_blocks;
  const std::int32_t base = (long_blocks ? 64 : 32) * kKiB;
  switch (parameters.clevel) {
    case 0:
      return base / 4;
    case 1:
      return base / 2;
    case 2:
      return base;
    case 3:
      return base * 2;
    case 4:
    case 5:
      return base * 4;
    case 9:
      return base * (long_blocks ? 16 : 8);
    default:
      return base * 8;
  }
}

// Each stream of a split block holds one byte of every item, so the block is typesize times a stream.
std::int32_t split_blocksize(const EncodeParameters& parameters) {
  constexpr std::array<std::int32_t, 10> kStream{32, 32, 32, 32, 64, 64, 64, 128, 256, 512};
  const std::int64_t block =
      std::int64_t{kStream[static_cast<std::size_t>(parameters.clevel)]} * kKiB * parameters.typesize;
  return static_cast<std::int32_t>(std::clamp(block, std::int64_t{32} * kKiB, std::int64_t{4} * kKiB * kKiB));
}

std::int32_t whole_items(std::int32_t blocksize, std::int32_t typesize) {
  return blocksize > typesize ? blocksize - blocksize % typesize : blocksize;
}

}  // namespace

std::int32_t choose_blocksize(const EncodeParameters& parameters, std::int32_t nbytes) {
  std::int32_t blocksize = parameters.blocksize;
  if (blocksize == 0) {
    const bool split = parameters.clevel > 0 && wants_split(parameters, nbytes);
    blocksize = split ? split_blocksize(parameters) : unsplit_blocksize(parameters, nbytes);
  }
  // Readers could not tell a block shorter than an item from one that was cut wrongly.
  blocksize = std::max(blocksize, parameters.typesize);
  return whole_items(std::min(blocksize, nbytes), parameters.typesize);
}

bool choose_split(const EncodeParameters& parameters, std::int32_t blocksize) {
  const bool divides = parameters.typesize <= kMaxHeaderTypesize && parameters.typesize > 1 &&
                       blocksize >= parameters.typesize && blocksize % parameters.typesize == 0;
  return divides && wants_split(parameters, blocksize);
}

}  // namespace cframefs::codec
