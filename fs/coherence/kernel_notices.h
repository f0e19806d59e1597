// Posts notifications to the kernel: the notifier's queues, and the kernel's interface that their tasks call.
//
// Thread safety: all members after start(). Ownership: the kernel's interface lives until stop(). Errors: none; post()
// waits for memory, because a lost notification lets programs read old bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "fs/coherence/kernel_invalidator.h"
#include "fs/kernel/notifier.h"
#include "fs/util/no_memory.h"

namespace cframefs::fs {

class KernelNotices {
 public:
  /// `wants_names`: the mount lets the kernel cache names of files, if possible.
  void start(KernelInvalidator& kernel, bool wants_names) {
    kernel_ = &kernel;
    // Only if the kernel can drop them without waiting for requests that change a directory.
    keeps_names_ = wants_names && kernel.invalidate_all_entries();
    notifier_.start();
  }
  void stop() { notifier_.stop(); }

  /// Posts a task, as Notifier::post(). The task is copied here, because a copy may need memory, too.
  template <class Task>
  void post(Notifier::Lane lane, NodeId id, const std::string& what, const Task& task) {
    until_there_is_memory([&] { notifier_.post(lane, id, what, task); });
  }
  bool is_busy(Notifier::Lane lane, NodeId id) { return notifier_.is_busy(lane, id); }
  bool wait(Notifier::Lane lane, NodeId id, std::chrono::milliseconds patience) {
    return notifier_.wait(lane, id, patience);
  }
  /// Makes the kernel look up all names again before it takes the caller's answer. The message waits for nothing.
  void forget_names_now() {
    // Counted first: a listing that begins now tells of the names after the change.
    names_forgotten_.fetch_add(1);
    kernel_->invalidate_all_entries();
  }
  /// The same, without waiting for the message to be sent.
  void forget_names() {
    names_forgotten_.fetch_add(1);
    post(Notifier::Lane::attributes, 0, "", [this] { kernel_->invalidate_all_entries(); });
  }
  /// Returns how often these were called.
  std::uint64_t names_forgotten() const { return names_forgotten_.load(); }
  /// Returns the kernel's interface, for tasks.
  KernelInvalidator& kernel() const { return *kernel_; }
  /// Returns true if the kernel may cache names of files.
  bool keeps_names() const { return keeps_names_.load(std::memory_order_relaxed); }

 private:
  Notifier notifier_;
  KernelInvalidator* kernel_ = nullptr;
  std::atomic<bool> keeps_names_{false};
  std::atomic<std::uint64_t> names_forgotten_{0};
};

}  // namespace cframefs::fs
