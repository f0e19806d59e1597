// A mutex that many hold who look, or one who changes.
//
// Unlike std::shared_mutex, whoever wants to change is not starved by those who look: newcomers let him go first. They
// do so for a while only, so that one who looks and, while he does, waits for somebody else who looks comes to his end
// (a mount within its own source). Nobody may take it twice knowingly. Thread safety: that is what it is for.
#pragma once

#include <chrono>

#include "codec/base/mutex.h"

namespace cframefs::codec {

class CFRAMEFS_TSA(capability("mutex")) SharedMutex {
 public:
  void lock_shared() CFRAMEFS_TSA(acquire_shared_capability()) CFRAMEFS_TSA(no_thread_safety_analysis) {
    MutexLock lock(mutex_);
    if (waiting_ > 0 && !changing_) changed_.wait_for(mutex_, kWriterGrace);
    while (changing_)
      changed_.wait(mutex_);
    ++looking_;
  }
  void unlock_shared() CFRAMEFS_TSA(release_shared_capability()) CFRAMEFS_TSA(no_thread_safety_analysis) {
    MutexLock lock(mutex_);
    if (--looking_ == 0) changed_.notify_all();
  }
  void lock() CFRAMEFS_TSA(acquire_capability()) CFRAMEFS_TSA(no_thread_safety_analysis) {
    MutexLock lock(mutex_);
    ++waiting_;
    while (changing_ || looking_ > 0)
      changed_.wait(mutex_);
    --waiting_;
    changing_ = true;
  }
  void unlock() CFRAMEFS_TSA(release_capability()) CFRAMEFS_TSA(no_thread_safety_analysis) {
    MutexLock lock(mutex_);
    changing_ = false;
    changed_.notify_all();
  }

 private:
  static constexpr std::chrono::milliseconds kWriterGrace{20};

  Mutex mutex_;
  CondVar changed_;
  unsigned looking_ = 0;  // mutex_, as the others
  unsigned waiting_ = 0;  // to change
  bool changing_ = false;
};

/// Holds a SharedMutex for a scope, for looking.
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

/// Holds a SharedMutex for a scope, for changing.
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
