#include "fs/kernel/page_cache_state.h"

namespace cframefs::fs {

PageCacheState::Look PageCacheState::begin_look() const {
  codec::MutexLock lock(mutex_);
  return {changes_, changing_ > 0, told_size_.begin_look()};
}

bool PageCacheState::counts(const Look& look) const {
  return !look.during_change && changing_ == 0 && look.changes == changes_;
}

void PageCacheState::adopt_foreign(const frame::FileVersion& file) {
  state_ = file;
  trusted_ = false;
  damaged_ = false;
  told_size_.changed_behind();
  pages_ = writers_ > 0 ? Pages::racing : Pages::held;
}

PageCacheState::Drop PageCacheState::foreign(const frame::FileVersion& file) {
  adopt_foreign(file);
  return drop();
}

PageCacheState::Drop PageCacheState::drop() {
  drops_.request();
  return Drop::pages;
}

PageCacheState::Opened PageCacheState::opened(const Opening& opening) {
  codec::MutexLock lock(mutex_);
  const bool same_state = state_ == opening.file && (!state_.racy || trusted_);
  const bool same = pages_ != Pages::none && same_state;
  damaged_ = opening.damaged || (same && damaged_);
  Opened answer;
  answer.same_state = same_state;
  answer.direct = damaged_ && opening.damage_shares_pages;
  // While a drop is pending, the open drops the pages instead: it keeps none.
  const bool has_old_pages = opening.has_old_head || drops_.are_pending();
  answer.keep_pages = same && !answer.direct && !has_old_pages;
  if (!answer.keep_pages) {
    ++unconfirmed_;
    // The kernel drops the pages while writes of other handles may be in flight.
    pages_ = writers_ > 0 ? Pages::racing : Pages::held;
  }
  if (opening.writes) {
    ++writers_;
    told_size_.begin_writing();
  }
  state_ = opening.file;
  // From the first writer on, the mount recognises its own changes exactly. A later open that drops pages because of a
  // racy timestamp could hit a write in flight.
  trusted_ = (same && trusted_) || writers_ > 0 || opening.sees_foreign_changes;
  if (trusted_) last_own_ = state_;
  return answer;
}

void PageCacheState::open_confirmed() {
  codec::MutexLock lock(mutex_);
  --unconfirmed_;
}

void PageCacheState::passed() {
  codec::MutexLock lock(mutex_);
  pages_ = Pages::none;
}

PageCacheState::Drop PageCacheState::closed(bool wrote) {
  codec::MutexLock lock(mutex_);
  if (wrote) told_size_.end_writing();
  if (!wrote || --writers_ > 0 || pages_ != Pages::racing) return Drop::nothing;
  // No write is in flight any more: one more drop leaves only correct pages.
  pages_ = Pages::held;
  return drop();
}

PageCacheState::Drop PageCacheState::seen_by_stat(const Look& look, const frame::FileVersion& file,
                                                  std::uint64_t size) {
  codec::MutexLock lock(mutex_);
  const bool resized = told_size_.tell(size, look.size_look);
  const bool is_same = state_ == file && (trusted_ || !state_.may_hide_changes());
  if (!counts(look) || pages_ == Pages::none || is_same) return Drop::nothing;
  adopt_foreign(file);
  return resized ? Drop::nothing : drop();
}

PageCacheState::Drop PageCacheState::seen_by_read(const Look& look, const frame::FileVersion& file) {
  codec::MutexLock lock(mutex_);
  if (!counts(look) || pages_ == Pages::none || state_ == file) return Drop::nothing;
  return foreign(file);
}

PageCacheState::Drop PageCacheState::reported(const frame::FileVersion& file) {
  codec::MutexLock lock(mutex_);
  if (state_ == file && last_own_ == file) return Drop::nothing;
  return pages_ == Pages::none ? Drop::nothing : foreign(file);
}

void PageCacheState::lost_track() {
  codec::MutexLock lock(mutex_);
  adopt_foreign({});
}

void PageCacheState::begin_change() {
  codec::MutexLock lock(mutex_);
  ++changing_;
}

PageCacheState::Drop PageCacheState::end_change(const std::optional<frame::FileVersion>& before,
                                                const std::optional<frame::FileVersion>& after) {
  codec::MutexLock lock(mutex_);
  --changing_;
  ++changes_;
  const bool was_right = before && pages_ != Pages::none && state_ == *before;
  last_own_ = after.value_or(frame::FileVersion{});
  if (pages_ == Pages::none) return Drop::nothing;
  if (was_right && after) {
    state_ = *after;
    trusted_ = true;
    return Drop::nothing;
  }
  adopt_foreign(last_own_);
  trusted_ = after.has_value();
  return drop();
}

PageCacheState::Drop PageCacheState::committed(const frame::FileVersion& before, const frame::FileVersion& after,
                                               bool own) {
  codec::MutexLock lock(mutex_);
  ++changes_;
  if (!own) {
    if (pages_ == Pages::none) return Drop::nothing;
    adopt_foreign(after);
    trusted_ = true;  // the write-back continues to watch the file
    last_own_ = after;
    return drop();
  }
  last_own_ = after;
  if (pages_ == Pages::none || state_ != before) return Drop::nothing;
  state_ = after;
  trusted_ = true;
  return Drop::nothing;
}

PageCacheState::Drop PageCacheState::discarded() {
  codec::MutexLock lock(mutex_);
  ++changes_;
  state_ = last_own_ = {};
  trusted_ = false;
  pages_ = writers_ > 0 ? Pages::racing : Pages::held;
  return drop();
}

void PageCacheState::renamed(const frame::FileVersion& before, const frame::FileVersion& after) {
  codec::MutexLock lock(mutex_);
  ++changes_;
  if (pages_ == Pages::none || state_ != before) return;
  state_ = last_own_ = after;
  trusted_ = true;
}

void PageCacheState::note_damage() {
  codec::MutexLock lock(mutex_);
  damaged_ = true;
}

bool PageCacheState::must_drop_after_write(bool unconfirmed) const {
  codec::MutexLock lock(mutex_);
  return pages_ == Pages::racing || unconfirmed_ > (unconfirmed ? 1U : 0U);
}

bool PageCacheState::is_own(const frame::FileVersion& file) const {
  codec::MutexLock lock(mutex_);
  return last_own_ == file && state_ == file && pages_ != Pages::none;
}

PageCacheState::Pages PageCacheState::pages() const {
  codec::MutexLock lock(mutex_);
  return pages_;
}

}  // namespace cframefs::fs
