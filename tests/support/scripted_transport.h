// A transport that answers requests from a script, without a network.
//
//   ScriptedTransport transport;
//   transport.on("GET", "http://host/path", 200, "body");  // several: one after the other, the last one for good
//   transport.fail("GET", "http://host/path", ETIMEDOUT);
//   transport.hold();  ... work in other threads; transport.wait_until_held(); transport.release();
//   transport.requests()  // all that were started
//
// A request that is not in the script fails with EHOSTUNREACH, as if no host were there. Answers come from threads of
// the transport. Thread safety: all members may be called at once.
#pragma once

#include <cerrno>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "codec/base/mutex.h"
#include "frame/remote/http/http.h"

namespace cframefs::test {

class ScriptedTransport final : public frame::HttpTransport {
 public:
  ScriptedTransport() = default;
  ScriptedTransport(const ScriptedTransport&) = delete;
  ScriptedTransport& operator=(const ScriptedTransport&) = delete;
  ~ScriptedTransport() override {
    release();
    for (std::thread& thread : taken_threads())
      thread.join();
  }

  void on(const std::string& method, const std::string& url, int status, const std::string& body = {}) {
    frame::HttpAnswer answer;
    answer.status = status;
    answer.body.assign(body.begin(), body.end());
    add(method, url, std::move(answer));
  }
  void fail(const std::string& method, const std::string& url, int sys) {
    add(method, url, codec::io_error(sys, "connect"));
  }

  void start(frame::HttpRequest request, Time, Done done) override {
    codec::MutexLock lock(mutex_);
    requests_.push_back(request);
    auto answer = is_stopped_ ? codec::io_error(ECANCELED, "request") : next_answer(request);
    threads_.emplace_back([this, answer = std::move(answer), done = std::move(done)]() mutable {
      wait_while_held();
      done(std::move(answer));
    });
  }
  void stop() override {
    codec::MutexLock lock(mutex_);
    is_stopped_ = true;
  }

  std::vector<frame::HttpRequest> requests() const {
    codec::MutexLock lock(mutex_);
    return requests_;
  }
  /// Holds all answers from now.
  void hold() {
    codec::MutexLock lock(mutex_);
    is_holding_ = true;
  }
  void wait_until_held() {
    codec::MutexLock lock(mutex_);
    while (held_ == 0)
      changed_.wait(mutex_);
  }
  void release() {
    codec::MutexLock lock(mutex_);
    is_holding_ = false;
    changed_.notify_all();
  }

 private:
  using Answer = codec::Result<frame::HttpAnswer>;
  using Key = std::pair<std::string, std::string>;  // method and URL

  void add(const std::string& method, const std::string& url, Answer answer) {
    codec::MutexLock lock(mutex_);
    script_[{method, url}].push_back(std::move(answer));
  }
  Answer next_answer(const frame::HttpRequest& request) REQUIRES(mutex_) {
    const auto found = script_.find({request.method, request.url});
    if (found == script_.end()) return codec::io_error(EHOSTUNREACH, "connect");
    Answer answer = found->second.front();
    if (found->second.size() > 1) found->second.erase(found->second.begin());
    return answer;
  }
  void wait_while_held() {
    codec::MutexLock lock(mutex_);
    if (is_holding_) {
      ++held_;
      changed_.notify_all();
    }
    while (is_holding_)
      changed_.wait(mutex_);
  }
  std::vector<std::thread> taken_threads() {
    codec::MutexLock lock(mutex_);
    return std::exchange(threads_, {});
  }

  mutable codec::Mutex mutex_;
  codec::CondVar changed_;
  std::map<Key, std::vector<Answer>> script_ GUARDED_BY(mutex_);
  std::vector<frame::HttpRequest> requests_ GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
  bool is_stopped_ GUARDED_BY(mutex_) = false;
  bool is_holding_ GUARDED_BY(mutex_) = false;
  int held_ GUARDED_BY(mutex_) = 0;
};

}  // namespace cframefs::test
