// Makes attempts one at a time, and gives the outcome of one to all callers that waited for it.
//
// A request to a server may take a minute until it fails: threads that want the same must wait for one request
// together, not for one each in turn.
//
// Thread safety: internally synchronised; an attempt runs in the thread of its caller, without a lock.
// Ownership: values; keeps an outcome only while callers wait for it. Errors: those of the attempts.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "codec/base/error.h"
#include "codec/base/mutex.h"

namespace cframefs::frame {

template <class T>
class SharedAttempt {
 public:
  /// `running`: the outcome of an attempt that runs already serves the caller. `later`: it does not, as it may have
  /// seen an older state; only an attempt that begins after the call serves.
  enum class Serves : std::uint8_t { running, later };

  /// Calls `attempt` and returns its outcome, or returns that of another caller's attempt.
  template <class Attempt>
  codec::Result<T> run(Serves serves, Attempt attempt) EXCLUDES(mutex_) {
    if (auto shared = wait(serves)) return std::move(*shared);
    codec::Result<T> outcome = attempt();
    const codec::MutexLock lock(mutex_);
    is_running_ = false;
    finished_ = begun_;
    if (waiting_ > 0) outcome_ = outcome;
    finish_.notify_all();
    return outcome;
  }

 private:
  /// Returns the outcome that serves; nullopt if the caller has to attempt.
  std::optional<codec::Result<T>> wait(Serves serves) EXCLUDES(mutex_) {
    const codec::MutexLock lock(mutex_);
    const std::uint64_t first = is_running_ && serves == Serves::running ? begun_ : begun_ + 1;
    while (is_running_) {
      ++waiting_;
      finish_.wait(mutex_);
      --waiting_;
      std::optional<codec::Result<T>> shared;
      if (outcome_ && finished_ >= first) shared = outcome_;
      if (waiting_ == 0) outcome_.reset();
      if (shared) return shared;
    }
    is_running_ = true;
    ++begun_;
    return std::nullopt;
  }

  codec::Mutex mutex_;
  codec::CondVar finish_;
  bool is_running_ GUARDED_BY(mutex_) = false;
  std::uint64_t begun_ GUARDED_BY(mutex_) = 0;     // number of the last attempt that began
  std::uint64_t finished_ GUARDED_BY(mutex_) = 0;  // number of the attempt that outcome_ is of
  std::size_t waiting_ GUARDED_BY(mutex_) = 0;
  std::optional<codec::Result<T>> outcome_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::frame
