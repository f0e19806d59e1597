// Sends invalidations to the kernel from threads of its own. The kernel may block such a call until a request is
// answered, so no thread that serves requests may make it, and a call that blocks on one file must not delay others.
//
//             post()                a thread takes it             it returns
//   (none) ─────────▶ pending ───────────────────────▶ running ─────────────▶ (none), or pending: more was posted
//                      │   ▲                             │
//              post()  └───┘ what is pending already     │ kStuck
//                            is not posted twice         ▼
//                                                      stuck ── it returns ──▶ the same
//
// There is one queue for each file and lane. Tasks of one queue run in order, one at a time; queues take turns. Tasks
// of different lanes may block on different things in the kernel, so that attributes of a file are invalidated while
// its pages are waited for.
//
// One thread runs all tasks as long as none blocks. While it runs a task and more are pending, a second thread watches:
// if no task has returned for kStuck, the second thread takes the next task itself, and a third one watches then. So a
// thread is started only when it is needed. There are as many threads as files on which the kernel has blocked at the
// same time, and at most kMaxThreads: each costs a stack, and more files that change while they are read slowly are
// rare. One thread never takes a task that may block, so that attributes are invalidated whatever else blocks. All
// threads sleep without a timeout while nothing is pending.
//
// A task that runs out of memory is repeated until there is enough: without it a program would read old bytes.
//
// Thread safety: all members; post() before start() and after stop() is ignored. Ownership: owns the pending tasks;
// stop() discards them and waits for those that run. Errors: none.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "codec/base/mutex.h"

namespace cframefs::fs {

class Notifier {
 public:
  static constexpr unsigned kMaxThreads = 16;
  static constexpr std::chrono::milliseconds kStuck{5};

  enum class Lane : std::uint8_t {
    attributes,  // waits for no request
    names,       // blocks on requests about a directory
    changes,     // examines a change by another program; blocks on changes by the mount itself
    pages,       // all pages but those of reads in progress
    rest,        // pages of reads that were in progress, after they are answered
    ranges,      // the range of a write, after it is answered
  };
  using Task = std::function<void()>;

  Notifier() = default;
  ~Notifier() { stop(); }
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  void start();
  void stop();
  /// Adds a task to the queue of `lane` and the file or directory `id`. Does nothing if a task of the same name `what`
  /// is pending in that queue. Throws std::bad_alloc without memory; the task is not posted then.
  void post(Lane lane, std::uint64_t id, std::string what, Task task);
  /// Returns whether a task is pending or running in the queue.
  bool is_busy(Lane lane, std::uint64_t id);
  /// Waits until the tasks that are in the queue now are done. Returns false if they are not after `patience`.
  bool wait(Lane lane, std::uint64_t id, std::chrono::milliseconds patience);

 private:
  struct Key {
    Lane lane = Lane::attributes;
    std::uint64_t id = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 in the generated code for a null pointer
    auto operator<=>(const Key&) const = default;
  };
  struct Item {
    std::string what;
    Task task;
  };
  struct Queue {
    std::deque<Item> items;  // pending
    std::uint64_t posted = 0;
    std::uint64_t done = 0;
    bool runs = false;
  };
  static bool may_wait(Lane lane) { return lane != Lane::attributes; }

  void run();
  /// Returns whether a task is pending that another thread may take.
  bool has_work() const REQUIRES(mutex_);
  /// Waits for up to kStuck. Returns true if no task has returned: the caller then takes the next task itself.
  bool are_others_stuck() REQUIRES(mutex_);
  void do_next() REQUIRES(mutex_);
  void make_ready(const Key& key) REQUIRES(mutex_);
  /// Wakes an idle thread, or starts one, to look for pending tasks.
  void call_one() REQUIRES(mutex_);

  codec::Mutex mutex_;
  codec::CondVar called_;                           // wakes an idle thread
  codec::CondVar watches_;                          // wakes the thread that watches
  codec::CondVar returned_;                         // a task is done, for wait()
  std::map<Key, Queue> queues_ GUARDED_BY(mutex_);  // those with a pending or running task
  std::deque<Key> ready_ GUARDED_BY(mutex_);        // queues with a pending and no running task, which may block
  std::deque<Key> prompt_ GUARDED_BY(mutex_);       // the same, which never blocks
  std::list<bool> stuck_ GUARDED_BY(mutex_);        // for each running task, whether it is stuck
  unsigned busy_ GUARDED_BY(mutex_) = 0;            // running tasks that are not stuck
  unsigned waiting_ GUARDED_BY(mutex_) = 0;         // running tasks that may block
  unsigned idle_ GUARDED_BY(mutex_) = 0;            // idle threads
  std::uint64_t returns_ GUARDED_BY(mutex_) = 0;    // tasks that have returned
  bool watched_ GUARDED_BY(mutex_) = false;         // a thread watches
  bool running_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
