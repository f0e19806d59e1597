#include "fs/flusher.h"

#include <algorithm>

#include "fs/no_memory.h"

namespace cframefs::fs {
namespace {

// How often ages are looked at, at least.
constexpr std::chrono::milliseconds kTick(500);
constexpr std::chrono::milliseconds kShortestTick(10);

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
  std::erase_if(files_, [](const auto& known) { return known.expired(); });
  files_.push_back(file);
}

void Flusher::wake() {
  {
    codec::MutexLock lock(mutex_);
    if (much_) return;
    much_ = true;
  }
  woken_.notify_all();
}

Flusher::Files Flusher::files() {
  Files found;
  codec::MutexLock lock(mutex_);
  for (const auto& known : files_) {
    if (auto file = known.lock()) found.push_back(std::move(file));
  }
  return found;
}

void Flusher::run() {
  const std::chrono::milliseconds tick = std::clamp(interval_ / 4, kShortestTick, kTick);
  for (;;) {
    bool much = false;
    {
      codec::MutexLock lock(mutex_);
      if (running_ && !much_) woken_.wait_for(mutex_, tick);
      if (!running_) return;
      much = much_;
    }
    // Without memory everything stays dirty until the next time.
    try_in_memory([&] { commit_due(much); });
    if (!much) continue;
    codec::MutexLock lock(mutex_);
    much_ = false;
  }
}

void Flusher::commit_due(bool much) {
  const Files all = files();
  const auto now = std::chrono::steady_clock::now();
  for (const auto& file : all) {
    const auto oldest = file->oldest_dirty();
    // Errors are kept for the program that asks.
    if (oldest && now - *oldest >= interval_) file->commit_in_background(WriteBack::Extent::all);
  }
  if (!much) return;
  const auto largest = std::max_element(
      all.begin(), all.end(), [](const auto& a, const auto& b) { return a->dirty_bytes() < b->dirty_bytes(); });
  if (largest != all.end()) {
    (*largest)->commit_in_background(WriteBack::Extent::complete);
  }
}

void Flusher::commit_all() {
  Files all;
  until_there_is_memory([&] { all = files(); });
  for (const auto& file : all)
    try_in_memory([&] { static_cast<void>(file->commit(frame::Durability::durable)); });
}

}  // namespace cframefs::fs
