// Requests that a function answers, without a network. Counts them, and can hold the answers back.
//
// Thread safety: internally synchronised; the function is called by one thread at a time. Errors: those of the
// function.
#pragma once

#include <algorithm>
#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "codec/base/mutex.h"
#include "frame/remote/http/requests.h"

namespace cframefs::test {

class FakeRequests final : public frame::Requests {
 public:
  using Answer = codec::Result<frame::HttpAnswer>;
  using Answering = std::function<Answer(const frame::HttpRequest&)>;

  explicit FakeRequests(Answering answering) : answering_(std::move(answering)) {}

  std::future<Answer> start(frame::HttpRequest request) override {
    const codec::MutexLock lock(mutex_);
    requests_.push_back(request);
    Waiting waiting{std::move(request), {}};
    std::future<Answer> answer = waiting.answer.get_future();
    if (is_holding_) {
      waiting_.push_back(std::move(waiting));
      most_in_flight_ = std::max(most_in_flight_, waiting_.size());
    } else {
      waiting.answer.set_value(answering_(waiting.request));
    }
    return answer;
  }

  /// Holds the answers to later requests back until release().
  void hold() {
    const codec::MutexLock lock(mutex_);
    is_holding_ = true;
  }
  /// Answers what was held back, in order, and later requests at once.
  void release() {
    const codec::MutexLock lock(mutex_);
    is_holding_ = false;
    for (Waiting& waiting : waiting_)
      waiting.answer.set_value(answering_(waiting.request));
    waiting_.clear();
  }

  std::size_t count() const {
    const codec::MutexLock lock(mutex_);
    return requests_.size();
  }
  /// Returns the number of requests that are held back.
  std::size_t in_flight() const {
    const codec::MutexLock lock(mutex_);
    return waiting_.size();
  }
  std::size_t most_in_flight() const {
    const codec::MutexLock lock(mutex_);
    return most_in_flight_;
  }
  std::vector<frame::HttpRequest> requests() const {
    const codec::MutexLock lock(mutex_);
    return requests_;
  }

 private:
  struct Waiting {
    frame::HttpRequest request;
    std::promise<Answer> answer;
  };

  const Answering answering_;
  mutable codec::Mutex mutex_;
  bool is_holding_ GUARDED_BY(mutex_) = false;
  std::vector<frame::HttpRequest> requests_ GUARDED_BY(mutex_);
  std::vector<Waiting> waiting_ GUARDED_BY(mutex_);
  std::size_t most_in_flight_ GUARDED_BY(mutex_) = 0;
};

/// Returns an answer of status 200.
inline frame::HttpAnswer answer_of(const std::string& body, std::vector<frame::HttpHeader> headers = {}) {
  frame::HttpAnswer answer;
  answer.status = 200;
  answer.headers = std::move(headers);
  answer.body.assign(body.begin(), body.end());
  return answer;
}

}  // namespace cframefs::test
