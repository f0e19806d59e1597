#include "fs/fuse/busy_poll_policy.h"

namespace cframefs::fs {
namespace {

BusyPollPolicy::Clock::rep number(BusyPollPolicy::Time time) {
  return time.time_since_epoch().count();
}

}  // namespace

bool BusyPollPolicy::taken(int who, Time now, bool waited) {
  const bool on_its_own = answering_.fetch_add(1) == 0;
  if (is_leader(who)) {
    busy_since_ = number(now);
    waited_ = waited;
    return false;
  }
  if (!may_begin_) return false;
  const Clock::duration pause(number(now) - free_since_.load());
  if (!on_its_own || pause > kSpinTime) {
    close_ = 0;
    return false;
  }
  if (++close_ < (only_paused_ ? kReenterThreshold : kEnterThreshold)) return false;
  int nobody = kNobody;
  if (!alone_.compare_exchange_strong(nobody, who)) return false;
  slow_streak_ = 0;
  waited_ = false;
  busy_since_ = number(now);
  return true;
}

bool BusyPollPolicy::answered(int who, Time taken_at, Time now) {
  const bool took_long = now - taken_at > kSlowReply;
  if (took_long) close_ = 0;
  free_since_ = number(now);
  --answering_;
  if (!is_leader(who)) return false;
  busy_since_ = 0;
  slow_streak_ = took_long || waited_ ? slow_streak_ + 1 : 0;
  return slow_streak_ >= kLeaveThreshold && end(who);
}

bool BusyPollPolicy::ends_overdue(Time now) {
  const int alone = alone_.load();
  const Clock::rep since = busy_since_.load();
  if (alone == kNobody || since == 0 || Clock::duration(number(now) - since) <= kStallLimit) return false;
  return end(alone);
}

bool BusyPollPolicy::paused(int who) {
  if (!end(who)) return false;
  only_paused_ = true;
  return true;
}

bool BusyPollPolicy::end(int who) {
  if (!alone_.compare_exchange_strong(who, kNobody)) return false;
  only_paused_ = false;
  close_ = 0;
  return true;
}

}  // namespace cframefs::fs
