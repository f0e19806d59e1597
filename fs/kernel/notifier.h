// Tells the kernel what to forget, from threads of its own: the kernel may keep such a call waiting until a request is
// answered, and a call that waits because of one file must hold up no other.
//
//             post()                a thread takes it             it returns
//   (none) ─────────▶ pending ───────────────────────▶ running ─────────────▶ (none), or pending: more was posted
//                      │   ▲                             │
//              post()  └───┘ what is pending already     │ kStuck
//                            is not posted twice         ▼
//                                                      stuck ── it returns ──▶ the same
//
// There is one queue for each file and lane: what is posted to one queue runs in order, one after the other; queues
// take turns. Lanes are what may wait for different things in the kernel, so that, of one file too, attributes are told
// while pages are waited for.
//
// One thread does all, as long as what it calls returns. While one is at work and more is pending, another one watches:
// if nothing has returned for kStuck, it takes the next task itself, and there is a further one that watches then. So a
// thread is started only when it is needed; there are as many as files were at once that the kernel made us wait for,
// and kMaxThreads at most: each costs a stack, and more files that change while they are read slowly are rare. One of
// them never takes what may wait: attributes are told whatever else waits. All sleep without a timeout while nothing is
// pending.
//
// A task that runs out of memory is done once more, until there is enough: what is left out would be read as old bytes.
//
// Thread safety: all members; post() before start() and after stop() is ignored. Ownership: owns the tasks that are
// pending; stop() drops them and waits for those that run. Errors: none.
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
    attributes,  // nothing that waits
    names,       // waits for requests about a directory
    changes,     // a change behind the mount is looked into; waits for what the mount itself changes
    pages,       // all but those of reads under way
    rest,        // those, once they are answered
    ranges,      // of a write that was answered
  };
  using Task = std::function<void()>;

  Notifier() = default;
  ~Notifier() { stop(); }
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  void start();
  void stop();
  /// `id`: of the file or directory. `what`: a task that is pending in the same queue under the same name does for this
  /// one, too. Without memory it throws std::bad_alloc, and nothing is posted.
  void post(Lane lane, std::uint64_t id, std::string what, Task task);
  /// Whether something is pending or running in the queue.
  bool is_busy(Lane lane, std::uint64_t id);
  /// Until what has been posted to the queue is done. False: it is not, after `patience`.
  bool wait(Lane lane, std::uint64_t id, std::chrono::milliseconds patience);

 private:
  struct Key {
    Lane lane = Lane::attributes;
    std::uint64_t id = 0;
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
  /// Whether something is pending that one more thread may take.
  bool has_work() const REQUIRES(mutex_);
  /// Whether the next task is to be taken although others are at work: none of them has returned for kStuck.
  bool are_others_stuck() REQUIRES(mutex_);
  void do_next() REQUIRES(mutex_);
  void make_ready(const Key& key) REQUIRES(mutex_);
  /// Has a thread that is idle, or a new one, look at what is pending.
  void call_one() REQUIRES(mutex_);

  codec::Mutex mutex_;
  codec::CondVar called_;                           // an idle thread
  codec::CondVar watches_;                          // the one that watches
  codec::CondVar returned_;                         // a task, for wait()
  std::map<Key, Queue> queues_ GUARDED_BY(mutex_);  // with something pending or running
  std::deque<Key> ready_ GUARDED_BY(mutex_);        // with something pending and nothing running; what may wait
  std::deque<Key> prompt_ GUARDED_BY(mutex_);       // the same; what never waits
  std::list<bool> stuck_ GUARDED_BY(mutex_);        // for each task that runs, whether it is
  unsigned busy_ GUARDED_BY(mutex_) = 0;            // tasks that run and are not stuck
  unsigned waiting_ GUARDED_BY(mutex_) = 0;         // tasks that run and may wait
  unsigned idle_ GUARDED_BY(mutex_) = 0;            // threads
  std::uint64_t returns_ GUARDED_BY(mutex_) = 0;
  bool watched_ GUARDED_BY(mutex_) = false;
  bool running_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
