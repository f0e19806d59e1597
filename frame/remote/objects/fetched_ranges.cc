#include "frame/remote/objects/fetched_ranges.h"

#include <algorithm>
#include <iterator>

namespace cframefs::frame {
namespace {

// A range is awaited while more than this many of its bytes are: readers may skip some.
constexpr std::uint64_t kSkipped = 4U << 10;

/// Returns the ranges, cut into parts of at most `most` bytes.
std::vector<ByteRange> cut_into(const std::vector<ByteRange>& ranges, std::uint64_t most) {
  std::vector<ByteRange> parts;
  for (const ByteRange& range : ranges) {
    for (std::uint64_t begin = range.begin; begin < range.end; begin += most)
      parts.push_back({begin, begin + std::min(most, range.end - begin)});
  }
  return parts;
}

}  // namespace

FetchedRanges::Claim::~Claim() {
  for (const Piece& piece : to_start)
    piece.fetch->fail_unless_started();
}

std::uint64_t FetchedRanges::charged() const {
  codec::MutexLock lock(mutex_);
  return charged_;
}

FetchedRanges::Admission FetchedRanges::admit(std::uint64_t bytes) {
  codec::MutexLock lock(mutex_);
  const std::uint64_t turn = next_turn_++;
  while (turn != turn_now_ || (admitted_ != 0 && (admitted_ >= bound_ || bytes > bound_ - admitted_)))
    given_back_.wait(mutex_);
  ++turn_now_;
  admitted_ += bytes;
  given_back_.notify_all();  // the next in line may fit, too
  return {*this, bytes};
}

void FetchedRanges::give_back(std::uint64_t bytes) {
  codec::MutexLock lock(mutex_);
  admitted_ -= bytes;
  ++ended_turns_;
  evict();
  given_back_.notify_all();
}

bool FetchedRanges::is_busy() const {
  codec::MutexLock lock(mutex_);
  return next_turn_ - ended_turns_ >= kManyReaders;
}

/// Returns the first range that ends after `at`, of this or a later object.
FetchedRanges::Entries::iterator FetchedRanges::first_from(const ObjectId& object, std::uint64_t at) {
  auto entry = entries_.upper_bound({object, at});
  if (entry == entries_.begin()) return entry;
  const auto before = std::prev(entry);
  return before->first.object == object && before->second.end > at ? before : entry;
}

std::vector<ByteRange> FetchedRanges::gaps_in(const ObjectId& object, ByteRange range) {
  std::vector<ByteRange> gaps;
  std::uint64_t at = range.begin;
  for (auto entry = first_from(object, at); at < range.end; ++entry) {
    const bool is_last = entry == entries_.end() || entry->first.object != object || entry->first.begin >= range.end;
    const std::uint64_t gap_end = is_last ? range.end : entry->first.begin;
    if (gap_end > at) gaps.push_back({at, gap_end});
    if (is_last) break;
    at = entry->second.end;
  }
  return gaps;
}

/// Merges gaps that are near to each other. The ranges between them, which are fetched again, are removed; ranges in
/// flight are not.
void FetchedRanges::merge_near(const ObjectId& object, std::vector<ByteRange>& gaps) {
  std::vector<ByteRange> merged;
  for (const ByteRange& gap : gaps) {
    if (merged.empty() || gap.begin - merged.back().end > kMergedGap) {
      merged.push_back(gap);
      continue;
    }
    const auto from = entries_.lower_bound({object, merged.back().end});
    const auto to = entries_.lower_bound({object, gap.begin});
    if (!std::all_of(from, to, [](const auto& entry) { return entry.second.fetch->has_arrived(); })) {
      merged.push_back(gap);
      continue;
    }
    for (auto entry = from; entry != to;)
      remove(entry++);
    merged.back().end = gap.end;
  }
  gaps = std::move(merged);
}

FetchedRanges::Piece FetchedRanges::add(const ObjectId& object, ByteRange range, std::shared_ptr<RangeFetch> fetch,
                                        Rest rest, bool ahead) {
  const Key key{object, range.begin};
  recent_.push_front(key);
  const std::uint64_t awaited = rest == Rest::will_be_read ? range.size() : 0;
  entries_.emplace(key, Entry{range.end, fetch, awaited, !ahead, Time{}, recent_.begin()});
  charged_ += range.size() + kPieceCost;
  return {range, std::move(fetch)};
}

void FetchedRanges::remove(Entries::iterator entry) {
  charged_ -= range_of(*entry).size() + kPieceCost;
  recent_.erase(entry->second.place);
  entries_.erase(entry);
}

std::vector<FetchedRanges::Piece> FetchedRanges::find(const ObjectId& object, ByteRange need) {
  codec::MutexLock lock(mutex_);
  if (need.empty() || !gaps_in(object, need).empty()) return {};
  std::vector<Piece> pieces;
  for (auto entry = first_from(object, need.begin); entry != entries_.end(); ++entry) {
    if (entry->first.object != object || entry->first.begin >= need.end) break;
    if (!entry->second.fetch->has_arrived()) return {};
    pieces.push_back({range_of(*entry), entry->second.fetch});
  }
  return pieces;
}

FetchedRanges::Claim FetchedRanges::claim(const ObjectId& object, ByteRange need, ByteRange want, Rest rest) {
  codec::MutexLock lock(mutex_);
  Claim claim;
  if (!gaps_in(object, need).empty()) {
    auto gaps = gaps_in(object, want);
    merge_near(object, gaps);
    for (const ByteRange& part : cut_into(gaps, kMostRequest))
      claim.to_start.push_back(add(object, part, std::make_shared<RangeFetch>(), rest, false));
  }
  for (auto entry = first_from(object, need.begin); entry != entries_.end(); ++entry) {
    if (entry->first.object != object || entry->first.begin >= need.end) break;
    entry->second.is_begun = true;
    claim.needed.push_back({range_of(*entry), entry->second.fetch});
  }
  evict();
  return claim;
}

FetchedRanges::Claim FetchedRanges::claim_ahead(const ObjectId& object, ByteRange want, std::uint64_t& covered) {
  codec::MutexLock lock(mutex_);
  Claim claim;
  auto gaps = gaps_in(object, want);
  merge_near(object, gaps);
  covered = want.end;
  for (const ByteRange& part : cut_into(gaps, kMostAheadRequest)) {
    if (!make_room_ahead(part.size() + kPieceCost)) {
      covered = part.begin;
      break;
    }
    claim.to_start.push_back(add(object, part, std::make_shared<RangeFetch>(), Rest::will_be_read, true));
  }
  return claim;
}

void FetchedRanges::insert(const ObjectId& object, std::uint64_t begin, codec::ByteView bytes) {
  codec::MutexLock lock(mutex_);
  for (const ByteRange& gap : gaps_in(object, {begin, begin + bytes.size()})) {
    const codec::ByteView part = bytes.subspan(gap.begin - begin, gap.size());
    add(object, gap, std::make_shared<RangeFetch>(std::vector<std::uint8_t>(part.begin(), part.end())),
        Rest::may_be_read, false);
  }
  evict();
}

void FetchedRanges::note_read(const ObjectId& object, const Piece& piece, ByteRange part) {
  codec::MutexLock lock(mutex_);
  const auto entry = entries_.find({object, piece.range.begin});
  if (entry == entries_.end() || entry->second.fetch != piece.fetch) return;
  entry->second.is_begun = true;
  entry->second.awaited -= std::min(entry->second.awaited, common_part(piece.range, part).size());
  recent_.splice(recent_.begin(), recent_, entry->second.place);
}

void FetchedRanges::note_approach(const ObjectId& object, ByteRange soon) {
  codec::MutexLock lock(mutex_);
  for (auto entry = first_from(object, soon.begin); entry != entries_.end(); ++entry) {
    if (entry->first.object != object || entry->first.begin >= soon.end) break;
    recent_.splice(recent_.begin(), recent_, entry->second.place);
  }
}

void FetchedRanges::drop(const ObjectId& object, const Piece& piece) {
  codec::MutexLock lock(mutex_);
  const auto entry = entries_.find({object, piece.range.begin});
  if (entry != entries_.end() && entry->second.fetch == piece.fetch) remove(entry);
}

bool FetchedRanges::is_awaited(const Entry& entry, Time now) const {
  return entry.awaited > kSkipped && now - entry.arrived < patience_;
}

/// Returns the least recently used ranges that have arrived and that are awaited, or are not, of `enough` bytes or all.
std::vector<FetchedRanges::Entries::iterator> FetchedRanges::arrived(std::uint64_t enough, bool awaited) {
  const Time now = std::chrono::steady_clock::now();
  std::vector<Entries::iterator> found;
  std::uint64_t bytes = 0;
  for (auto key = recent_.rbegin(); key != recent_.rend() && bytes < enough; ++key) {
    const auto entry = entries_.find(*key);
    if (!entry->second.fetch->has_arrived()) continue;
    if (entry->second.arrived == Time{}) entry->second.arrived = now;
    if (is_awaited(entry->second, now) != awaited) continue;
    found.push_back(entry);
    bytes += range_of(*entry).size() + kPieceCost;
  }
  return found;
}

bool FetchedRanges::make_room_ahead(std::uint64_t bytes) {
  const bool readers_wait = turn_now_ != next_turn_;  // what they fetch would displace this
  if (bytes > bound_ || readers_wait) return false;
  if (charged_ <= bound_ - bytes) return true;
  const auto displaced = arrived(charged_ - (bound_ - bytes), false);
  std::uint64_t left = charged_;
  for (const auto& entry : displaced)
    left -= range_of(*entry).size() + kPieceCost;
  if (left > bound_ - bytes) return false;
  for (const auto& entry : displaced)
    remove(entry);
  return true;
}

/// Removes ranges that have arrived, until the rest fits.
void FetchedRanges::evict() {
  if (charged_ <= bound_) return;
  for (const auto& entry : arrived(charged_ - bound_, false))
    remove(entry);
  if (charged_ <= bound_) return;
  auto awaited = arrived(UINT64_MAX, true);
  const auto is_begun = [](const Entries::iterator& entry) { return entry->second.is_begun; };
  // From the back: those to which no reader has come, the newest first, then the others, the least recently used first.
  const auto untouched = std::stable_partition(awaited.begin(), awaited.end(), is_begun);
  std::reverse(awaited.begin(), untouched);
  for (; charged_ > bound_ && !awaited.empty(); awaited.pop_back())
    remove(awaited.back());
}

}  // namespace cframefs::frame
