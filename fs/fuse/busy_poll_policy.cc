#include "fs/fuse/busy_poll_policy.h"

namespace cframefs::fs {
namespace {

BusyPollPolicy::Clock::rep number(BusyPollPolicy::Time time) {
  return time.time_since_epoch().count();
}

}  // namespace

bool BusyPollPolicy::on_request(int thread, Time now, bool was_queued) {
  const bool on_its_own = answering_.fetch_add(1) == 0;
  if (is_leader(thread)) {
    busy_since_ = number(now);
    leader_queued_ = was_queued;
    return false;
  }
  if (!may_begin_) return false;
  const Clock::duration pause(number(now) - free_since_.load());
  if (!on_its_own || pause > kSpinTime) {
    back_to_back_ = 0;
    return false;
  }
  if (++back_to_back_ < (only_paused_ ? kReenterThreshold : kEnterThreshold)) return false;
  int none = kNone;
  if (!leader_.compare_exchange_strong(none, thread)) return false;
  slow_streak_ = 0;
  leader_queued_ = false;
  busy_since_ = number(now);
  return true;
}

bool BusyPollPolicy::on_reply(int thread, Time taken_at, Time now) {
  const bool took_long = now - taken_at > kSlowReply;
  if (took_long) back_to_back_ = 0;
  free_since_ = number(now);
  --answering_;
  if (!is_leader(thread)) return false;
  busy_since_ = 0;
  slow_streak_ = took_long || leader_queued_ ? slow_streak_ + 1 : 0;
  return slow_streak_ >= kLeaveThreshold && end(thread);
}

bool BusyPollPolicy::ends_overdue(Time now) {
  const int leader = leader_.load();
  const Clock::rep since = busy_since_.load();
  if (leader == kNone || since == 0 || Clock::duration(number(now) - since) <= kStallLimit) return false;
  return end(leader);
}

bool BusyPollPolicy::on_idle(int thread) {
  if (!end(thread)) return false;
  only_paused_ = true;
  return true;
}

bool BusyPollPolicy::end(int thread) {
  if (!leader_.compare_exchange_strong(thread, kNone)) return false;
  only_paused_ = false;
  back_to_back_ = 0;
  return true;
}

}  // namespace cframefs::fs
