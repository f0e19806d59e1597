#include "frame/write/data_samples.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace cframefs::frame {
namespace {

using codec::ByteSpan;
using codec::ByteView;
using codec::Result;

constexpr std::uint64_t kKiB = 1024;

constexpr std::uint64_t kHead = 64 * kKiB;  // holds all headers but those of extremely wide records

// The bytes of all slices, and the share of the data that they are between these limits.
constexpr std::uint64_t kMinSlices = 64 * kKiB;
constexpr std::uint64_t kMaxSlices = 544 * kKiB;  // two usual blocks, and what is cut off at the ends of the slices
constexpr std::uint64_t kSlicesShare = 12;
constexpr std::uint64_t kSlices = 32;
// If fewer slices than this have data, more places are searched: four times as many in each round.
constexpr std::uint64_t kEnoughSlices = 16;
constexpr std::uint64_t kMaxPlaces = 2048;

// The length of a run, and the share of the data that it is between these limits. A run that shows the effect of blocks
// of 512 KiB may be a larger share.
constexpr std::uint64_t kMinRun = 128 * kKiB;
constexpr std::uint64_t kUsefulRun = 513 * kKiB;
constexpr std::uint64_t kUsefulRunShare = 3;
constexpr std::uint64_t kMaxRun = 1025 * kKiB;  // the longest block, and what is cut off before its first item
constexpr std::uint64_t kRunShare = 7;
// From this size on there are two runs.
constexpr std::uint64_t kTwoRuns = 12 * kMaxRun;

Result<Sample> read_sample(const ReadBytes& read, std::uint64_t at, std::uint64_t length) {
  Sample sample{at, std::vector<std::uint8_t>(length)};
  const auto got = read(sample.bytes, at);
  if (!got) return codec::Failure(got.error());
  sample.bytes.resize(*got);
  return sample;
}

/// Returns where in its part of the data, of `step` bytes, a slice of `length` bytes begins: in each part elsewhere,
/// spread evenly over all parts, so that data that alternate with the distance of the slices are met, too.
std::uint64_t place_in_part(std::uint64_t part, std::uint64_t step, std::uint64_t length) {
  if (step <= length) return 0;
  // Multiples of the golden ratio spread evenly; this is its fraction, of 2^32.
  constexpr std::uint64_t kGoldenRatio = 0x9E3779B9;
  const std::uint64_t fraction = part * kGoldenRatio % (std::uint64_t{1} << 32U);
  constexpr std::uint64_t kSteps = 1024;
  return (step - length) / kSteps * (fraction * kSteps >> 32U);
}

Result<std::vector<Sample>> take_slices(const ReadBytes& read, std::uint64_t size) {
  std::vector<Sample> slices;
  const std::uint64_t all = std::clamp(size / kSlicesShare, kMinSlices, kMaxSlices);
  const std::uint64_t length = size <= all ? size : all / kSlices;
  std::uint64_t places = size <= all ? 1 : kSlices;
  for (; places <= kMaxPlaces && slices.size() < kEnoughSlices; places *= 4) {
    const std::uint64_t step = size / kMaxPlaces * (kMaxPlaces / places);
    if (places > kSlices && step < length) break;
    for (std::uint64_t place = 0; place < places && slices.size() < kSlices; ++place) {
      const bool was_searched = places > kSlices && place % 4 == 0;
      if (was_searched) continue;
      auto slice = read_sample(read, step * place + place_in_part(place, step, length), length);
      if (!slice) return codec::Failure(slice.error());
      if (!repeats_one_value(slice->bytes)) slices.push_back(std::move(*slice));
    }
    if (places == 1) break;
  }
  std::sort(slices.begin(), slices.end(), [](const Sample& a, const Sample& b) { return a.offset < b.offset; });
  return slices;
}

}  // namespace

bool repeats_one_value(ByteView bytes) {
  return std::adjacent_find(bytes.begin(), bytes.end(), std::not_equal_to<>()) == bytes.end();
}

Result<DataSamples> take_samples(const ReadBytes& read, std::uint64_t size) {
  DataSamples samples;
  auto head = read_sample(read, 0, std::min(size, kHead));
  if (!head) return codec::Failure(head.error());
  samples.head = std::move(head->bytes);
  auto slices = take_slices(read, size);
  if (!slices) return codec::Failure(slices.error());
  samples.slices = std::move(*slices);
  if (samples.slices.empty()) return samples;
  const std::uint64_t count = size < kTwoRuns ? 1 : 2;
  const std::uint64_t least = size / kUsefulRunShare < kUsefulRun ? kMinRun : kUsefulRun;
  const std::uint64_t length = std::min(size, std::clamp(size / kRunShare, least, kMaxRun));
  for (std::uint64_t run = 0; run < count; ++run) {
    const Sample& near = samples.slices[(2 * run + 1) * samples.slices.size() / (2 * count)];
    auto taken = read_sample(read, std::min(near.offset, size - length), length);
    if (!taken) return codec::Failure(taken.error());
    if (!taken->bytes.empty()) samples.runs.push_back(std::move(*taken));
  }
  return samples;
}

DataSamples samples_of(ByteView bytes) {
  const auto read = [bytes](ByteSpan into, std::uint64_t at) -> Result<std::size_t> {
    const ByteView rest = bytes.subspan(std::min<std::uint64_t>(at, bytes.size()));
    const std::size_t count = std::min(rest.size(), into.size());
    std::copy_n(rest.begin(), count, into.begin());
    return count;
  };
  // Reading memory cannot fail.
  return take_samples(read, bytes.size()).value_or(DataSamples{});
}

}  // namespace cframefs::frame
