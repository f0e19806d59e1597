#include "frame/remote/objects/object_reads.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace cframefs::frame {
namespace {

constexpr std::uint64_t kBlock = RangeStore::kBlockBytes;
constexpr std::uint64_t kSmallRead = 64U << 10;  // shorter reads fetch whole units of this length
constexpr std::uint64_t kEndUnit = 16U << 10;    // and of this length at the ends of the object
constexpr std::uint64_t kMostExpected = FetchedRanges::kMostRequest;
constexpr std::size_t kMostExpectations = 64;
constexpr std::uint64_t kLongestSlice = 32U << 20;

/// A state that nothing identifies shares its ranges with no other object: it may be another state of the same length.
ObjectId id_of_state(const std::string& url, const ObjectState& state) {
  return state.is_identified() ? object_id(state_text(url, state)) : unshared_object_id();
}

}  // namespace

RangedObject::RangedObject(const ObjectReading& reading, const std::string& url, const ObjectState& state,
                           bool fetches_ends)
    : reading_(reading),
      tie_(std::make_shared<ObjectTie>(url, state)),
      id_(id_of_state(url, state)),
      kept_(state.is_identified() ? reading.store : no_store(), state_text(url, state), state.length),
      slice_bytes_(std::clamp(reading.memory.bound() / 2, FetchedRanges::kMostRequest, kLongestSlice)),
      fetches_ends_(fetches_ends),
      window_(reading.memory.bound() / 4 * 3) {}

Result<void> RangedObject::read(FileOffset at, codec::ByteSpan into) {
  if (into.empty()) return {};
  if (at.value > length() || into.size() > length() - at.value) {
    return codec::corrupt(
        fmt::format("the object ends at byte {}, but {} bytes are needed at {}", length(), into.size(), at.value));
  }
  const ByteRange whole{at.value, at.value + into.size()};
  ByteRange after_whole;
  {
    codec::MutexLock lock(plans_mutex_);
    after_whole = window_.note(whole, length());
  }
  for (std::uint64_t begin = whole.begin; begin < whole.end; begin += slice_bytes_) {
    const ByteRange range = common_part({begin, begin + slice_bytes_}, whole);
    const ByteRange next = common_part({range.end, range.end + slice_bytes_}, whole);
    const Part slice{range, into.subspan(begin - whole.begin, range.size())};
    if (auto done = read_slice(slice, next.empty() ? after_whole : next); !done) return done;
  }
  return {};
}

Result<void> RangedObject::read_slice(const Part& slice, ByteRange ahead) {
  if (const auto stale = tie_->staleness()) return codec::Failure(*stale);
  const auto parts = parts_to_fetch(slice);
  if (parts.empty()) {
    fetch_ahead(ahead);
    return {};
  }
  const bool used_version = tie_->uses_version();
  auto done = fetch_parts(parts, ahead);
  if (done || !used_version || tie_->uses_version()) return done;
  return fetch_parts(parts, {});  // the server refuses to name the version; the tag may still be that of the object
}

/// Fetches the parts at once. REQUIRES: they are parts of one slice.
Result<void> RangedObject::fetch_parts(const std::vector<Part>& parts, ByteRange ahead) {
  std::vector<Wanted> wanted;
  wanted.reserve(parts.size());
  for (const Part& part : parts)
    wanted.push_back(wanted_for(part.range));
  const auto turn = admit(wanted);
  std::vector<std::pair<Part, FetchedRanges::Claim>> claims;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    fetch_ends(parts[i].range);
    // Other readers may have fetched parts of it while this one waited for its turn.
    for (const Part& rest : parts_to_fetch(parts[i]))
      claims.emplace_back(rest, claim(rest.range, rest.range == parts[i].range ? wanted[i] : wanted_for(rest.range)));
  }
  fetch_ahead(ahead);
  for (const auto& [part, claim] : claims) {
    for (const auto& piece : claim.needed) {
      if (auto done = copy_piece(piece, part); !done) return done;
    }
  }
  return {};
}

/// Fills the slice with what memory and store have, and returns the rest.
std::vector<RangedObject::Part> RangedObject::parts_to_fetch(const Part& slice) {
  if (copy_from_memory(slice)) return {};
  if (!kept_.keeps()) return {slice};
  std::vector<Part> rest;
  for (std::uint64_t begin = slice.range.begin; begin < slice.range.end;) {
    const ByteRange range = common_part(kept_.block_range(begin / kBlock), slice.range);
    const Part part{range, slice.into.subspan(range.begin - slice.range.begin, range.size())};
    begin = range.end;
    // What lies on disk is not copied into the memory: the kernel has it there.
    if ((range != slice.range && copy_from_memory(part)) || kept_.read(range, part.into)) continue;
    if (const auto found = kept_.find_at_ends(range)) {
      copy_common(found->range, found->bytes, range, part.into);
      reading_.memory.insert(id_, found->range.begin, found->bytes);
    } else if (!rest.empty() && rest.back().range.end == range.begin) {
      Part& last = rest.back();
      last = {{last.range.begin, range.end},
              slice.into.subspan(last.range.begin - slice.range.begin, range.end - last.range.begin)};
    } else {
      rest.push_back(part);
    }
  }
  return rest;
}

