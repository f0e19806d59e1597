// A request that its caller waits for.
//
// Thread safety: a function. It must not be called from a thread of the transport, which it would block. Errors: those
// of HttpTransport.
#pragma once

#include <chrono>

#include "frame/remote/http/http.h"

namespace cframefs::frame {

/// Sends the request once and waits for its answer, for as long as the transport waits.
Result<HttpAnswer> send_and_wait(HttpTransport& transport, HttpRequest request, std::chrono::milliseconds patience);

}  // namespace cframefs::frame
