// A reader-writer lock with bounded writer preference.
//
// New readers yield to a waiting writer for at most 20 ms. Writers therefore do not starve, as they may with
// std::shared_mutex; and a reader that waits for another reader while it holds the lock (a mount inside its own source)
// does not deadlock behind the writer. Not recursive. Thread safety: internally synchronised.
#pragma once

#include <chrono>

#include "codec/base/mutex.h"

namespace cframefs::codec {

class CFRAMEFS_TSA(capability("mutex")) SharedMutex {
 public:
  void lock_shared() CFRAMEFS_TSA(acquire_shared_capability()) CFRAMEFS_TSA(no_thread_safety_analysis) {
    MutexLock lock(mutex_);
    if (waiting_writers_ > 0 && !has_writer_) changed_.wait_for(mutex_, kWriterGrace);
    while (has_writer_)
      changed_.wait(mutex_);
    ++readers_;
  }
  void unlock_shared() CFRAMEFS_TSA(release_shared_capability()) CFRAMEFS_TSA(no_thread_safety_analysis) {
    MutexLock lock(mutex_);
    if (--readers_ == 0) changed_.notify_all();
  }
  void lock() CFRAMEFS_TSA(acquire_capability()) CFRAMEFS_TSA(no_thread_safety_analysis) {
    MutexLock lock(mutex_);
    ++waiting_writers_;
    while (has_writer_ || readers_ > 0)
      changed_.wait(mutex_);
    --waiting_writers_;
    has_writer_ = true;
  }
  void unlock() CFRAMEFS_TSA(release_capability()) CFRAMEFS_TSA(no_thread_safety_analysis) {
    MutexLock lock(mutex_);
    has_writer_ = false;
    changed_.notify_all();
  }

 private:
  static constexpr std::chrono::milliseconds kWriterGrace{20};

  Mutex mutex_;
  CondVar changed_;
  // Guarded by mutex_.
  unsigned readers_ = 0;
  unsigned waiting_writers_ = 0;
  bool has_writer_ = false;
};

/// Holds a SharedMutex as a reader for a scope.
class CFRAMEFS_TSA(scoped_lockable) SharedLock {
 public:
  explicit SharedLock(SharedMutex& mutex) CFRAMEFS_TSA(acquire_shared_capability(mutex)) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  ~SharedLock() CFRAMEFS_TSA(release_generic_capability()) { mutex_.unlock_shared(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  SharedMutex& mutex_;
};

/// Holds a SharedMutex as the writer for a scope.
class CFRAMEFS_TSA(scoped_lockable) ExclusiveLock {
 public:
  explicit ExclusiveLock(SharedMutex& mutex) CFRAMEFS_TSA(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~ExclusiveLock() CFRAMEFS_TSA(release_capability()) { mutex_.unlock(); }
  ExclusiveLock(const ExclusiveLock&) = delete;
  ExclusiveLock& operator=(const ExclusiveLock&) = delete;

 private:
  SharedMutex& mutex_;
};

}  // namespace cframefs::codec
