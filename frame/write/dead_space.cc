#include "frame/write/dead_space.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "frame/cframe/stored_entries.h"
#include "frame/write/compaction.h"

namespace cframefs::frame {

namespace {

using codec::Failure;

/// Offsets of a section that are sampled. In a frame of at most as many stored chunks, all chunks are measured.
constexpr std::size_t kPlaces = 256;

/// If more killed chunks than kMaxMeasured, the length is estimated from about kGuessedFrom of them.
constexpr std::int64_t kMaxMeasured = 4096;
constexpr std::int64_t kGuessedFrom = 256;

/// The most stored chunks between which find_dead_ranges() searches.
constexpr std::size_t kMaxLocated = std::size_t{1} << 18;

/// A stored chunk and its index entry.
struct Stored {
  std::int64_t entry = -1;
  std::int64_t chunk = -1;
};

/// Finds the chunks around each of kPlaces equidistant offsets ("places") of a section.
class Places {
 public:
  explicit Places(std::uint64_t section) : step_(std::max<std::uint64_t>(section / kPlaces, 1)), section_(section) {
    next_.fill({std::numeric_limits<std::int64_t>::max(), -1});
  }

  void note(Stored stored) {
    // The first place at or after the chunk. Places are the offsets step_ - 1, 2 * step_ - 1, ...
    const auto place = std::min<std::uint64_t>(static_cast<std::uint64_t>(stored.entry) / step_, kPlaces);
    if (place < kPlaces && stored.entry > before_[place].entry) before_[place] = stored;
    if (stored.entry < next_[place].entry) next_[place] = stored;
  }
  /// Calls visit(chunk, end) for each place: the last chunk that begins at or before it (-1: none), and the offset
  /// where the next chunk begins.
  template <class Visit>
  Result<void> for_each(const Visit& visit) {
    for (std::size_t i = 1; i < kPlaces; ++i) {
      if (before_[i].chunk < 0) before_[i] = before_[i - 1];
    }
    std::uint64_t end = std::min(section_, static_cast<std::uint64_t>(next_[kPlaces].entry));
    std::array<std::uint64_t, kPlaces> ends{};
    for (std::size_t i = kPlaces; i-- > 0;) {
      ends[i] = end;
      end = std::min(end, static_cast<std::uint64_t>(next_[i].entry));
    }
    for (std::size_t i = 0; i < kPlaces; ++i) {
      if (auto done = visit(before_[i], ends[i]); !done) return done;
    }
    return {};
  }

