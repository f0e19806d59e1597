// Requests that are authorized, sent, and sent again while that may help and the time allows.
//
// Asked again: requests without a connection, whose time is over or whose answer is cut short; answers with a status of
// is_retried(); once, after credentials were renewed, answers that refuse them. Between attempts lies a random pause
// whose upper limit doubles, or the time for which the server asks (Retry-After). A failed TLS handshake is tried three
// times: its cause is hardly ever one that goes away. PUT and POST are asked again, too: callers make them idempotent.
// If HttpRequest::more_time lets an attempt take longer, no more than the usual time counts as spent.
// An attempt whose answer does not begin is sent a second time (HedgedAttempts).
//
// The first attempt is authorized by the caller of start(), later ones by a thread, so that an authorizer that waits
// holds up neither the transport nor pauses and deadlines, which have a thread, too. Both threads start with the first
// request: a daemon forks before. At most 64 requests are under way; others queue, and their time runs.
//
// Thread safety: internally synchronised. Ownership: borrows transport and authorizer. If the authorizer waits for
// requests of its own, these must have been ended before the destructor runs, which waits for the authorizer.
// Errors: those of Requests; io ECANCELED after stop(), ETIMEDOUT if the time is over before the first attempt ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "frame/remote/http/authorizer.h"
#include "frame/remote/http/requests.h"

namespace cframefs::frame {

struct RequestPatience {
  std::chrono::milliseconds total{60'000};    // from start() to the answer
  std::chrono::milliseconds attempt{20'000};  // of one attempt
  std::chrono::milliseconds first_pause{100};
  std::chrono::milliseconds longest_pause{5'000};
  std::chrono::milliseconds first_byte{
      500};  // then the request is sent a second time; 4 times the usual, if that is more
};

class RemoteRequests final : public Requests {
 public:
  static constexpr std::size_t kMostInFlight = 64;

  RemoteRequests(HttpTransport& transport, Authorizer& authorizer, const RequestPatience& patience = {});
  /// As stop(). Attempts that are under way end later, without effect.
  ~RemoteRequests() override;
  RemoteRequests(const RemoteRequests&) = delete;
  RemoteRequests& operator=(const RemoteRequests&) = delete;

  std::future<Result<HttpAnswer>> start(HttpRequest request) override;
  /// Answers all requests, and each later one, with ECANCELED at once. Does not stop the transport.
  void stop();
  ServerCounts counts() const override;
  /// Returns whether no request waits for its answer.
  bool is_idle() const;

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with attempts under way
};

}  // namespace cframefs::frame