bool RangedObject::copy_from_memory(const Part& part) {
  const auto pieces = reading_.memory.find(id_, part.range);
  return !pieces.empty() && std::all_of(pieces.begin(), pieces.end(), [&](const FetchedRanges::Piece& piece) {
    return copy_piece(piece, part).has_value();
  });
}

Result<void> RangedObject::copy_piece(const FetchedRanges::Piece& piece, const Part& part) {
  const auto bytes = piece.fetch->wait();
  if (!bytes) {
    reading_.memory.drop(id_, piece);
    return codec::Failure(bytes.error());
  }
  copy_common(piece.range, *bytes, part.range, part.into);
  reading_.memory.note_read(id_, piece, part.range);
  keep(piece, *bytes);
  return {};
}

/// Has the store keep a range that has arrived. The memory then need not.
void RangedObject::keep(const FetchedRanges::Piece& piece, codec::ByteView bytes) {
  if (!piece.fetch->takes_keeping() || !kept_.keeps()) return;
  kept_.keep(reading_.memory, id_, piece.range, bytes);
  if (kept_.may_have_all(piece.range)) reading_.memory.note_read(id_, piece, piece.range);
}

/// Returns what to fetch if a part of `need` is missing.
RangedObject::Wanted RangedObject::wanted_for(ByteRange need) {
  if (tie_->ignores_ranges()) return {{0, length()}};
  const ByteRange expected = expected_around(need);
  const auto& ends = kept_.ends();
  const auto end =
      std::find_if(ends.begin(), ends.end(), [&](const ByteRange& range) { return range.contains(expected); });
  if (kept_.keeps()) return {end != ends.end() ? *end : blocks_for(need, expected), FetchedRanges::Rest::will_be_read};
  if (expected != need) return {expected, FetchedRanges::Rest::will_be_read};
  if (need.size() >= kSmallRead) return {need};
  return {rounded_out(need, end != ends.end() ? kEndUnit : kSmallRead, length())};
}

/// Returns the blocks of `need`, and those of `expected` around them up to the next ones that are kept.
ByteRange RangedObject::blocks_for(ByteRange need, ByteRange expected) const {
  ByteRange blocks = rounded_out(need, kBlock, length());
  const ByteRange most = rounded_out(expected, kBlock, length());
  while (blocks.begin > most.begin && !kept_.may_have(blocks.begin / kBlock - 1))
    blocks.begin -= kBlock;
  while (blocks.end < most.end && !kept_.may_have(blocks.end / kBlock))
    blocks.end = kept_.block_range(blocks.end / kBlock).end;
  return blocks;
}

/// Returns `need`, with the expected range that overlaps it, which is then no longer expected.
ByteRange RangedObject::expected_around(ByteRange need) {
  codec::MutexLock lock(plans_mutex_);
  const auto found =
      std::find_if(expected_.rbegin(), expected_.rend(), [&](const ByteRange& range) { return range.overlaps(need); });
  if (found == expected_.rend()) return need;
  const ByteRange expected = *found;
  if (expected.size() <= kMostExpected) {
    expected_.erase(std::next(found).base());
    return hull_of(expected, need);
  }
  const ByteRange limited = common_part(expected, {need.begin, need.begin + kMostExpected});
  found->begin = limited.end;
  if (found->empty()) expected_.erase(std::next(found).base());
  return hull_of(limited, need);
}

/// Waits until all these may be fetched. A whole object, of a server that ignores ranges, counts as one request: its
/// readers share it.
FetchedRanges::Admission RangedObject::admit(const std::vector<Wanted>& wanted) {
  std::uint64_t bytes = 0;
  for (const Wanted& each : wanted)
    bytes += std::min(each.range.size(), FetchedRanges::kMostRequest);
  return reading_.memory.admit(bytes);
}

/// Claims what `need` lacks, and starts to fetch it.
FetchedRanges::Claim RangedObject::claim(ByteRange need, const Wanted& wanted) {
  auto claim = reading_.memory.claim(id_, need, wanted.range, wanted.rest);
  start(claim);
  // A range that was fetched ahead may have failed long ago, for a reason that no longer holds.
  bool has_failed = false;
  for (const auto& piece : claim.needed) {
    const bool is_new = std::any_of(claim.to_start.begin(), claim.to_start.end(),
                                    [&](const FetchedRanges::Piece& other) { return other.fetch == piece.fetch; });
    if (is_new || !piece.fetch->has_arrived() || piece.fetch->wait()) continue;
    reading_.memory.drop(id_, piece);
    has_failed = true;
  }
  if (!has_failed || tie_->staleness()) return claim;
  auto again = reading_.memory.claim(id_, need, wanted.range, wanted.rest);
  start(again);
  return again;
}

