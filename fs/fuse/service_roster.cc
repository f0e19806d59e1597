#include "fs/fuse/service_roster.h"

#include <algorithm>

namespace cframefs::fs {

ServiceRoster::ServiceRoster(unsigned wanted, unsigned most)
    : wanted_(wanted), most_(std::max(wanted, most)), seats_(most_), serving_(wanted), call_(wanted) {
  for (unsigned i = 0; i < wanted; ++i)
    seats_[i].role = Role::serving;
}

bool ServiceRoster::answered(int thread) {
  Seat& seat = seats_[index(thread)];
  seat.busy_since.store(0);
  if (seat.role.load(std::memory_order_relaxed) == Role::serving && !too_many_.load(std::memory_order_relaxed)) {
    return true;
  }
  codec::MutexLock lock(mutex_);
  if (seat.role == Role::overdue) {
    if (serving_ < wanted_) {
      seat.role = Role::serving;
      ++serving_;
    } else {
      seat.role = Role::spare;
    }
  } else if (serving_ > wanted_) {
    seat.role = Role::spare;
    --serving_;
  }
  too_many_ = serving_ > wanted_;
  return seat.role == Role::serving;
}

bool ServiceRoster::waits(int thread) {
  codec::MutexLock lock(mutex_);
  Seat& seat = seats_[index(thread)];
  const auto overdue =
      std::count_if(seats_.begin(), seats_.end(), [](const Seat& other) { return other.role == Role::overdue; });
  if (seat.role != Role::serving || overdue >= std::ptrdiff_t{kMaxWaiting}) return false;
  seat.role = Role::overdue;
  return --serving_ == 0;
}

std::vector<int> ServiceRoster::look(Time now) {
  const Clock::rep oldest = (now - kStallLimit).time_since_epoch().count();
  codec::MutexLock lock(mutex_);
  const bool all_served = serving_ > 0;
  for (Seat& seat : seats_) {
    const Clock::rep since = seat.busy_since.load();
    if (seat.role != Role::serving || since == 0 || since > oldest) continue;
    seat.role = Role::overdue;
    --serving_;
  }
  std::vector<int> called;
  if (serving_ >= wanted_) {
    call_ = wanted_;
    return called;
  }
  // All threads that served are overdue: there are many slow requests, so call twice as many.
  call_ = serving_ == 0 && all_served ? std::min({call_ * 2, std::max(wanted_, kMaxCalled), most_}) : wanted_;
  // Threads that exist come first.
  for (const Role role : {Role::spare, Role::absent}) {
    for (std::size_t i = 0; i < seats_.size() && serving_ < call_; ++i) {
      if (seats_[i].role != role) continue;
      seats_[i].role = Role::serving;
      ++serving_;
      called.push_back(static_cast<int>(i));
    }
  }
  too_many_ = serving_ > wanted_;
  return called;
}

void ServiceRoster::not_started(int thread) {
  codec::MutexLock lock(mutex_);
  seats_[index(thread)].role = Role::absent;
  --serving_;
}

bool ServiceRoster::is_busy() const {
  return std::any_of(seats_.begin(), seats_.end(), [](const Seat& seat) { return seat.busy_since.load() != 0; });
}

bool ServiceRoster::is_serving(int thread) const {
  return seats_[index(thread)].role == Role::serving;
}

bool ServiceRoster::is_overdue(int thread) const {
  return seats_[index(thread)].role == Role::overdue;
}

bool ServiceRoster::is_spare(int thread) const {
  return seats_[index(thread)].role == Role::spare;
}

}  // namespace cframefs::fs
