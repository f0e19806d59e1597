// std::mutex with the annotations of clang's thread-safety analysis, by which the compiler proves which lock guards
// which member. g++ ignores them.
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
// For a lambda that runs only inside a function that holds the mutex; the analysis cannot see that.
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

/// A condition variable for Mutex. Waits may wake spuriously, so callers loop.
class CondVar {
 public:
  void wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    condition_.wait(held);
    held.release();
  }
  /// Waits as wait() does, but at most for `patience`.
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