void RangedObject::start(const FetchedRanges::Claim& claim) {
  for (const auto& piece : claim.to_start) {
    auto tied = ObjectTie::request_for(tie_, piece.range);
    piece.fetch->start(reading_.requests.start(std::move(tied.request)), std::move(tied.check));
  }
}

/// Starts to fetch both ends of the object, if `need` is at one of them and open() has not fetched them.
void RangedObject::fetch_ends(ByteRange need) {
  const auto& ends = kept_.ends();
  if (!fetches_ends_ || (!ends[0].overlaps(need) && !ends[1].overlaps(need)) || !fetches_ends_.exchange(false)) return;
  for (std::size_t end = 0; end < ends.size(); ++end) {
    if (kept_.keeps()) {
      if (const auto found = kept_.find_end(end)) {
        reading_.memory.insert(id_, found->range.begin, found->bytes);
        continue;
      }
      if (kept_.prepare_all(ends.at(end))) continue;
    }
    fetch_run_ahead(ends.at(end));
  }
}

void RangedObject::fetch_ahead(ByteRange range) {
  if (range.empty() || tie_->ignores_ranges() || tie_->staleness()) return;
  if (!kept_.keeps()) return fetch_run_ahead(range);
  const ByteRange rounded = rounded_out(range, kBlock, length());
  ByteRange run{rounded.begin, rounded.begin};
  for (std::uint64_t begin = rounded.begin; begin < rounded.end; begin = run.end) {
    const ByteRange block = kept_.block_range(begin / kBlock);
    if (kept_.prepare(begin / kBlock)) {
      fetch_run_ahead(run);
      run.begin = block.end;
    }
    run.end = block.end;
  }
  fetch_run_ahead(run);
}

void RangedObject::fetch_run_ahead(ByteRange run) {
  if (run.empty()) return;
  std::uint64_t covered = 0;
  // A reader that reads on comes to the last bytes, which are there since the object was opened.
  reading_.memory.note_approach(id_, kept_.ends()[1]);
  start(reading_.memory.claim_ahead(id_, run, covered));
  if (covered == run.end) return;
  codec::MutexLock lock(plans_mutex_);
  window_.cut(run, covered);
}

void RangedObject::expect(FileOffset at, std::uint64_t length_ahead) {
  if (at.value >= length() || length_ahead == 0) return;
  codec::MutexLock lock(plans_mutex_);
  if (expected_.size() >= kMostExpectations) expected_.erase(expected_.begin());
  expected_.push_back({at.value, at.value + std::min(length_ahead, length() - at.value)});
}

/// Returns what neither memory nor store has of a range.
std::vector<ByteRange> RangedObject::missing_in(ByteRange range) {
  if (!reading_.memory.find(id_, range).empty()) return {};
  if (!kept_.keeps()) return {range};
  std::vector<ByteRange> missing;
  for (std::uint64_t begin = range.begin; begin < range.end;) {
    const ByteRange part = common_part(kept_.block_range(begin / kBlock), range);
    begin = part.end;
    if (!kept_.prepare(part.begin / kBlock) && reading_.memory.find(id_, part).empty()) missing.push_back(part);
  }
  return missing;
}

Result<void> RangedObject::fetch(FileOffset at, std::uint64_t length_ahead) {
  if (at.value >= length() || length_ahead == 0 || length_ahead > reading_.memory.bound() / 4) return {};
  if (const auto stale = tie_->staleness()) return codec::Failure(*stale);
  const auto missing = missing_in({at.value, at.value + std::min(length_ahead, length() - at.value)});
  if (missing.empty()) return {};
  std::vector<Wanted> wanted;
  wanted.reserve(missing.size());
  for (const ByteRange& range : missing)
    wanted.push_back(wanted_for(range));
  const auto turn = admit(wanted);
  const bool used_version = tie_->uses_version();
  for (std::size_t i = 0; i < missing.size(); ++i) {
    fetch_ends(missing[i]);
    for (const ByteRange& rest : missing_in(missing[i])) {
      const auto claimed = claim(rest, rest == missing[i] ? wanted[i] : wanted_for(rest));
      const auto failed = std::find_if_not(claimed.needed.begin(), claimed.needed.end(),
                                           [this](const auto& piece) { return arrives(piece); });
      if (failed == claimed.needed.end()) continue;
      if (used_version && !tie_->uses_version()) return {};  // read() asks without the version
      return copy_piece(*failed, {});
    }
  }
  return {};
}

/// Waits for a range, and has the store keep it: the memory may evict it before it is read. Returns false if its
/// request failed.
bool RangedObject::arrives(const FetchedRanges::Piece& piece) {
  const auto bytes = piece.fetch->wait();
  if (bytes) keep(piece, *bytes);
  return bytes.has_value();
}

void RangedObject::prefetch(FileOffset at, std::uint64_t length_ahead) {
  if (at.value >= length()) return;
  const std::uint64_t most = std::min(ReadAheadWindow::kMost, reading_.memory.bound());
  fetch_ahead({at.value, at.value + std::min({length_ahead, length() - at.value, most})});
}

}  // namespace cframefs::frame
