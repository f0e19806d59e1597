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

/// Returns true if this changes anything.
codec::Result<bool> WriteBack::zero(std::uint64_t at, std::uint64_t length) {
  const std::uint64_t chunksize = dirty_.chunksize();
  const std::uint64_t end = std::min(capped_sum(at, length), dirty_.size());
  bool changed = false;
  while (at < end) {
    const std::uint64_t from = at % chunksize;
    const auto number = static_cast<std::int64_t>(at / chunksize);
    // Whole chunks form one run, which includes the last chunk of the file if all of it is zeroed.
    const std::uint64_t last = end == dirty_.size() ? (end - 1) / chunksize + 1 : end / chunksize;
    const bool is_run = from == 0 && static_cast<std::int64_t>(last) > number;
    const std::uint64_t next = is_run ? std::min(last * chunksize, end) : std::min(end, at - from + chunksize);
    if (!shows_zeros(number, is_run ? static_cast<std::int64_t>(last) : number + 1)) {
      dirty_.touch(at);
      if (is_run) {
        dirty_.put_zeros(number, static_cast<std::int64_t>(last));
      } else {
        auto chunk = chunk_to_write(number, from, from + (next - at));
        if (!chunk) return codec::Failure(chunk.error());
        const auto hole = (*chunk)->bytes().subspan(from, next - at);
        std::fill(hole.begin(), hole.end(), std::uint8_t{0});
      }
      note_dirty();
      changed = true;
    }
    at = next;
  }
  return changed;
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
  if (auto followed = refresh(); !followed) return followed;
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
