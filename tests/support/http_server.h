// A small HTTP/1.1 server on 127.0.0.1 for unit tests, which can misbehave in the ways of HttpServerAnswer.
//
//   HttpServer server([](const HttpServerRequest& request) { return HttpServerAnswer{.body = "abc"}; });
//   ... send requests to server.url("/x") ...
//
// Connections are kept alive. Each has a thread, which calls the handler; several may do so at once. A TLS
// handshake is answered by closing the connection.
//
// Thread safety: all members. Ownership: the destructor closes all connections and waits for handlers to return.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cframefs::test {

using HttpServerHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpServerRequest {
  std::string method;
  std::string target;  // path and query as sent
  HttpServerHeaders headers;
  std::string body;
  int connection = 0;  // number of the connection, from 0

  /// Returns the value of a header, compared without case; empty if there is none.
  std::string header(const std::string& name) const;
};

struct HttpServerAnswer {
  int status = 200;
  HttpServerHeaders headers = {};
  std::string body = {};
  std::optional<std::string> stated_length = std::nullopt;  // the value of Content-Length, if it is to be another one
  bool is_chunked = false;                                  // without Content-Length
  std::string trailers = {};                                // "Name: value\r\n", after the chunks

  bool is_apart = false;  // head and body are sent one after the other, without TCP_NODELAY

  // Misbehaviour; at most one.
  std::optional<std::size_t> cut_after = std::nullopt;    // closes the connection after this many bytes of the body
  std::optional<std::size_t> stall_after = std::nullopt;  // sends nothing more, and keeps the connection
  bool stalls = false;                                    // sends nothing at all, and keeps the connection
  bool closes = false;                                    // closes the connection without an answer
  std::string raw = {};                                   // sent instead of an answer; then the connection is closed
};

/// Returns an answer that redirects to `location`.
HttpServerAnswer redirect_to(const std::string& location, int status = 302);

class HttpServer {
 public:
  using Handler = std::function<HttpServerAnswer(const HttpServerRequest&)>;

  explicit HttpServer(Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const { return port_; }
  /// Returns "http://127.0.0.1:PORT" and the path.
  std::string url(const std::string& path) const;
  /// All requests that have come, in this order.
  std::vector<HttpServerRequest> requests() const;
  int connections() const;

 private:
  class Connection;

  void accept_all();
  void serve(int socket, int number);
  static bool answer(Connection& connection, const HttpServerAnswer& answer, bool is_head);

  const Handler handler_;
  const int listener_;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  bool is_stopped_ = false;
  std::vector<int> sockets_;  // by number of the connection; closed in the destructor
  std::vector<std::thread> threads_;
  std::vector<HttpServerRequest> requests_;
  std::thread acceptor_;
};

}  // namespace cframefs::test