 private:
  const std::uint64_t step_;
  const std::uint64_t section_;
  std::array<Stored, kPlaces> before_;    // the last chunk after the previous place, up to this one
  std::array<Stored, kPlaces + 1> next_;  // the first chunk after the previous place
};

/// Returns the stored bytes of a chunk, or 0 if its header is damaged: a damaged chunk counts as dead.
std::uint64_t length_of(const FrameContainer& frame, std::int64_t chunk) {
  const auto location = frame.locate_chunk(ChunkNumber{chunk});
  if (!location) return 0;
  return stored_length(*location).value_or(0);
}

Failure past_section(std::int64_t entry, std::uint64_t section) {
  return codec::corrupt("offset " + std::to_string(entry) + " lies outside the chunk section of " +
                        std::to_string(section) + " bytes");
}

/// Returns the ranges of the chunk section that the frame's seal refers to, as offsets in the section.
Result<std::vector<codec::ByteRange>> sealed_ranges(const FrameContainer& frame) {
  if (!frame.seal()) return std::vector<codec::ByteRange>();
  auto ranges = frame.seal()->ranges();
  if (!ranges) return ranges;
  const std::uint64_t begin = frame.parameters().header_length;
  const std::uint64_t end = begin + frame.parameters().cbytes;
  std::erase_if(*ranges, [&](const codec::ByteRange& range) { return range.begin < begin || range.end > end; });
  for (codec::ByteRange& range : *ranges)
    range = {range.begin - begin, range.end - begin};
  return ranges;
}

/// Returns the dead bytes of a section, of which `unused` bytes belong to no chunk.
Result<std::uint64_t> less_sealed(const FrameContainer& frame, std::uint64_t unused) {
  const auto ranges = sealed_ranges(frame);
  if (!ranges) return Failure(ranges.error());
  for (const codec::ByteRange& range : *ranges)
    unused -= std::min(unused, range.size());
  return unused;
}

}  // namespace

Result<std::uint64_t> measure_dead_bytes(const FrameContainer& frame) {
  const std::uint64_t section = frame.parameters().cbytes;
  const auto uniform = frame.uniform_entry();
  if (section == 0 || (uniform && *uniform >= 0)) return std::uint64_t{0};
  std::size_t count = 0;
  std::vector<Stored> first;
  Places places(section);
  const auto note = [&](std::int64_t chunk, std::int64_t entry) -> Result<void> {
    if (static_cast<std::uint64_t>(entry) > section) return past_section(entry, section);
    if (++count <= kPlaces) first.push_back({entry, chunk});
    places.note({entry, chunk});
    return {};
  };
  if (auto done = for_each_stored(frame, 0, frame.chunk_count(), note); !done) return Failure(done.error());
  if (count <= kPlaces) {
    std::uint64_t alive = 0;
    for (const Stored& stored : first)
      alive += length_of(frame, stored.chunk);
    return less_sealed(frame, section - std::min(alive, section));
  }
  // Each place represents 1/kPlaces of the section, with the proportion of dead bytes between its chunk and the next.
  double dead = 0;
  std::int64_t known = -1;
  double known_part = 0;
  const auto look = [&](const Stored& stored, std::uint64_t end) -> Result<void> {
    double part = 1;
    if (stored.chunk >= 0 && stored.chunk == known) {
      part = known_part;
    } else if (stored.chunk >= 0) {
      const auto begin = static_cast<std::uint64_t>(stored.entry);
      const std::uint64_t room = end - std::min(begin, end);
      const std::uint64_t dead_room = room - std::min(room, length_of(frame, stored.chunk));
      part = room > 0 ? static_cast<double>(dead_room) / static_cast<double>(room) : 0;
    }
    known = stored.chunk;
    known_part = part;
    dead += part;
    return {};
  };
  if (auto done = places.for_each(look); !done) return Failure(done.error());
  return less_sealed(frame, static_cast<std::uint64_t>(dead / kPlaces * static_cast<double>(section)));
}

Result<std::vector<DeadRange>> find_dead_ranges(const FrameContainer& frame) {
  std::vector<DeadRange> dead;
  std::vector<Stored> stored;
  bool too_many = false;
  const auto note = [&](std::int64_t chunk, std::int64_t entry) -> Result<void> {
    too_many = stored.size() >= kMaxLocated;
    if (!too_many) stored.push_back({entry, chunk});
    return too_many ? codec::unsupported("very many chunks") : Result<void>();
  };
  auto noted = for_each_stored(frame, 0, frame.chunk_count(), note);
  if (too_many) return dead;
  if (!noted) return Failure(noted.error());
  auto alive = sealed_ranges(frame);
  if (!alive) return Failure(alive.error());
  const std::uint64_t section = frame.parameters().cbytes;
  for (const Stored& chunk : stored) {
    const auto begin = static_cast<std::uint64_t>(chunk.entry);
    if (begin > section) return past_section(chunk.entry, section);
    const auto location = frame.locate_chunk(ChunkNumber{chunk.chunk});
    if (!location) return Failure(location.error());
    const auto length = stored_length(*location);
    if (!length) return Failure(length.error());
    alive->push_back({begin, begin + *length});
  }
  std::sort(alive->begin(), alive->end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::uint64_t alive_until = 0;
  const auto add = [&](std::uint64_t until) {
    if (alive_until < until) {
      dead.push_back({FileOffset{frame.parameters().header_length + alive_until}, until - alive_until});
    }
  };
  for (const codec::ByteRange& range : *alive) {
    add(range.begin);
    alive_until = std::max(alive_until, range.end);
  }
  add(section);
  return dead;
}

Result<std::uint64_t> measure_killed_bytes(const FrameContainer& frame, const PendingChanges& pending) {
  const std::vector<ChunkIntervals::Run> runs = pending.killed(frame.chunk_count());
  const auto for_each = [&](const auto& visit) -> Result<void> {
    for (const ChunkIntervals::Run& run : runs) {
      if (auto done = for_each_stored(frame, run.begin, run.end, visit); !done) return done;
    }
    return {};
  };
  std::int64_t killed = 0;
  const auto count = [&killed](std::int64_t, std::int64_t) -> Result<void> {
    ++killed;
    return {};
  };
  if (auto done = for_each(count); !done) return Failure(done.error());
  const std::int64_t step = killed > kMaxMeasured ? killed / kGuessedFrom : 1;
  std::uint64_t bytes = 0;
  std::int64_t number = 0;
  const auto measure = [&](std::int64_t chunk, std::int64_t) -> Result<void> {
    // Damaged chunks count as 0 bytes, because their length is unknown.
    if (number++ % step == 0) bytes += length_of(frame, chunk) * static_cast<std::uint64_t>(step);
    return {};
  };
  if (auto done = for_each(measure); !done) return Failure(done.error());
  return std::min(bytes, frame.parameters().cbytes);
}

}  // namespace cframefs::frame
