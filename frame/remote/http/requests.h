// The interface by which readers of objects and listings ask a server. Tests replace it.
//
// Thread safety: internally synchronised. Errors: those of failure_of() (http_status.h) for an answer of 400 and above,
// after the retries that its status allows; those of HttpTransport.
#pragma once

#include <future>

#include "frame/io/server_counts.h"
#include "frame/remote/http/http.h"

namespace cframefs::frame {

class Requests {
 public:
  virtual ~Requests() = default;
  /// Starts a request. The answer has a status below 400: 2xx, or 304.
  virtual std::future<Result<HttpAnswer>> start(HttpRequest request) = 0;
  /// Returns what was sent so far.
  virtual ServerCounts counts() const { return {}; }
  /// As start(), and waits.
  Result<HttpAnswer> send(HttpRequest request) { return start(std::move(request)).get(); }
};

}  // namespace cframefs::frame
