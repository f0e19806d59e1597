#include "fs/kernel/notification_gate.h"

#include <thread>

namespace cframefs::fs {

std::uint64_t NotificationGate::settle(std::uint64_t inode) {
  const auto end = Clock::now() + kLongestSettling;
  for (;;) {
    Clock::time_point quiet_since;
    {
      codec::MutexLock lock(mutex_);
      const Slot& slot = slot_of(inode);
      quiet_since = slot.last + kQuietTime;
      if (quiet_since <= Clock::now() || Clock::now() >= end) return slot.events;
    }
    std::this_thread::sleep_until(quiet_since);
  }
}

bool NotificationGate::keep_quiet(std::uint64_t inode, std::uint64_t events) {
  codec::MutexLock lock(mutex_);
  Slot& slot = slot_of(inode);
  if (slot.events != events) return false;
  slot.quiet_until = Clock::now() + kAnswerTime;
  return true;
}

void NotificationGate::begin(std::uint64_t inode) {
  const auto end = Clock::now() + kLongestSettling;
  for (;;) {
    Clock::time_point quiet_until;
    {
      codec::MutexLock lock(mutex_);
      Slot& slot = slot_of(inode);
      quiet_until = slot.quiet_until;
      if (quiet_until <= Clock::now() || Clock::now() >= end) {
        note_event(slot);
        return;
      }
    }
    std::this_thread::sleep_until(quiet_until);
  }
}

void NotificationGate::end(std::uint64_t inode) {
  codec::MutexLock lock(mutex_);
  note_event(slot_of(inode));
}

void NotificationGate::note_event(Slot& slot) {
  ++slot.events;
  slot.last = Clock::now();
}

}  // namespace cframefs::fs
