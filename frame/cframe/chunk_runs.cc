#include "frame/cframe/chunk_runs.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cframefs::frame {

namespace {

/// Entries compared with their successors by one memcmp().
constexpr std::size_t kCompared = 512;
/// Entries compared one at a time first, because most runs are either long or very short.
constexpr std::size_t kComparedAlone = 16;

bool is_of_system(const Error& error) {
  return error.kind == ErrorKind::io || error.kind == ErrorKind::stale;
}

/// Returns how many entries at the front equal the first one. REQUIRES: !entries.empty().
std::size_t run_length(std::span<const std::int64_t> entries) {
  std::size_t length = 1;
  const std::size_t first = std::min(entries.size(), kComparedAlone);
  while (length < first && entries[length] == entries[0])
    ++length;
  if (length < first) return length;
  while (entries.size() - length >= kCompared &&
         std::memcmp(&entries[length - 1], &entries[length], kCompared * sizeof(std::int64_t)) == 0) {
    length += kCompared;
  }
  while (length < entries.size() && entries[length] == entries[0])
    ++length;
  return length;
}

/// Returns each chunk as a run of its own.
class SingleChunks final : public ChunkRuns {
 public:
  SingleChunks(ChunkNumber begin, ChunkNumber end) : at_(begin.value), end_(end.value) {}

  Result<bool> next(ChunkRun& run) override {
    if (at_ >= end_) return false;
    run = ChunkRun{ChunkNumber{at_++}};
    return true;
  }

 private:
  std::int64_t at_;
  const std::int64_t end_;
};

}  // namespace

std::unique_ptr<ChunkRuns> Container::runs(ChunkNumber begin, ChunkNumber end) const {
  return std::make_unique<SingleChunks>(begin, end);
}

IndexRuns::IndexRuns(const OffsetIndex& index, std::int64_t begin, std::int64_t end, std::int64_t alone)
    : index_(index), end_(end), alike_end_(std::clamp(alone, begin, end)), begin_(begin), at_(begin) {}

Result<bool> IndexRuns::next(ChunkRun& run) {
  if (at_ >= end_) return false;
  run = ChunkRun{ChunkNumber{at_}};
  if (at_ >= alike_end_) {
    ++at_;
    return true;
  }
  return index_.period() > 0 ? next_repeated(run) : next_decoded(run);
}

Result<bool> IndexRuns::next_repeated(ChunkRun& run) {
  run.step = index_.period();
  run.count = (alike_end_ - at_ + run.step - 1) / run.step;
  if (const auto entry = repeated_entry()) {
    run.same = *entry;
    run.alike = true;
  } else if (is_of_system(entry.error())) {
    return codec::Failure(entry.error());
  } else {
    damage_ = entry.error();
    run.damage = &damage_;
  }
  ++at_;
  if (at_ - begin_ >= run.step) at_ = alike_end_;
  return true;
}

/// Returns entry at_ of a periodic index. The caller advances at_ by 1 afterwards.
Result<std::int64_t> IndexRuns::repeated_entry() {
  if (index_.period() == 1) return index_.entry(at_);
  if (entries_.empty()) {
    if (const auto loaded = load(); !loaded) return codec::Failure(loaded.error());
  }
  const std::int64_t entry = entries_.front();
  entries_ = entries_.subspan(1);
  return entry;
}

/// Sets entries_ to the entries from at_ to the end of their unit.
Result<void> IndexRuns::load() {
  if (index_.unit_end(at_) - index_.unit_begin(at_) <= OffsetIndex::kMaxCached) {
    auto piece = index_.piece(at_);
    if (!piece) return codec::Failure(piece.error());
    piece_ = std::move(*piece);
    entries_ = piece_.entries;
    return {};
  }
  if (auto done = index_.decode_unit(at_, large_); !done) return done;
  entries_ = std::span<const std::int64_t>(large_).subspan(static_cast<std::size_t>(at_ - index_.unit_begin(at_)));
  return {};
}

Result<bool> IndexRuns::next_decoded(ChunkRun& run) {
  if (entries_.empty()) {
    const auto value = index_.unit_value(at_);
    if (value && *value) {
      run.same = **value;
      run.alike = true;
      run.count = std::min(index_.unit_end(at_), alike_end_) - at_;
      at_ += run.count;
      return true;
    }
    if (!value && is_of_system(value.error())) return codec::Failure(value.error());
    if (const auto loaded = load(); !loaded) {
      if (is_of_system(loaded.error())) return codec::Failure(loaded.error());
      damage_ = loaded.error();
      run.damage = &damage_;
      run.count = std::min(index_.unit_end(at_), alike_end_) - at_;
      at_ += run.count;
      return true;
    }
  }
  const std::size_t length = run_length(entries_);
  run.same = entries_.front();
  run.alike = true;
  run.count = std::min(static_cast<std::int64_t>(length), alike_end_ - at_);
  entries_ = entries_.subspan(length);
  at_ += run.count;
  return true;
}

}  // namespace cframefs::frame
