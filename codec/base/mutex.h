// std::mutex with the annotations that clang's thread-safety analysis reads, so that the compiler proves which lock
// guards which member. g++ ignores them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define CFRAMEFS_TSA(x) __attribute__((x))
#else
#define CFRAMEFS_TSA(x)
#endif

#define GUARDED_BY(x) CFRAMEFS_TSA(guarded_by(x))
#define REQUIRES(...) CFRAMEFS_TSA(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) CFRAMEFS_TSA(locks_excluded(__VA_ARGS__))
// For a function object that a function which holds the mutex calls at once.
#define NO_THREAD_SAFETY_ANALYSIS CFRAMEFS_TSA(no_thread_safety_analysis)

namespace cframefs::codec {

class CFRAMEFS_TSA(capability("mutex")) Mutex {
 public:
  void lock() CFRAMEFS_TSA(acquire_capability()) { mutex_.lock(); }
  void unlock() CFRAMEFS_TSA(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

/// Holds a Mutex for a scope.
class CFRAMEFS_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) CFRAMEFS_TSA(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() CFRAMEFS_TSA(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Waits are for a change of what the mutex guards; they may wake for nothing, so callers loop.
class CondVar {
 public:
  void wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    condition_.wait(held);
    held.release();
  }
  /// The same, but at most for `patience`.
  void wait_for(Mutex& mutex, std::chrono::milliseconds patience) REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    condition_.wait_for(held, patience);
    held.release();
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace cframefs::codec
