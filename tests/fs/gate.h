// A place where threads stand until the test lets them go on.
//
// Thread safety: all members. Ownership: must outlive the threads that stand there.
#pragma once

#include "codec/base/mutex.h"

namespace cframefs::fs {

class Gate {
 public:
  /// Until the gate is open.
  void pass() {
    codec::MutexLock lock(mutex_);
    ++standing_;
    changed_.notify_all();
    while (!open_)
      changed_.wait(mutex_);
    --standing_;
  }
  void open() {
    codec::MutexLock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void shut() {
    codec::MutexLock lock(mutex_);
    open_ = false;
  }
  /// Waits until this number of threads is held at the gate.
  void wait_for(unsigned threads) {
    codec::MutexLock lock(mutex_);
    while (standing_ < threads)
      changed_.wait(mutex_);
  }

 private:
  codec::Mutex mutex_;
  codec::CondVar changed_;
  bool open_ GUARDED_BY(mutex_) = false;
  unsigned standing_ GUARDED_BY(mutex_) = 0;
};

/// Opens a gate however a test ends, so that what it holds back can end, too.
class OpensAtEnd {
 public:
  explicit OpensAtEnd(Gate& gate) : gate_(gate) {}
  ~OpensAtEnd() { gate_.open(); }
  OpensAtEnd(const OpensAtEnd&) = delete;
  OpensAtEnd& operator=(const OpensAtEnd&) = delete;

 private:
  Gate& gate_;
};

}  // namespace cframefs::fs
