// fallocate(2) of a frame: holes, and preallocation.
#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <linux/falloc.h>

#include "fs/write/write_back.h"

namespace cframefs::fs {
namespace {

// The most chunks that are looked up in the index one by one.
constexpr std::int64_t kMaxLookedUp = std::int64_t{1} << 16;

}  // namespace

/// Returns whether chunks [begin, end) of the committed frame are known to be zeros, without much work.
bool WriteBack::stores_zeros(std::int64_t begin, std::int64_t end) const {
  const frame::FrameContainer* frame = snapshot_->container().as_frame();
  if (frame == nullptr || array_ || begin >= frame->chunk_count()) return false;
  if (static_cast<std::uint64_t>(frame->parameters().chunksize) != dirty_.chunksize()) return false;
  end = std::min(end, frame->chunk_count());
  if (end - begin > kMaxLookedUp && !frame->uniform_entry()) return false;
  const auto next = frame->next_chunk(frame::ChunkNumber{begin}, false);
  return next && next->value >= end;
}

/// Returns whether programs already see zeros in chunks [begin, end), as far as that is known without much work.
bool WriteBack::shows_zeros(std::int64_t begin, std::int64_t end) const {
  const auto has_any = [begin, end](const auto& by_number) {
    const auto first = by_number.lower_bound(begin);
    return first != by_number.end() && first->first < end;
  };
  if (has_any(dirty_.chunks().whole()) || has_any(dirty_.chunks().patches())) return false;
  if (static_cast<std::uint64_t>(begin) * dirty_.chunksize() >= dirty_.kept()) return true;
  const auto run = dirty_.chunks().zeros().next(begin);
  if (run && run->begin == begin && run->end >= end) return true;
  return !committing_ && stores_zeros(begin, end);
}

/// Returns the parts of [at, end): those within one chunk, and runs of whole chunks. The last chunk of the file counts
/// as whole if all of it is in the range.
std::vector<WriteBack::ZeroedPart> WriteBack::parts_to_zero(std::uint64_t at, std::uint64_t end) const {
  const std::uint64_t chunksize = dirty_.chunksize();
  const std::uint64_t last = end == dirty_.size() && end > 0 ? (end - 1) / chunksize + 1 : end / chunksize;
  std::vector<ZeroedPart> parts;
  while (at < end) {
    const std::uint64_t from = at % chunksize;
    const std::uint64_t number = at / chunksize;
    const bool is_run = from == 0 && last > number;
    const std::uint64_t next = is_run ? std::min(last * chunksize, end) : std::min(end, at - from + chunksize);
    const auto behind = static_cast<std::int64_t>(is_run ? last : number + 1);
    if (!shows_zeros(static_cast<std::int64_t>(number), behind)) {
      parts.push_back({at, next, static_cast<std::int64_t>(number), behind, is_run});
    }
    at = next;
  }
  return parts;
}

/// Returns true if this changes anything. If it fails, it has changed nothing: the kernel keeps its pages then.
codec::Result<bool> WriteBack::zero(std::uint64_t at, std::uint64_t length) {
  const std::vector<ZeroedPart> parts = parts_to_zero(at, std::min(capped_sum(at, length), dirty_.size()));
  const std::uint64_t chunksize = dirty_.chunksize();
  // Only parts of chunks are read, which may fail.
  for (const ZeroedPart& part : parts) {
    if (part.is_run) continue;
    auto chunk = chunk_to_write(part.first, part.at % chunksize, part.at % chunksize + (part.end - part.at));
    if (!chunk) return codec::Failure(chunk.error());
    note_dirty();
  }
  // A run may lack memory; there is one at most.
  for (const ZeroedPart& part : parts) {
    if (part.is_run) dirty_.put_zeros(part.first, part.behind);
  }
  for (const ZeroedPart& part : parts) {
    dirty_.touch(part.at);
    if (!part.is_run) {
      const std::uint64_t from = part.at % chunksize;
      const auto hole = dirty_.to_change(part.first).bytes().subspan(from, part.end - part.at);
      std::fill(hole.begin(), hole.end(), std::uint8_t{0});
    }
    note_dirty();
  }
  return !parts.empty();
}

codec::Result<void> WriteBack::allocate(int mode, std::uint64_t at, std::uint64_t length) {
  constexpr int kKnown = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE;
  if ((mode & ~kKnown) != 0) return codec::io_error(EOPNOTSUPP, "fallocate");
  if (length == 0) return codec::io_error(EINVAL, "fallocate", "the length is 0");
  const bool is_hole = (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0;
  if (!is_hole) {
    if (auto there = check_room(at, length); !there) return there;
  }
  if (auto room = make_room(0); !room) return room;
  if (auto followed = refresh(RefreshFor::change); !followed) return followed;
  auto changed = allocate_locked(mode, at, length);
  if (!changed) return codec::Failure(changed.error());
  if (is_hole && !*changed) touch();
  return {};
}

/// Returns true if this changes anything.
codec::Result<bool> WriteBack::allocate_locked(int mode, std::uint64_t at, std::uint64_t length) {
  codec::MutexLock lock(mutex_);
  wait_until_copied();
  if (auto usable = check_usable(); !usable) return codec::Failure(usable.error());
  const std::uint64_t end = capped_sum(at, length);
  const std::uint64_t before = dirty_.size();
  if (array_) {
    if (auto allowed = array_->check_allocate(mode, at, length, before); !allowed) {
      return codec::Failure(allowed.error());
    }
  }
  const bool keeps_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  if (!keeps_size) {
    if (auto fits = check_size(end); !fits) return codec::Failure(fits.error());
  }
  bool changed = false;
  if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0) {
    auto zeroed = zero(at, length);
    if (!zeroed) return zeroed;
    changed = *zeroed;
  }
  // Preallocation: the size of compressed chunks is unknown, so only the file size is kept.
  if (!keeps_size && end > dirty_.size()) {
    dirty_.resize(end);
    note_dirty();
    note_head(before);
    changed = true;
  }
  return changed;
}

}  // namespace cframefs::fs
