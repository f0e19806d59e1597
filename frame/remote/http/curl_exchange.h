// One request on libcurl, with the redirects that it meets, and what has come of its answer.
//
// Each request and each redirect has an easy handle of its own. A redirect to another server (scheme, host or port)
// carries only Range, If-... and Accept... of the headers: nothing that proves who asks.
//
// Thread safety: one thread at a time; the constructor may run in another. Ownership: owns request, handle and `done`.
// Errors: those of HttpTransport; io EPROTO if TLS fails or the answer is no HTTP, io EIO if the answer ends before its
// end; unsupported if the answer is compressed, too large, or redirects in circles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <curl/curl.h>

#include "frame/remote/http/http.h"
#include "frame/remote/http/open_sockets.h"
#include "frame/remote/http/trust_store.h"

namespace cframefs::frame {

struct CurlOptions {
  std::string certificates;             // PEM, that vouch for servers; empty: the system's
  std::chrono::seconds slow_after{10};  // a transfer below 1 KB/s for this long ends (GET and HEAD)
  std::vector<std::uint16_t> ports{};   // that the sandbox permits; empty: all
};

class CurlExchange {
 public:
  CurlExchange(HttpRequest request, HttpTransport::Time until, HttpTransport::Done done);
  CurlExchange(const CurlExchange&) = delete;
  CurlExchange& operator=(const CurlExchange&) = delete;

  HttpTransport::Time until() const { return until_; }
  bool is_given_up() const;
  /// Returns the port of the request, or of the redirect that it has met; 0 if the address has none.
  std::uint16_t port() const;
  /// Returns a new handle for the request, or for the redirect that it has met. The handle belongs to the exchange,
  /// which is its CURLOPT_PRIVATE. `trust`: null if libcurl is to read the certificates itself. `options`, `sockets`
  /// and `trust` live as long as the exchange.
  Result<CURL*> prepare(const CurlOptions& options, CURLSH* sessions, OpenSockets& sockets, TrustStore* trust);
  CURL* handle() const { return handle_.get(); }
  /// Takes how the transfer has ended. Returns false if the answer redirects: prepare() makes the next handle.
  Result<bool> end(CURLcode code);
  /// Returns the error of a request whose time is over.
  codec::Failure late() const;
  /// Returns an error of this request: "GET https://host/path: ERRNO (why)".
  codec::Failure failure(int sys, const std::string& why) const;
  /// Calls `done`, once: with the answer, after end() has returned true, or with the failure.
  void report();
  void report(codec::Failure failure);

 private:
  struct CloseHandle {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  };
  struct FreeList {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };

  static std::size_t take_header(const char* at, std::size_t size, std::size_t count, void* exchange) noexcept;
  static std::size_t take_body(const char* at, std::size_t size, std::size_t count, void* exchange) noexcept;
  static CURLcode give_certificates(CURL* handle, void* context, void* exchange) noexcept;
  bool add_header_line(std::string_view line);
  bool add_body(std::string_view bytes);
  Result<void> examine_head();
  Result<std::optional<std::uint64_t>> stated_length() const;
  Result<void> check_length() const;
  bool is_followed() const;
  Result<bool> follow(const std::string& location);
  codec::Failure transfer_failure(CURLcode code) const;
  Result<void> set_headers();
  bool set_request();
  bool set_limits(const CurlOptions& options);
  bool set_certificates(const CurlOptions& options);
  bool refuse(codec::Failure failure);
  std::string doing() const;
  std::string_view too_much() const;
  std::string received() const;
  bool has_body() const;
  bool is_port_refused(CURLcode code) const;

  HttpRequest request_;  // after a redirect: the next one
  const std::string url_;
  const HttpTransport::Time until_;
  HttpTransport::Done done_;
  char error_[CURL_ERROR_SIZE] = {};
  std::unique_ptr<curl_slist, FreeList> headers_;
  std::unique_ptr<CURL, CloseHandle> handle_;

  const CurlOptions* options_ = nullptr;  // of the last prepare()
  OpenSockets* sockets_ = nullptr;        // as options_
  std::uint64_t round_of_head_ = 0;       // of sockets_; 0: no body is to follow, or it has begun
  TrustStore* trust_ = nullptr;           // the same
  HttpAnswer answer_;
  unsigned redirects_ = 0;
  std::size_t header_bytes_ = 0;         // of all answers
  std::uint64_t body_bytes_ = 0;         // received, kept or not
  std::optional<std::uint64_t> length_;  // stated by the answer
  bool is_head_complete_ = false;
  bool is_enough_ = false;  // the rest of the body is not wanted
  std::optional<codec::Error> refusal_;
};

}  // namespace cframefs::frame
