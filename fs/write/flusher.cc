#include "fs/write/flusher.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "fs/util/no_memory.h"

namespace cframefs::fs {
namespace {

// The longest interval between checks of ages while a file is dirty.
constexpr std::chrono::milliseconds kTick(500);
constexpr std::chrono::milliseconds kShortestTick(10);
// The first pause after a failed commit; each pause is twice the last one. Locks are usually held for a short time.
constexpr std::chrono::milliseconds kFirstPause(500);
constexpr std::chrono::milliseconds kLongestPause(30'000);
constexpr std::chrono::milliseconds kLongestPauseForLock(2'000);

}  // namespace

void Flusher::start() {
  {
    codec::MutexLock lock(mutex_);
    running_ = true;
  }
  thread_ = std::thread([this] { run(); });
}

void Flusher::stop() {
  {
    codec::MutexLock lock(mutex_);
    running_ = false;
  }
  woken_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Flusher::add(const std::shared_ptr<WriteBack>& file) {
  codec::MutexLock lock(mutex_);
  std::erase_if(entries_, [](const Entry& entry) { return entry.file.expired(); });
  entries_.push_back({file, nullptr, nullptr, {}, {}});
}

void Flusher::note_work() {
  // The work is there already: either this function sees `sleeps_`, or the thread sees the work.
  if (!sleeps_.exchange(false)) return;
  { codec::MutexLock lock(mutex_); }
  woken_.notify_all();
}

void Flusher::keep(const std::shared_ptr<WriteBack>& file, Attempt attempt) {
  codec::MutexLock lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.file.lock() != file) continue;
    entry.kept = file;
    entry.attempt.swap(attempt);  // the old one is destroyed without the lock
  }
}

void Flusher::let_go(const std::shared_ptr<WriteBack>& file) {
  Entry gone;  // destroyed without the lock
  codec::MutexLock lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.kept != file) continue;
    gone.kept = std::exchange(entry.kept, nullptr);
    gone.attempt = std::exchange(entry.attempt, nullptr);
  }
}

void Flusher::wake() {
  {
    codec::MutexLock lock(mutex_);
    if (over_limit_) return;
    over_limit_ = true;
  }
  woken_.notify_all();
}

/// Returns the files that are not in a pause after a failed commit.
std::vector<Flusher::Work> Flusher::files(Time now) {
  std::vector<Work> found;
  codec::MutexLock lock(mutex_);
  for (const Entry& entry : entries_) {
    if (now < entry.not_before) continue;
    if (auto file = entry.file.lock()) found.push_back({std::move(file), entry.attempt});
  }
  return found;
}

/// Returns the files that are kept, or dirty for longer than the interval.
std::vector<Flusher::Work> Flusher::due_files() {
  const Time now = shared_.clock();
  std::vector<Work> due = files(now);
  std::erase_if(due, [&](const Work& work) {
    const auto oldest = work.file->status().oldest_dirty;
    return !work.attempt && (!oldest || now - *oldest < shared_.interval);
  });
  return due;
}

/// Sets the time of the next attempt.
void Flusher::note(const Work& work, const codec::Result<void>& done) {
  if (!done && done.error().sys == EAGAIN) return;
  codec::MutexLock lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.file.lock() != work.file) continue;
    if (done) {
      entry.pause = std::chrono::milliseconds(0);
    } else {
      const auto longest = done.error().sys == EBUSY ? kLongestPauseForLock : kLongestPause;
      entry.pause = std::clamp(2 * entry.pause, kFirstPause, longest);
      entry.not_before = shared_.clock() + entry.pause;
    }
  }
}

void Flusher::commit_due() {
  for (const Work& work : due_files()) {
    const auto done = work.file->background_commit(CommitExtent::all, work.attempt != nullptr);
    note(work, done);
    if (work.attempt) work.attempt(done);
  }
}

