#include "fs/kernel/notifier.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "fs/util/no_memory.h"

namespace cframefs::fs {

void Notifier::start() {
  codec::MutexLock lock(mutex_);
  running_ = true;
  threads_.reserve(kMaxThreads);
  threads_.emplace_back([this] { run(); });
}

void Notifier::stop() {
  std::map<Key, Queue> dropped;  // destroyed without the lock
  std::vector<std::thread> threads;
  {
    codec::MutexLock lock(mutex_);
    running_ = false;
    queues_.swap(dropped);
    ready_.clear();
    prompt_.clear();
    threads_.swap(threads);
    called_.notify_all();
    watches_.notify_all();
    returned_.notify_all();
  }
  for (std::thread& thread : threads)
    thread.join();
}

void Notifier::post(Lane lane, std::uint64_t id, std::string what, Task task) {
  const Key key{lane, id};
  codec::MutexLock lock(mutex_);
  if (!running_) return;
  const auto [found, is_new] = queues_.try_emplace(key);
  Queue& queue = found->second;
  const auto is_same = [&what](const Item& item) { return item.what == what; };
  if (std::any_of(queue.items.begin(), queue.items.end(), is_same)) return;
  const std::size_t before = queue.items.size();
  try {
    queue.items.push_back({std::move(what), std::move(task)});
    if (!queue.runs && queue.items.size() == 1) make_ready(key);
  } catch (...) {
    queue.items.resize(before);
    if (is_new) queues_.erase(found);
    throw;
  }
  ++queue.posted;
  if (!watched_) call_one();
}

void Notifier::make_ready(const Key& key) {
  (may_wait(key.lane) ? ready_ : prompt_).push_back(key);
}

void Notifier::call_one() {
  if (idle_ > 0) return called_.notify_one();
  if (!running_ || threads_.size() == kMaxThreads) return;
  try {
    threads_.emplace_back([this] { run(); });
  } catch (const std::exception&) {
    // Without memory for a thread, or with too many threads, the existing ones run the task later.
  }
}

bool Notifier::is_busy(Lane lane, std::uint64_t id) {
  codec::MutexLock lock(mutex_);
  return queues_.contains({lane, id});
}

bool Notifier::wait(Lane lane, std::uint64_t id, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  codec::MutexLock lock(mutex_);
  const auto found = queues_.find({lane, id});
  if (found == queues_.end()) return true;
  const std::uint64_t last = found->second.posted;
  for (;;) {
    const auto queue = queues_.find({lane, id});
    if (queue == queues_.end() || queue->second.done >= last) return true;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    returned_.wait_for(mutex_, left);
  }
}

bool Notifier::has_work() const {
  return !prompt_.empty() || (!ready_.empty() && waiting_ < kMaxThreads - 1);
}

void Notifier::run() {
  codec::MutexLock lock(mutex_);
  while (running_) {
    if (!has_work() || (busy_ > 0 && watched_)) {
      ++idle_;
      called_.wait(mutex_);
      --idle_;
    } else if (busy_ == 0 || are_others_stuck()) {
      do_next();
    }
  }
}

bool Notifier::are_others_stuck() {
  const std::uint64_t before = returns_;
  const auto end = std::chrono::steady_clock::now() + kStuck;
  watched_ = true;
  while (running_ && has_work() && returns_ == before && std::chrono::steady_clock::now() < end)
    watches_.wait_for(mutex_, kStuck);
  watched_ = false;
  if (!running_ || !has_work() || returns_ != before) return false;
  std::fill(stuck_.begin(), stuck_.end(), true);
  busy_ = 0;
  return true;
}

void Notifier::do_next() {
  std::deque<Key>& ready = prompt_.empty() ? ready_ : prompt_;
  const Key key = ready.front();
  // Allocate first: nothing has changed if that fails.
  std::list<bool>::iterator stuck;
  until_there_is_memory([&]() NO_THREAD_SAFETY_ANALYSIS { stuck = stuck_.insert(stuck_.end(), false); });
  ready.pop_front();
  Queue& queue = queues_.at(key);
  queue.runs = true;
  Item item = std::move(queue.items.front());
  queue.items.pop_front();
  ++busy_;
  if (may_wait(key.lane)) ++waiting_;
  if (has_work() && !watched_) call_one();
  mutex_.unlock();
  until_there_is_memory(item.task);
  item = {};  // destroys what the task owns without the lock
  mutex_.lock();
  if (!*stuck) --busy_;
  if (may_wait(key.lane)) --waiting_;
  stuck_.erase(stuck);
  ++returns_;
  const auto found = queues_.find(key);
  if (found == queues_.end()) return;  // stop() has removed it
  found->second.runs = false;
  ++found->second.done;
  if (found->second.items.empty()) {
    queues_.erase(found);
  } else {
    until_there_is_memory([&]() NO_THREAD_SAFETY_ANALYSIS { make_ready(key); });
  }
  returned_.notify_all();
}

}  // namespace cframefs::fs
