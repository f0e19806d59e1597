// Attempts at requests, each sent a second time, on another connection, if the server does not begin to answer.
//
// A connection may be dead, or one of a service's many servers may hang. Of both requests, the first valid answer
// counts, and the other request is ended. A failure that may pass by itself, as a status of is_retried(), counts only
// if the other request has ended, too. GET and HEAD only; HedgePolicy decides when and how often.
//
// A thread watches the time. It starts with the first attempt: a daemon forks before.
//
// Thread safety: internally synchronised. Lock order: none is held while the transport or `done` is called. Ownership:
// borrows the transport. Errors: those of HttpTransport.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "frame/remote/http/http.h"

namespace cframefs::frame {

class HedgedAttempts {
 public:
  static constexpr std::size_t kMostInFlight = 64;  // with more, no request is sent a second time

  /// `least`: as HedgePolicy.
  HedgedAttempts(HttpTransport& transport, std::chrono::milliseconds least);
  /// As stop() and join().
  ~HedgedAttempts();
  HedgedAttempts(const HedgedAttempts&) = delete;
  HedgedAttempts& operator=(const HedgedAttempts&) = delete;

  /// As HttpTransport::start().
  void start(HttpRequest request, HttpTransport::Time until, HttpTransport::Done done);
  /// Sends no request a second time any more. Does not end attempts.
  void stop();
  /// Waits for the thread, after stop(): then the transport is used only by callers of start().
  void join();
  /// Returns how many requests were sent a second time.
  std::uint64_t hedges() const;

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with attempts under way
};

}  // namespace cframefs::frame
