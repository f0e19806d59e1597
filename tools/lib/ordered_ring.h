// Parallel work with ordered results: worker threads finish slots in any order, and the owner takes them in the order
// of push().
//
// The ring has a fixed number of slots, which bounds the memory. The owner fills a free slot and pushes it; a worker
// processes it; the owner waits for the oldest slot, takes the result and releases the slot.
//
// Thread safety: the owner calls everything but the work. Between push() and oldest() a slot belongs to a worker, else
// to the owner. Ownership: the ring owns slots and threads; destruction waits for work in progress and drops the rest.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cframefs::tools {

/// `Slot`: default constructible. `Worker`: default constructible, one for each thread.
template <class Slot, class Worker>
class OrderedRing {
 public:
  using Work = std::function<void(Worker&, Slot&)>;

  OrderedRing(unsigned workers, std::size_t slots, Work work) : work_(std::move(work)), slots_(slots) {
    for (unsigned i = 0; i < workers; ++i)
      threads_.emplace_back([this] { run(); });
  }
  ~OrderedRing() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    wanted_.notify_all();
    for (auto& thread : threads_)
      thread.join();
  }
  OrderedRing(const OrderedRing&) = delete;
  OrderedRing& operator=(const OrderedRing&) = delete;

  bool full() const { return pushed_ - released_ == slots_.size(); }
  bool empty() const { return pushed_ == released_; }

  /// Returns the slot that push() hands to a worker. REQUIRES: !full().
  Slot& free() { return slots_[pushed_ % slots_.size()].slot; }
  void push() {
    {
      const std::lock_guard lock(mutex_);
      slots_[pushed_ % slots_.size()].ready = false;
      ++pushed_;
    }
    wanted_.notify_one();
  }

  /// Waits until the work in the oldest slot is done. REQUIRES: !empty().
  Slot& oldest() {
    Entry& entry = slots_[released_ % slots_.size()];
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return entry.ready; });
    return entry.slot;
  }
  void release() { ++released_; }

 private:
  struct Entry {
    Slot slot;
    bool ready = false;  // under the lock
  };

  void run() {
    Worker worker;
    std::unique_lock lock(mutex_);
    for (;;) {
      wanted_.wait(lock, [&] { return closed_ || taken_ < pushed_; });
      if (closed_) return;
      Entry& entry = slots_[taken_++ % slots_.size()];
      lock.unlock();
      work_(worker, entry.slot);
      lock.lock();
      entry.ready = true;
      finished_.notify_one();
    }
  }

  const Work work_;
  std::mutex mutex_;
  std::condition_variable wanted_, finished_;
  std::vector<Entry> slots_;
  std::size_t pushed_ = 0;    // written by the owner, under the lock
  std::size_t taken_ = 0;     // under the lock
  std::size_t released_ = 0;  // owner only
  bool closed_ = false;       // under the lock
  std::vector<std::thread> threads_;
};

}  // namespace cframefs::tools
