#include "fs/kernel/notification_gate.h"

#include <thread>

namespace cframefs::fs {

std::uint64_t NotificationGate::settle(std::uint64_t inode) {
  const auto end = Clock::now() + kLongestSettling;
  std::uint64_t before = 0;
  std::uint64_t now = 0;
  do {
    {
      codec::MutexLock lock(mutex_);
      before = slot_of(inode).events;
    }
    std::this_thread::sleep_for(kQuietTime);
    codec::MutexLock lock(mutex_);
    now = slot_of(inode).events;
  } while (now != before && Clock::now() < end);
  return now;
}

bool NotificationGate::keep_quiet(std::uint64_t inode, std::uint64_t events) {
  codec::MutexLock lock(mutex_);
  Slot& slot = slot_of(inode);
  if (slot.events != events) return false;
  slot.quiet_until = Clock::now() + kQuietTime;
  return true;
}

void NotificationGate::begin(std::uint64_t inode) {
  for (;;) {
    Clock::time_point quiet_until;
    {
      codec::MutexLock lock(mutex_);
      Slot& slot = slot_of(inode);
      quiet_until = slot.quiet_until;
      if (quiet_until <= Clock::now()) {
        ++slot.events;
        return;
      }
    }
    std::this_thread::sleep_until(quiet_until);
  }
}

void NotificationGate::end(std::uint64_t inode) {
  codec::MutexLock lock(mutex_);
  ++slot_of(inode).events;
}

}  // namespace cframefs::fs
