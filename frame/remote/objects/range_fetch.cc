#include "frame/remote/objects/range_fetch.h"

#include <cerrno>
#include <chrono>
#include <exception>
#include <utility>

namespace cframefs::frame {

RangeFetch::RangeFetch(std::vector<std::uint8_t> bytes)
    : outcome_(codec::ByteView()), own_(std::move(bytes)), is_kept_(true) {
  outcome_ = codec::ByteView(own_);
}

void RangeFetch::start(std::future<Result<HttpAnswer>> answer, Check check) {
  codec::MutexLock lock(mutex_);
  answer_ = answer.share();
  check_ = std::move(check);
  started_.notify_all();
}

void RangeFetch::fail_unless_started() {
  codec::MutexLock lock(mutex_);
  if (answer_.valid() || outcome_) return;
  outcome_ = codec::io_error(ECANCELED, "fetch a range");
  started_.notify_all();
}

bool RangeFetch::has_arrived() const {
  codec::MutexLock lock(mutex_);
  return outcome_ || (answer_.valid() && answer_.wait_for(std::chrono::seconds(0)) != std::future_status::timeout);
}

Result<codec::ByteView> RangeFetch::wait() {
  std::shared_future<Result<HttpAnswer>> answer;
  {
    codec::MutexLock lock(mutex_);
    while (!answer_.valid() && !outcome_)
      started_.wait(mutex_);
    if (outcome_) return *outcome_;
    answer = answer_;
  }
  const Result<HttpAnswer>* arrived = nullptr;
  try {
    arrived = &answer.get();
  } catch (const std::exception&) {
    // The transport has dropped its promise.
  }
  codec::MutexLock lock(mutex_);
  if (!outcome_) {
    outcome_ = arrived != nullptr ? check_(*arrived) : codec::io_error(ECANCELED, "fetch a range");
    check_ = nullptr;
  }
  return *outcome_;
}

}  // namespace cframefs::frame
