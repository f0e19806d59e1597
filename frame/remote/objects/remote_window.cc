#include "frame/remote/objects/remote_window.h"

#include <algorithm>

namespace cframefs::frame {
namespace {

constexpr std::uint64_t kNear = 64U << 10;   // a read may skip this many bytes beyond what was fetched ahead
constexpr std::uint64_t kNext = 4U << 10;    // and this many if nothing was
constexpr std::uint64_t kBehind = 1U << 20;  // and begin this many bytes before the farthest read
constexpr unsigned kScatteredReads = 4;
constexpr unsigned kHitsAfterScatter = 3;
constexpr unsigned kMostHits = 1000;

}  // namespace

bool ReadAheadWindow::belongs_to(ByteRange read, const Stream& stream) {
  if (stream.used == 0) return false;
  const std::uint64_t from = stream.position - std::min(stream.position, kBehind);
  const std::uint64_t to =
      stream.window == 0 ? stream.position + kNext : std::max(stream.position, stream.ahead_end) + kNear;
  return read.begin >= from && read.begin <= to;
}

ByteRange ReadAheadWindow::note(ByteRange read, std::uint64_t length) {
  ++time_;
  const auto found =
      std::find_if(streams_.begin(), streams_.end(), [&](const Stream& stream) { return belongs_to(read, stream); });
  if (found == streams_.end()) {
    if (++scattered_ >= kScatteredReads) is_off_ = true;
    scattered_ = std::min(scattered_, kScatteredReads);
    *std::min_element(streams_.begin(), streams_.end(), [](const Stream& one, const Stream& other) {
      return one.used < other.used;
    }) = {read.end, read.end, 0, 0, time_};
    return {};
  }
  Stream& stream = *found;
  stream.used = time_;
  if (read.end <= stream.position) return {};
  const bool follows = read.begin >= stream.position;
  stream.position = read.end;
  if (!follows) return {};  // such as a chunk after a look at its header: random readers do that, too
  stream.hits = std::min(stream.hits + 1, kMostHits);
  scattered_ = 0;
  if (is_off_ && stream.hits < kHitsAfterScatter) return {};
  is_off_ = false;
  const std::uint64_t ahead = stream.ahead_end - std::min(stream.ahead_end, stream.position);
  if (ahead != 0 && ahead > stream.window - std::min(stream.window / 2, kStep)) return {};
  stream.window = std::min(stream.window == 0 ? kFirst : 2 * stream.window, most_);
  const ByteRange wanted{std::max(stream.ahead_end, stream.position),
                         std::min(stream.position + stream.window, length)};
  if (wanted.begin >= wanted.end) return {};
  // Whole steps, so that no request is for a sliver.
  const std::uint64_t rest = wanted.end < length && wanted.size() > kStep ? wanted.size() % kStep : 0;
  stream.ahead_end = wanted.end - rest;
  return {wanted.begin, stream.ahead_end};
}

void ReadAheadWindow::cut(ByteRange ahead, std::uint64_t covered) {
  for (Stream& stream : streams_) {
    if (stream.used != 0 && stream.ahead_end == ahead.end) stream.ahead_end = std::max(covered, ahead.begin);
  }
}

}  // namespace cframefs::frame
