#include "frame/remote/publishing/upload_parts.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/core.h>

namespace cframefs::frame {

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
// Equal parts hold the expected length. The rest are longer, for an object that becomes longer than expected.
constexpr std::uint32_t kEqualParts = 9'000;
constexpr std::uint64_t kLongerFactor = 16;
// Without an expected length, the size doubles after each thousand parts.
constexpr std::uint32_t kPartsOfOneSize = 1'000;

std::uint64_t base_size(std::uint64_t expected) {
  const std::uint64_t needed = (expected / kEqualParts / kMiB + 1) * kMiB;
  return std::clamp(needed, UploadParts::kLeastPart, UploadParts::kMostPart);
}

}  // namespace

UploadParts::UploadParts(std::uint64_t expected) : expected_(expected), base_(base_size(expected)) {}

std::uint64_t UploadParts::size_of(std::uint32_t number) const {
  if (expected_ == 0) return base_ << ((number - 1) / kPartsOfOneSize);
  return number <= kEqualParts ? base_ : std::min(base_ * kLongerFactor, kMostPart);
}

Result<void> UploadParts::write(ByteView from, FileOffset at) {
  if (from.empty()) return {};
  const std::uint64_t end = at.value + from.size();
  if (auto claimed = claim(at.value, end); !claimed) return claimed;
  if (auto opened = open_until(end); !opened) return opened;
  const char* const bytes = reinterpret_cast<const char*>(from.data());
  for (auto& entry : open_) {
    Open& part = entry.second;
    const std::uint64_t begin = std::max(part.begin, at.value);
    const std::uint64_t until = std::min(part.begin + part.size, end);
    if (begin >= until) continue;
    if (part.bytes.size() < until - part.begin) {
      held_ += until - part.begin - part.bytes.size();
      part.bytes.resize(until - part.begin);
    }
    std::copy_n(bytes + (begin - at.value), until - begin,
                part.bytes.begin() + static_cast<std::ptrdiff_t>(begin - part.begin));
  }
  return {};
}

/// Notes that the range is written, which must lie behind the end or in a gap.
Result<void> UploadParts::claim(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end_) {
    if (begin > end_) gaps_[end_] = begin;
    end_ = end;
    return {};
  }
  auto gap = gaps_.upper_bound(begin);
  if (gap == gaps_.begin() || std::prev(gap)->second < end)
    return codec::invalid(fmt::format("bytes {} to {} of an object are written twice", begin, end));
  --gap;
  const std::uint64_t gap_begin = gap->first;
  const std::uint64_t gap_end = gap->second;
  gaps_.erase(gap);
  if (gap_begin < begin) gaps_[gap_begin] = begin;
  if (end < gap_end) gaps_[end] = gap_end;
  return {};
}

/// Makes the parts that bytes before `end` belong to.
Result<void> UploadParts::open_until(std::uint64_t end) {
  while (opened_end_ < end) {
    if (opened_ == kMostParts)
      return codec::io_error(EFBIG, "upload", fmt::format("the object has more than {} parts", kMostParts));
    ++opened_;
    Open part;
    part.begin = opened_end_;
    part.size = size_of(opened_);
    // Most objects are shorter than one part.
    if (opened_ > 1) part.bytes.reserve(part.size);
    opened_end_ += part.size;
    open_.emplace(opened_, std::move(part));
  }
  return {};
}

bool UploadParts::has_gap(std::uint64_t begin, std::uint64_t end) const {
  if (end > end_) return true;
  const auto after = gaps_.lower_bound(end);
  return after != gaps_.begin() && std::prev(after)->second > begin;
}

UploadPart UploadParts::give(std::map<std::uint32_t, Open>::iterator part) {
  UploadPart given{part->first, std::move(part->second.bytes)};
  held_ -= given.bytes.size();
  open_.erase(part);
  return given;
}

std::optional<UploadPart> UploadParts::take() {
  for (auto part = open_.begin(); part != open_.end(); ++part) {
    const Open& open = part->second;
    if (part->first > 1 && !has_gap(open.begin, open.begin + open.size)) return give(part);
  }
  return std::nullopt;
}

Result<std::optional<UploadPart>> UploadParts::take_rest() {
  if (!gaps_.empty()) return codec::invalid(fmt::format("byte {} of an object is not written", gaps_.begin()->first));
  if (open_.empty()) return std::optional<UploadPart>();
  return std::optional<UploadPart>(give(open_.size() == 1 ? open_.begin() : std::next(open_.begin())));
}

}  // namespace cframefs::frame
