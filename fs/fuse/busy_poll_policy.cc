#include "fs/fuse/busy_poll_policy.h"

#include <algorithm>

namespace cframefs::fs {
namespace {

BusyPollPolicy::Clock::rep number(BusyPollPolicy::Time time) {
  return time.time_since_epoch().count();
}

}  // namespace

bool BusyPollPolicy::on_request(int thread, Time now, bool was_queued) {
  const bool on_its_own = answering_.fetch_add(1) == 0;
  const bool after_pause = Clock::duration(number(now) - free_since_.load()) > kSpinTime;
  if (is_leader(thread)) {
    busy_since_ = number(now);
    leader_queued_ = was_queued;
    polls_ = !after_pause;
    return false;
  }
  if (!may_begin_) return false;
  if (!on_its_own || after_pause) {
    set_back();
    return false;
  }
  if (++back_to_back_ < (only_paused_ ? kReenterThreshold : kEnterThreshold)) return false;
  int none = kNone;
  if (!leader_.compare_exchange_strong(none, thread)) return false;
  slow_streak_ = 0;
  leader_queued_ = false;
  polls_ = true;
  busy_since_ = number(now);
  return true;
}

bool BusyPollPolicy::on_reply(int thread, Time taken_at, Time now) {
  const bool took_long = now - taken_at > kSlowReply;
  if (took_long) set_back();
  free_since_ = number(now);
  --answering_;
  if (!is_leader(thread)) return false;
  busy_since_ = 0;
  slow_streak_ = took_long || leader_queued_ ? slow_streak_ + 1 : 0;
  return slow_streak_ >= kLeaveThreshold && end(thread);
}

bool BusyPollPolicy::ends_overdue(Time now) {
  const int leader = leader_.load();
  if (leader == kNone) return false;
  const Clock::rep since = busy_since_.load();
  const Clock::duration length(number(now) - (since == 0 ? free_since_.load() : since));
  return length > (since == 0 ? Clock::duration(kLongPause) : Clock::duration(kStallLimit)) && resign(leader);
}

void BusyPollPolicy::on_poll(Time before, Time now) {
  if (now - before > kCrowded) crowded_until_ = number(now + kCrowdedTime);
}

bool BusyPollPolicy::resign(int thread) {
  if (!end(thread)) return false;
  only_paused_ = true;
  return true;
}

void BusyPollPolicy::set_back() {
  unsigned now = back_to_back_;
  while (!back_to_back_.compare_exchange_weak(now, now - std::min(now, kSetback))) {
  }
}

bool BusyPollPolicy::end(int thread) {
  if (!leader_.compare_exchange_strong(thread, kNone)) return false;
  only_paused_ = false;
  back_to_back_ = 0;
  return true;
}

}  // namespace cframefs::fs
