// Threads that wait in order of arrival for something that only the first of them may take. Each has a condition
// variable of its own, so that a change wakes one thread, and not all of them to find out which is the first.
//
// Thread safety: the user's mutex protects a line and its places. Ownership: a place belongs to the waiting thread.
// Errors: none; takes no memory.
#pragma once

#include <chrono>

#include <boost/intrusive/list.hpp>

#include "codec/base/mutex.h"

namespace cframefs::codec {

class WaitingLine {
 public:
  /// A thread's place: last when it is made; given up when it is destroyed. The mutex is held for both.
  class Place : public boost::intrusive::list_base_hook<> {
   public:
    explicit Place(WaitingLine& line) : line_(line) { line_.places_.push_back(*this); }
    ~Place() { line_.places_.erase(line_.places_.iterator_to(*this)); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    bool is_first() const { return &line_.places_.front() == this; }
    /// Waits until call_first() is called while the thread is the first. May return earlier, so callers loop.
    void wait(Mutex& mutex) REQUIRES(mutex) { called_.wait(mutex); }
    /// Waits as wait() does, but at most for `patience`.
    void wait_for(Mutex& mutex, std::chrono::milliseconds patience) REQUIRES(mutex) {
      called_.wait_for(mutex, patience);
    }

   private:
    friend class WaitingLine;
    WaitingLine& line_;
    CondVar called_;
  };

  bool is_empty() const { return places_.empty(); }
  /// Wakes the first thread. Called whenever it may be able to go on: after a change, and after another thread has left
  /// the line.
  void call_first() {
    if (!places_.empty()) places_.front().called_.notify_one();
  }

 private:
  boost::intrusive::list<Place, boost::intrusive::constant_time_size<false>> places_;
};

}  // namespace cframefs::codec
