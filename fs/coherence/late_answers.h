// Makes the kernel forget the attributes of a node, also those of an answer that is still on its way.
//
// The kernel ignores an answer that is older than a notification about the same inode. But it has no inode for the
// first look-up of a file before it has taken the answer; it then tells that it does not know the node. Such a
// notification is repeated until the kernel knows the node, or has forgotten it, for a minute at most.
//
// Thread safety: forget() may be called concurrently from start() to stop(), by threads that have no request to answer.
// Ownership: the table and the kernel's interface must live until stop(). Errors: none; throws std::bad_alloc.
#pragma once

#include <chrono>
#include <map>
#include <thread>

#include "codec/base/mutex.h"
#include "fs/coherence/kernel_invalidator.h"

namespace cframefs::fs {

class LateAnswers {
 public:
  explicit LateAnswers(const NodeTable& nodes) : nodes_(nodes) {}
  ~LateAnswers() { stop(); }
  LateAnswers(const LateAnswers&) = delete;
  LateAnswers& operator=(const LateAnswers&) = delete;

  void start(KernelInvalidator& kernel);
  void stop() EXCLUDES(mutex_);
  void forget(NodeId node) EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;

  void run() EXCLUDES(mutex_);
  /// Returns whether the kernel has forgotten the node's attributes, or will not get any.
  bool is_forgotten(NodeId node) EXCLUDES(mutex_);

  const NodeTable& nodes_;
  KernelInvalidator* kernel_ = nullptr;
  codec::Mutex mutex_;
  codec::CondVar changed_;
  std::map<NodeId, Clock::time_point> waiting_ GUARDED_BY(mutex_);  // with the time at which to give up
  bool running_ GUARDED_BY(mutex_) = false;
  std::thread thread_ GUARDED_BY(mutex_);  // started when the kernel first does not know a node
};

}  // namespace cframefs::fs