void Flusher::commit_largest(std::uint64_t most) {
  // Bytes that another thread is already committing count as gone.
  std::uint64_t going = 0;
  const auto is_enough = [&] { return shared_.dirty_bytes.load(std::memory_order_relaxed) <= capped_sum(most, going); };
  std::vector<std::pair<std::uint64_t, Work>> sizes;
  for (Work& work : files(shared_.clock())) {
    if (const std::uint64_t bytes = work.file->uncommitted().memory; bytes > 0)
      sizes.emplace_back(bytes, std::move(work));
  }
  std::sort(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [bytes, work] : sizes) {
    const auto before = work.file->snapshot();
    auto done = work.file->background_commit(CommitExtent::complete);
    // The growing chunk of a stream stays, unless room is needed and nothing else can be committed.
    if (done && !is_enough() && work.file->snapshot() == before) {
      done = work.file->background_commit(CommitExtent::all);
    }
    if (!done && done.error().sys == EAGAIN) going += bytes;
    note(work, done);
    if (is_enough()) return;
  }
}

bool Flusher::has_work() {
  if (shared_.sparse_registry->has_deferred()) return true;
  std::vector<std::shared_ptr<WriteBack>> open;  // examined without the lock
  {
    codec::MutexLock lock(mutex_);
    open.reserve(entries_.size());
    for (const Entry& entry : entries_) {
      if (entry.kept) return true;
      if (auto file = entry.file.lock()) open.push_back(std::move(file));
    }
  }
  return !std::all_of(open.begin(), open.end(), [](const auto& file) { return file->status().is_clean; });
}

bool Flusher::pause(bool& much) {
  // Set before the files are examined: see note_work().
  sleeps_ = true;
  bool is_work = true;  // assumed if there is no memory to examine the files
  try_in_memory([&] { is_work = has_work(); });
  const std::chrono::milliseconds tick = std::clamp(shared_.interval / 4, kShortestTick, kTick);
  codec::MutexLock lock(mutex_);
  if (is_work) {
    sleeps_ = false;  // the timeout wakes the thread
    if (running_ && !over_limit_) woken_.wait_for(mutex_, tick);
  } else {
    while (running_ && !over_limit_ && sleeps_)
      woken_.wait(mutex_);
  }
  sleeps_ = false;
  much = over_limit_;
  return running_;
}

void Flusher::run() {
  bool much = false;
  while (pause(much)) {
    try_in_memory([&] { shared_.sparse_registry->remove_deferred(); });
    // Without memory everything stays dirty until the next round.
    try_in_memory([&] { commit_due(); });
    if (!much) continue;
    try_in_memory([&] { commit_largest(shared_.dirty_limit / 4); });
    codec::MutexLock lock(mutex_);
    over_limit_ = false;
  }
}

void Flusher::commit_all(const Lost& lost) {
  std::vector<Work> all;
  until_there_is_memory([&] { all = files(Time::max()); });
  const auto commit = [&](const Work& work, CommitWait wait) {
    auto done = or_no_memory([&] {
      auto committed = work.file->commit(frame::Durability::durable, CommitExtent::all, wait);
      return committed ? work.file->check_whole() : committed;
    });
    if (!done && (wait != CommitWait::none || done.error().sys != EBUSY)) lost(*work.file, done.error());
    return done.has_value() || done.error().sys != EBUSY;
  };
  for (const Work& work : all)
    try_in_memory([&] { static_cast<void>(work.file->open_again()); });
  // No file waits for another one's lock, and all together wait no longer than one request would.
  std::vector<Work> left;
  until_there_is_memory([&] { left = all; });
  const auto until = std::chrono::steady_clock::now() + shared_.lock_timeout;
  while (true) {
    std::erase_if(left, [&](const Work& work) { return commit(work, CommitWait::none); });
    if (left.empty() || std::chrono::steady_clock::now() >= until) break;
    // Pause, because each attempt encodes its chunks.
    std::this_thread::sleep_for(std::min(shared_.lock_timeout / 4, kTick));
  }
  for (const Work& work : left)
    commit(work, CommitWait::past_lock);
  for (const Work& work : all)
    let_go(work.file);
}

}  // namespace cframefs::fs
