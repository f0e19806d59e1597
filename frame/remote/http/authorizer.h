// What proves to a server that a request may be answered.
//
// Thread safety: internally synchronised. Errors: io EACCES with the reason if there are no credentials; io if their
// source fails. No message holds a secret.
#pragma once

#include "frame/remote/http/http.h"

namespace cframefs::frame {

class Authorizer {
 public:
  virtual ~Authorizer() = default;
  /// Adds headers to a request, which must be complete otherwise. May send requests of its own, so that the caller's
  /// thread waits.
  virtual Result<void> authorize(HttpRequest& request) = 0;
  /// Returns true if a server that refuses with `answer` (401, or 403, or 400 ExpiredToken) may accept the request once
  /// it is authorized again. Drops expired credentials.
  virtual bool may_renew(const HttpAnswer& answer) = 0;
};

/// Returns an authorizer that adds nothing.
Authorizer& no_authorizer();

}  // namespace cframefs::frame
