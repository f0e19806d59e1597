#include "fs/read/block_touches.h"

#include <algorithm>

namespace cframefs::fs {

std::atomic<std::size_t> BlockTouches::memory_{0};

BlockTouches::BlockTouches(std::uint64_t file_size)
    : count_(static_cast<std::size_t>(std::clamp<std::uint64_t>(file_size / kUnit + 1, 1, kMaxCounters))) {}

BlockTouches::~BlockTouches() {
  if (counters_ != nullptr) memory_.fetch_sub(count_, std::memory_order_relaxed);
}

BlockTouches::Counter* BlockTouches::counters() {
  Counter* found = counters_.load(std::memory_order_acquire);
  if (found != nullptr || has_no_memory_.load(std::memory_order_relaxed)) return found;
  const codec::MutexLock lock(mutex_);
  if (made_) return made_.get();
  if (memory_.fetch_add(count_, std::memory_order_relaxed) + count_ > kMaxMemory) {
    memory_.fetch_sub(count_, std::memory_order_relaxed);
    has_no_memory_ = true;
    return nullptr;
  }
  made_ = std::make_unique<Counter[]>(count_);
  counters_.store(made_.get(), std::memory_order_release);
  return made_.get();
}

bool BlockTouches::note(std::uint64_t at) {
  if (std::uint64_t paused = paused_.load(std::memory_order_relaxed); paused > 0) {
    // A lost update makes the pause shorter or longer, which does not matter.
    paused_.store(paused - 1, std::memory_order_relaxed);
    return false;
  }
  Counter* const all = counters();
  if (all == nullptr) return false;
  Counter& touches = counter(all, at);
  const auto count = static_cast<std::uint8_t>(touches.fetch_add(1, std::memory_order_relaxed) + 1);
  if (count == kWanted) {
    fillings_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  if (count == kWanted + kRegret) {
    touches.store(0, std::memory_order_relaxed);
    note_regret();
  }
  return false;
}

void BlockTouches::forget(std::uint64_t at) {
  if (Counter* const all = counters_.load(std::memory_order_acquire); all != nullptr)
    counter(all, at).store(0, std::memory_order_relaxed);
}

void BlockTouches::note_regret() {
  const std::uint64_t regrets = regrets_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (regrets < kFewRegrets) return;
  if (regrets * 2 >= fillings_.load(std::memory_order_relaxed)) paused_.store(kPause, std::memory_order_relaxed);
  // What comes next is judged by itself.
  regrets_.store(0, std::memory_order_relaxed);
  fillings_.store(0, std::memory_order_relaxed);
}

}  // namespace cframefs::fs
