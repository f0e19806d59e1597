#include "fs/fuse/lone_server.h"

namespace cframefs::fs {
namespace {

LoneServer::Clock::rep number(LoneServer::Time time) {
  return time.time_since_epoch().count();
}

}  // namespace

bool LoneServer::taken(int who, Time now, bool waited) {
  const bool on_its_own = answering_.fetch_add(1) == 0;
  if (serves_alone(who)) {
    busy_since_ = number(now);
    waited_ = waited;
    return false;
  }
  if (!may_begin_) return false;
  const Clock::duration pause(number(now) - free_since_.load());
  if (!on_its_own || pause > kPause) {
    close_ = 0;
    return false;
  }
  if (++close_ < (only_paused_ ? kResume : kBegin)) return false;
  int nobody = kNobody;
  if (!alone_.compare_exchange_strong(nobody, who)) return false;
  troubles_ = 0;
  waited_ = false;
  busy_since_ = number(now);
  return true;
}

bool LoneServer::answered(int who, Time taken_at, Time now) {
  const bool took_long = now - taken_at > kLong;
  if (took_long) close_ = 0;
  free_since_ = number(now);
  --answering_;
  if (!serves_alone(who)) return false;
  busy_since_ = 0;
  troubles_ = took_long || waited_ ? troubles_ + 1 : 0;
  return troubles_ >= kEnd && end(who);
}

bool LoneServer::ends_overdue(Time now) {
  const int alone = alone_.load();
  const Clock::rep since = busy_since_.load();
  if (alone == kNobody || since == 0 || Clock::duration(number(now) - since) <= kOverdue) return false;
  return end(alone);
}

bool LoneServer::paused(int who) {
  if (!end(who)) return false;
  only_paused_ = true;
  return true;
}

bool LoneServer::end(int who) {
  if (!alone_.compare_exchange_strong(who, kNobody)) return false;
  only_paused_ = false;
  close_ = 0;
  return true;
}

}  // namespace cframefs::fs
