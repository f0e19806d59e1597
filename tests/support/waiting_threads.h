// Threads of a test that must all have come to a wait before the test goes on, however busy the machine is.
//
// Thread safety: one thread per object. Ownership: joins on destruction; what a thread does must end by then.
#pragma once

#include <atomic>
#include <chrono>
#include <fstream>
#include <list>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

namespace cframefs::test {

class WaitingThreads {
 public:
  WaitingThreads() = default;
  ~WaitingThreads() { join(); }
  WaitingThreads(const WaitingThreads&) = delete;
  WaitingThreads& operator=(const WaitingThreads&) = delete;

  /// Starts a thread.
  template <class Work>
  void start(Work work) {
    Started& started = threads_.emplace_back();
    started.thread = std::thread([&started, work = std::move(work)] {
      started.id = ::gettid();
      work();
    });
  }
  /// Waits until all threads sleep at the same time: then each waits for something that none of them does. The test
  /// fails if they do not within 30 s.
  void await_sleep() const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!all_sleep() || !all_sleep()) {
      if (std::chrono::steady_clock::now() > until) {
        ADD_FAILURE() << "a thread does not wait";
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  void join() {
    for (Started& started : threads_)
      started.thread.join();
    threads_.clear();
  }

 private:
  struct Started {
    std::atomic<pid_t> id{0};
    std::thread thread;
  };

  bool all_sleep() const {
    for (const Started& started : threads_) {
      if (started.id == 0) return false;
      // The third field, behind the name in parentheses, is the state: proc(5).
      std::ifstream file("/proc/self/task/" + std::to_string(started.id) + "/stat");
      std::string text;
      std::getline(file, text);
      const std::size_t name_end = text.rfind(") ");
      if (name_end == std::string::npos || text.at(name_end + 2) != 'S') return false;
    }
    return true;
  }

  std::list<Started> threads_;
};

}  // namespace cframefs::test
