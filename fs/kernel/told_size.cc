#include "fs/kernel/told_size.h"

#include <utility>

namespace cframefs::fs {

bool ToldSize::tell(std::uint64_t size, std::uint64_t look) {
  codec::MutexLock lock(mutex_);
  if (look != truncations_.load(std::memory_order_relaxed)) return false;
  is_lowered_ = is_lowered_ || size < size_;
  note_change();
  return std::exchange(size_, size) != size;
}

void ToldSize::set(std::uint64_t size) {
  codec::MutexLock lock(mutex_);
  ++truncations_;
  agree(size);
}

void ToldSize::changed_behind() {
  codec::MutexLock lock(mutex_);
  is_foreign_ = true;
  note_change();
}

void ToldSize::begin_writing() {
  codec::MutexLock lock(mutex_);
  ++writers_;
}

void ToldSize::end_writing() {
  codec::MutexLock lock(mutex_);
  --writers_;
  ++left_;
}

void ToldSize::note_change() {
  // The kernel may have ignored the answer that tells the smaller size, because a notification of the change crossed
  // it.
  if (is_lowered_ && is_foreign_ && doubt_ == Doubt::agreed) doubt_ = Doubt::doubted;
}

void ToldSize::agree(std::uint64_t size) {
  size_ = size;
  doubt_ = Doubt::agreed;
  is_lowered_ = is_foreign_ = false;
}

bool ToldSize::may_be_short(const Read& read, NotificationGate& gate) {
  // Readahead behind the end takes no part: it would be the answer that another one must not cross.
  const bool is_readahead_only = read.size == 0 && !read.is_page;
  {
    codec::MutexLock lock(mutex_);
    // What was read may be of a time when there were writers.
    if (writers_ > 0 || read.begun.left != left_.load(std::memory_order_relaxed)) return true;
    if (doubt_ == Doubt::agreed && read.at + read.size >= size_) return read.size > 0 || Clock::now() >= settled_;
    if (doubt_ == Doubt::agreed) doubt_ = Doubt::doubted;
    if (is_readahead_only) return false;
    if (is_second(read) && gate.keep_quiet(read.inode, events_)) {
      agree(read.at + read.size);
      settled_ = Clock::now() + NotificationGate::kAnswerTime;
      return true;
    }
  }
  // Notifications of the change follow it closely.
  const std::uint64_t events = gate.settle(read.inode);
  codec::MutexLock lock(mutex_);
  doubt_ = Doubt::asked;
  events_ = events;
  ++failed_;
  page_behind_ = read.size == 0 ? std::optional(read.at) : std::nullopt;
  return false;
}

bool ToldSize::is_second(const Read& read) const {
  if (doubt_ != Doubt::asked || read.begun.failed != failed_.load()) return false;
  return read.size > 0 ? !page_behind_ : page_behind_ == read.at;
}

}  // namespace cframefs::fs
