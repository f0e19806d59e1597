#include "frame/cframe/sparse_states.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <new>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>

#include "frame/cframe/sparse_frame.h"
#include "frame/io/advisory_lock.h"
#include "frame/io/system_version.h"

namespace cframefs::frame {
namespace {

// Files that are removed under one hold of the frame's lock. Tens of thousands take longer than a writer waits for it.
constexpr std::size_t kPortion = 256;

}  // namespace

/// Owned by the containers of one state; the destructor ends the state.
class SparseStates::Hold {
 public:
  Hold(std::shared_ptr<SparseStates> states, Number state) : states_(std::move(states)), state_(state) {}
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() { states_->ended(state_); }

 private:
  const std::shared_ptr<SparseStates> states_;
  const Number state_;
};

SparseStates::State SparseStates::begin_state() {
  Number number = 0;
  {
    codec::MutexLock lock(mutex_);
    number = ++last_;
    held_.insert(number);
  }
  return {number, std::make_shared<const Hold>(shared_from_this(), number)};
}

void SparseStates::add_files(Number state, const std::vector<std::int64_t>& numbers) {
  codec::MutexLock lock(mutex_);
  for (const std::int64_t number : numbers)
    first_[number] = state;
}

void SparseStates::forget_files(const std::vector<std::int64_t>& numbers) {
  codec::MutexLock lock(mutex_);
  for (const std::int64_t number : numbers)
    first_.erase(number);
}

void SparseStates::reserve_dead(std::size_t count) {
  codec::MutexLock lock(mutex_);
  const std::size_t wanted = dead_.size() + count;
  if (wanted > dead_.capacity()) dead_.reserve(std::max(wanted, 2 * dead_.capacity()));
}

SparseStates::Number SparseStates::first_of(std::int64_t number) const {
  codec::MutexLock lock(mutex_);
  const auto found = first_.find(number);
  return found == first_.end() ? 0 : found->second;
}

void SparseStates::add_dead(std::vector<DeadFile> dead) {
  codec::MutexLock lock(mutex_);
  for (const DeadFile& file : dead)
    first_.erase(file.number);
  dead_.insert(dead_.end(), std::make_move_iterator(dead.begin()), std::make_move_iterator(dead.end()));
}

std::set<std::int64_t> SparseStates::waiting() const {
  codec::MutexLock lock(mutex_);
  std::set<std::int64_t> numbers;
  for (const DeadFile& file : dead_)
    numbers.insert(file.number);
  return numbers;
}

void SparseStates::ended(Number state) {
  {
    codec::MutexLock lock(mutex_);
    held_.erase(state);
    if (writers_ > 0 || dead_.empty()) return;
  }
  if (const auto registry = registry_.lock(); registry && registry->defer(shared_from_this())) return;
  remove_with_lock();
}

void SparseStates::join() {
  codec::MutexLock lock(mutex_);
  ++writers_;
}

void SparseStates::leave() {
  {
    codec::MutexLock lock(mutex_);
    if (--writers_ > 0) return;
  }
  remove_with_lock();
}

/// Removes files without a writer. The frame's lock keeps other writers out, so that a file cannot change between the
/// check of its identity and its removal.
void SparseStates::remove_with_lock() noexcept {
  if (!has_dead_and_no_writer()) return;
  // One thread at a time: AdvisoryLock would refuse a second thread, and the files of that thread's state would stay.
  codec::MutexLock one(leaving_);
  try {
    // A new writer takes the lock between two portions, and its commits remove the rest.
    while (has_dead_and_no_writer() && remove_portion()) {
    }
  } catch (const std::bad_alloc&) {
    // What stays is removed by a compaction.
  }
}

/// Returns whether files were removed.
bool SparseStates::remove_portion() {
  const auto index = files_.open_at(directory_->handle(), kSparseIndexName, O_RDWR | O_NONBLOCK | O_NOCTTY);
  if (!index) return false;
  const Descriptor file(files_, *index);
  const AdvisoryLock::Target target{directory_->handle(), kSparseSideCar, {}, file.handle()};
  const auto held = AdvisoryLock::acquire(files_, target, {std::chrono::milliseconds(0)});
  return held && delete_obsolete(kPortion);
}

bool SparseStates::has_dead_and_no_writer() const {
  codec::MutexLock lock(mutex_);
  return !dead_.empty() && writers_ == 0;
}

std::vector<SparseStates::DeadFile> SparseStates::take_unnamed(std::size_t most) {
  codec::MutexLock lock(mutex_);
  const auto is_named = [this](const DeadFile& file) REQUIRES(mutex_) {
    const auto state = held_.lower_bound(file.first);
    return state != held_.end() && *state <= file.last;
  };
  const auto named = std::stable_partition(dead_.begin(), dead_.end(),
                                           [&](const DeadFile& file) REQUIRES(mutex_) { return !is_named(file); });
  const auto end = dead_.begin() + std::min(named - dead_.begin(),
                                            static_cast<std::ptrdiff_t>(std::min<std::size_t>(most, PTRDIFF_MAX)));
  std::vector<DeadFile> unnamed(dead_.begin(), end);
  dead_.erase(dead_.begin(), end);
  return unnamed;
}

bool SparseStates::delete_obsolete(std::size_t most) {
  codec::MutexLock one(removing_);
  std::vector<DeadFile> unnamed = take_unnamed(most);
  if (unnamed.empty()) return false;
  unless_read([&] {
    for (const DeadFile& file : unnamed)
      remove(file);
    unnamed.clear();
  });
  const bool is_done = unnamed.empty();
  add_dead(std::move(unnamed));
  return is_done;
}

void SparseStates::unless_read(const std::function<void()>& remove) {
  const auto held = files_.try_lock(directory_->handle(), LOCK_EX);
  if (held && !*held) return;
  // If the filesystem has no locks, readers check the index file after each read (SparseGuard::checks_after_read).
  remove();
  if (held) static_cast<void>(files_.try_lock(directory_->handle(), LOCK_UN));
}

void SparseStates::remove(const DeadFile& dead) const {
  const auto name = chunk_file_name(dead.number);
  if (!name) return;
  const auto status = files_.status_at(directory_->handle(), *name);
  if (!status) return;
  // ctime is not compared: a change of mode or links does not change the file.
  FileVersion now = version_of(*status);
  now.ctime_ns = dead.identity.ctime_ns;
  if (now == dead.identity) static_cast<void>(files_.remove_at(directory_->handle(), *name, false));
}

std::shared_ptr<SparseStates> SparseRegistry::states_of(FileOps& files,
                                                        const std::shared_ptr<const Descriptor>& directory) {
  const auto status = files.status(directory->handle());
  if (!status) return std::make_shared<SparseStates>(files, directory);
  codec::MutexLock lock(mutex_);
  std::erase_if(states_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<SparseStates>& known = states_[{status->st_dev, status->st_ino}];
  std::shared_ptr<SparseStates> states = known.lock();
  if (!states) known = states = std::make_shared<SparseStates>(files, directory, weak_from_this());
  return states;
}

void SparseRegistry::defer_removals(std::function<void()> wake) {
  codec::MutexLock lock(mutex_);
  wake_ = std::move(wake);
}

bool SparseRegistry::defer(std::shared_ptr<SparseStates> states) {
  codec::MutexLock lock(mutex_);
  if (!wake_) return false;
  if (!states->is_deferred_) {
    states->is_deferred_ = true;
    states->next_deferred_ = std::move(first_deferred_);
    first_deferred_ = std::move(states);
  }
  wake_();
  return true;
}

std::shared_ptr<SparseStates> SparseRegistry::take_deferred() {
  codec::MutexLock lock(mutex_);
  std::shared_ptr<SparseStates> states = std::move(first_deferred_);
  if (states) {
    first_deferred_ = std::move(states->next_deferred_);
    states->is_deferred_ = false;
  }
  return states;
}

void SparseRegistry::remove_deferred() {
  while (const auto states = take_deferred())
    states->remove_with_lock();
}

bool SparseRegistry::has_deferred() const {
  codec::MutexLock lock(mutex_);
  return first_deferred_ != nullptr;
}

void SparseRegistry::stop_deferring() {
  defer_removals(nullptr);
  remove_deferred();
}

}  // namespace cframefs::frame
