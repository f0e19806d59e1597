#include "frame/write/auto_params.h"

#include <algorithm>
#include <array>
#include <limits>

#include "frame/numpy/npy_file.h"

namespace cframefs::frame {
namespace {

constexpr std::int64_t kChunksize = std::int64_t{1} << 20;

// Tried in this order. A typesize is chosen only if its result is shorter than kGain times the shortest one before.
constexpr std::array<std::int32_t, 9> kTypesizes{1, 2, 3, 4, 6, 8, 12, 16, 24};
constexpr double kGain = 0.97;

constexpr std::uint64_t kMaxTypesize = 255;  // the largest typesize of a chunk header

// A sample of fewer items tells nothing about a typesize.
constexpr std::size_t kFewestItems = 32;

/// Returns the item size in the header of a .npy file, or 0 for any other data.
std::int32_t typesize_by_header(ByteView sample) {
  if (!has_npy_magic(sample)) return 0;
  const auto npy = parse_npy_file(sample);
  const bool fits = npy && npy->type.itemsize >= 1 && npy->type.itemsize <= kMaxTypesize;
  return fits ? static_cast<std::int32_t>(npy->type.itemsize) : 0;
}

/// Removes leading zeros, which compress well with any typesize.
ByteView without_leading_zeros(ByteView sample) {
  const auto first = std::find_if(sample.begin(), sample.end(), [](std::uint8_t byte) { return byte != 0; });
  const auto zeros = static_cast<std::size_t>(first - sample.begin());
  return sample.subspan(zeros / kItemsAlign * kItemsAlign);
}

}  // namespace

std::int32_t choose_typesize(codec::EncodeContext& context, const codec::EncodeParameters& parameters,
                             ByteView sample) {
  codec::EncodeParameters trial = parameters;
  // The fastest codec and level that exploit both repeats and unequal byte frequencies.
  trial.compcode = codec::kZstd;
  trial.clevel = 1;
  trial.blocksize = 0;
  trial.split_mode = 0;
  trial.use_dict = false;
  if (const std::int32_t declared = typesize_by_header(sample); declared > 0) return declared;
  const ByteView data = without_leading_zeros(sample);
  const ByteView items = data.first(std::min(data.size(), kSampleBytes));
  std::int32_t best = 1;
  double shortest = std::numeric_limits<double>::max();
  for (const std::int32_t typesize : kTypesizes) {
    if (items.size() < kFewestItems * static_cast<std::size_t>(typesize)) continue;
    trial.typesize = typesize;
    const auto chunk = codec::encode_chunk(context, trial, items);
    if (!chunk) continue;
    const auto length = static_cast<double>(chunk->bytes.size());
    if (length < kGain * shortest) best = typesize;
    shortest = std::min(shortest, length);
  }
  return best;
}

std::int32_t choose_chunksize(std::int32_t typesize, std::int64_t wanted) {
  const std::int64_t size = wanted > 0 ? wanted : kChunksize;
  return static_cast<std::int32_t>(std::max<std::int64_t>(size - size % typesize, typesize));
}

NewFrame choose_frame(codec::EncodeContext& context, codec::EncodeParameters encode, std::int64_t chunksize,
                      ByteView sample) {
  NewFrame frame;
  if (encode.typesize == 0) encode.typesize = choose_typesize(context, encode, sample);
  frame.encode = encode;
  frame.chunksize = choose_chunksize(encode.typesize, chunksize);
  return frame;
}

}  // namespace cframefs::frame
