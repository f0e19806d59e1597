// Requests to an HTTP server and its answers, and the interface of what carries them.
//
// Thread safety: HttpTransport may be used by all threads; the rest are values. Ownership: values.
// Errors: io with the errno of the network (EHOSTUNREACH: no connection; ETIMEDOUT; ECANCELED after stop());
// unsupported for an answer that no reader may use. The statuses of answers: http_status.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"

namespace cframefs::frame {

class HttpProgress;
using codec::Result;

struct HttpHeader {
  std::string name;
  std::string value;
};

/// The body of a request: copies share it, because each attempt has a copy of its request.
class RequestBody {
 public:
  RequestBody() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a text is a body
  RequestBody(std::string text) : text_(std::make_shared<const std::string>(std::move(text))) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  RequestBody(const char* text) : RequestBody(std::string(text)) {}

  std::string_view view() const { return text_ ? std::string_view(*text_) : std::string_view(); }
  bool operator==(std::string_view text) const { return view() == text; }

 private:
  std::shared_ptr<const std::string> text_;
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;  // absolute, percent-encoded
  std::vector<HttpHeader> headers;
  RequestBody body;
  std::uint64_t most_body = 0;    // bytes; a longer body of a 2xx answer ends the request: unsupported
  bool follows_redirects = true;  // at most 5, http and https only
  // More time for each attempt than others get: for a long body, or for what takes a server long.
  std::chrono::milliseconds more_time{0};
  bool on_new_connection = false;
  std::shared_ptr<HttpProgress> progress = nullptr;  // of a starter that looks
};

struct HttpAnswer {
  int status = 0;
  std::vector<HttpHeader> headers;  // of the last answer, redirects not counted; names as the server spells them
  std::vector<std::uint8_t> body;   // of an answer that is not 2xx: its first 64 KiB

  /// Returns the value of a header, compared without case; the last one if there are several. Empty if there is none.
  std::string_view header(std::string_view name) const;
};

class HttpTransport {
 public:
  using Done = std::function<void(Result<HttpAnswer>)>;
  using Time = std::chrono::steady_clock::time_point;

  virtual ~HttpTransport() = default;
  /// Sends one request, once. Calls `done` exactly once, from a thread of the transport, which `done` must not block;
  /// also if `until` passes (ETIMEDOUT) or the transport is stopped (ECANCELED).
  virtual void start(HttpRequest request, Time until, Done done) = 0;
  /// Ends the requests whose progress is given up, with ECANCELED. A transport may let them go on instead.
  virtual void end_given_up() {}
  /// Ends all requests, and each later one at once, with ECANCELED.
  virtual void stop() = 0;
};

}  // namespace cframefs::frame
