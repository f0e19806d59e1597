#include "fs/kernel/told_size.h"

#include <utility>

namespace cframefs::fs {

bool ToldSize::tell(std::uint64_t size) {
  codec::MutexLock lock(mutex_);
  if (size < size_) doubt_ = Doubt::doubted;
  return std::exchange(size_, size) != size;
}

void ToldSize::set(std::uint64_t size) {
  codec::MutexLock lock(mutex_);
  size_ = size;
  doubt_ = Doubt::agreed;
}

bool ToldSize::may_be_short(const Read& read, NotificationGate& gate) {
  if (read.size == 0) return false;
  {
    codec::MutexLock lock(mutex_);
    if (doubt_ == Doubt::agreed && read.at + read.size >= size_) return true;
    if (doubt_ == Doubt::asked && read.begun == failed_.load() && gate.keep_quiet(read.inode, events_)) {
      doubt_ = Doubt::agreed;
      size_ = read.at + read.size;
      return true;
    }
  }
  // Notifications of the change follow it closely.
  const std::uint64_t events = gate.settle(read.inode);
  codec::MutexLock lock(mutex_);
  doubt_ = Doubt::asked;
  events_ = events;
  ++failed_;
  return false;
}

}  // namespace cframefs::fs
