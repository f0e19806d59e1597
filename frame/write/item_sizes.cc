#include "frame/write/item_sizes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "frame/numpy/npy_file.h"

namespace cframefs::frame {
namespace {

// A RIFF file: "RIFF", its length, "WAVE", then chunks: an id of 4 bytes, a length, as many bytes, padded to even.
constexpr std::size_t kRiffHeader = 12;
constexpr std::size_t kRiffChunkHeader = 8;
constexpr std::size_t kMinFormat = 16;

// Encodings whose samples all have the same size.
constexpr std::array<std::uint16_t, 3> kPlainEncodings{1, 3, 0xFFFE};  // integers, floats, one of both

bool has_text(ByteView bytes, std::size_t at, std::string_view text) {
  return bytes.size() >= at + text.size() && std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

/// `format`: the content of the chunk "fmt ", at least kMinFormat bytes.
std::vector<std::int32_t> sizes_of_wav_format(ByteView format) {
  const auto encoding = codec::load_le<std::uint16_t>(format.data());
  const auto channels = codec::load_le<std::uint16_t>(format.data() + 2);
  const auto all = codec::load_le<std::uint16_t>(format.data() + 12);
  const bool is_plain = std::find(kPlainEncodings.begin(), kPlainEncodings.end(), encoding) != kPlainEncodings.end();
  if (!is_plain || channels == 0 || all == 0 || all % channels != 0) return {};
  std::vector<std::int32_t> sizes{all / channels};
  if (channels > 1) sizes.push_back(all);
  std::erase_if(sizes, [](std::int32_t size) { return size > kMaxItemSize; });
  return sizes;
}

std::vector<std::int32_t> sizes_of_wav(ByteView head) {
  const bool is_wav = (has_text(head, 0, "RIFF") || has_text(head, 0, "RF64")) && has_text(head, 8, "WAVE");
  if (!is_wav) return {};
  for (std::uint64_t at = kRiffHeader; at + kRiffChunkHeader + kMinFormat <= head.size();) {
    const ByteView content = head.subspan(at + kRiffChunkHeader);
    const std::uint64_t length = codec::load_le<std::uint32_t>(head.data() + at + 4);
    if (has_text(head, at, "fmt ")) return length >= kMinFormat ? sizes_of_wav_format(content) : std::vector<int>{};
    at += kRiffChunkHeader + length + length % 2;
  }
  return {};
}

// Bytes that repeating_distance() examines.
constexpr std::size_t kExamined = std::size_t{16} << 10;
// A distance stands out if the share of equal bytes exceeds the median by this factor and this share.
constexpr double kStandsOut = 1.15;
constexpr double kStandsOutShare = 0.01;
// The counts of multiples of a record's length are about the same: at least this share of the greatest one.
constexpr double kAlike = 0.8;

}  // namespace

std::vector<std::int32_t> declared_item_sizes(ByteView head) {
  if (!has_npy_magic(head)) return sizes_of_wav(head);
  const auto npy = parse_npy_file(head);
  const bool fits = npy && npy->type.itemsize >= 1 && npy->type.itemsize <= kMaxItemSize;
  if (!fits) return {};
  return {static_cast<std::int32_t>(npy->type.itemsize)};
}

std::int32_t repeating_distance(const std::vector<Sample>& slices) {
  std::array<double, kMaxItemSize + 1> equal{};
  std::size_t examined = 0;
  double examined_slices = 0;
  for (const Sample& slice : slices) {
    const ByteView bytes = ByteView(slice.bytes).first(std::min(slice.bytes.size(), kExamined - examined));
    if (bytes.empty()) break;
    examined += bytes.size();
    ++examined_slices;
    for (std::size_t distance = 2; distance < equal.size() && distance < bytes.size(); ++distance) {
      std::uint32_t count = 0;
      for (std::size_t at = distance; at < bytes.size(); ++at)
        count += bytes[at] == bytes[at - distance] ? 1U : 0U;
      equal[distance] += static_cast<double>(count) / static_cast<double>(bytes.size() - distance);
    }
  }
  const auto most = std::max_element(equal.begin(), equal.end());
  auto sorted = equal;
  std::nth_element(sorted.begin(), sorted.begin() + kMaxItemSize / 2, sorted.end());
  if (*most <= kStandsOut * sorted[kMaxItemSize / 2] + kStandsOutShare * examined_slices) return 0;
  const auto shortest = std::find_if(equal.begin(), equal.end(), [&](double count) { return count >= kAlike * *most; });
  return static_cast<std::int32_t>(shortest - equal.begin());
}

}  // namespace cframefs::frame
