// Requests to servers by libcurl: one thread with an event loop carries all of them.
//
// Connections are kept and shared, HTTP/2 is used where a server has it, and at most 64 connections are open. TLS is
// always verified. Proxies: the variables http_proxy, https_proxy, all_proxy and no_proxy, as curl reads them.
//
// The thread starts with the first request, and a forked child has no copy of it: a daemon forks before its first
// request, or makes another CurlTransport in the child.
//
// Thread safety: internally synchronised; the destructor runs in no thread of the transport. Ownership: owns its thread
// and connections. Errors: those of HttpTransport and CurlExchange; io EAGAIN if the thread cannot be started.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <curl/curl.h>

#include "codec/base/mutex.h"
#include "frame/remote/http/curl_exchange.h"
#include "frame/remote/http/http.h"
#include "frame/remote/http/trust_store.h"

namespace cframefs::frame {

class CurlTransport final : public HttpTransport {
 public:
  explicit CurlTransport(CurlOptions options = {});
  /// Ends all requests, as stop() does, and waits until their `done` have returned.
  ~CurlTransport() override;
  CurlTransport(const CurlTransport&) = delete;
  CurlTransport& operator=(const CurlTransport&) = delete;

  /// After stop(), or if the thread cannot be started, `done` is called by the caller's thread.
  void start(HttpRequest request, Time until, Done done) override;
  /// Neither waits: the thread calls each `done` soon.
  void end_given_up() override;
  /// Runs `enter` in the thread, which starts if it does not run, and returns what that returns. `ports`: that the
  /// thread may connect to from then on; empty: all.
  Result<void> confine(std::vector<std::uint16_t> ports, std::function<Result<void>()> enter);
  /// Returns the ports that servers have redirected to so far.
  std::vector<std::uint16_t> redirect_ports();
  void stop() override;

 private:
  using Running = std::multimap<Time, std::unique_ptr<CurlExchange>>;  // by deadline

  Result<void> start_thread() REQUIRES(mutex_);
  void wake();
  void run();
  bool take_arrivals();
  void add(std::unique_ptr<CurlExchange> exchange);
  void note_redirect(std::uint16_t port);
  void finish_ended();
  void finish_late();
  void finish_given_up();
  void finish(Running::iterator exchange, codec::Failure failure);
  Running::iterator find(const CurlExchange* exchange);
  int patience() const;

  CurlOptions options_;  // ports: used by the thread alone

  codec::Mutex mutex_;
  std::vector<std::unique_ptr<CurlExchange>> arrivals_ GUARDED_BY(mutex_);
  bool is_stopped_ GUARDED_BY(mutex_) = false;
  std::optional<std::packaged_task<Result<void>()>> task_ GUARDED_BY(mutex_);  // of confine()
  std::vector<std::uint16_t> redirect_ports_ GUARDED_BY(mutex_);

  std::atomic<bool> has_given_up_{false};  // finish_given_up() has something to do

  // Set before the thread starts. Used by it alone, except to wake it.
  std::unique_ptr<CURLSH, CURLSHcode (*)(CURLSH*)> sessions_;
  OpenSockets sockets_;  // outlives multi_
  std::unique_ptr<CURLM, CURLMcode (*)(CURLM*)> multi_;
  std::unique_ptr<TrustStore> trust_;  // null if libcurl reads the certificates itself
  Running running_;

  std::thread thread_;
};

}  // namespace cframefs::frame
