#include "tests/support/http_server.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cframefs::test {

std::string HttpServerRequest::header(const std::string& name) const {
  for (const auto& [key, value] : headers) {
    if (strcasecmp(key.c_str(), name.c_str()) == 0) return value;
  }
  return {};
}

HttpServerAnswer redirect_to(const std::string& location, int status) {
  HttpServerAnswer answer;
  answer.status = status;
  answer.headers = {{"Location", location}};
  return answer;
}

/// A socket that is read by lines and counts of bytes.
class HttpServer::Connection {
 public:
  explicit Connection(int socket) : socket_(socket) {}

  /// Returns a line without its end; nullopt at the end of the connection, or if a TLS handshake begins.
  std::optional<std::string> line() {
    std::size_t end = 0;
    while ((end = received_.find("\r\n")) == std::string::npos) {
      if (!receive() || received_.front() == '\x16') return std::nullopt;
    }
    std::string line = received_.substr(0, end);
    received_.erase(0, end + 2);
    return line;
  }

  std::optional<std::string> bytes(std::size_t count) {
    while (received_.size() < count) {
      if (!receive()) return std::nullopt;
    }
    std::string bytes = received_.substr(0, count);
    received_.erase(0, count);
    return bytes;
  }

  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// Sends two parts as a server does that knows nothing of TCP_NODELAY.
  bool send_apart(std::string_view first, std::string_view second) const {
    constexpr int kOff = 0;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &kOff, sizeof kOff);
    return send(first) && send(second);
  }

  /// Waits until the other side closes the connection, or the server ends.
  void wait() {
    while (receive())
      received_.clear();
  }

 private:
  bool receive() {
    char buffer[65536];
    const ssize_t count = ::recv(socket_, buffer, sizeof buffer, 0);
    if (count <= 0) return false;
    received_.append(buffer, static_cast<std::size_t>(count));
    return true;
  }

  const int socket_;
  std::string received_;
};

HttpServer::HttpServer(Handler handler)
    : handler_(std::move(handler)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  struct sockaddr_in address {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = static_cast<struct sockaddr*>(static_cast<void*>(&address));
  const bool is_ready = listener_ >= 0 && ::bind(listener_, generic, size) == 0 && ::listen(listener_, 128) == 0 &&
                        ::getsockname(listener_, generic, &size) == 0;
  if (!is_ready) std::abort();
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

HttpServer::~HttpServer() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_stopped_ = true;
    for (const int socket : sockets_)
      ::shutdown(socket, SHUT_RDWR);
  }
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (std::thread& thread : threads_)
    thread.join();
  for (const int socket : sockets_)
    ::close(socket);
  ::close(listener_);
}

std::string HttpServer::url(const std::string& path) const {
  return fmt::format("http://127.0.0.1:{}{}", port_, path);
}

std::vector<HttpServerRequest> HttpServer::requests() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return requests_;
}

int HttpServer::connections() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int>(sockets_.size());
}

void HttpServer::accept_all() {
  for (;;) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_stopped_) {
      ::close(socket);
      return;
    }
    const int number = static_cast<int>(sockets_.size());
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket, number] { serve(socket, number); });
  }
}

void HttpServer::serve(int socket, int number) {
  Connection connection(socket);
  for (;;) {
    HttpServerRequest request;
    request.connection = number;
    const auto first = connection.line();
    if (!first) break;
    const std::size_t method = first->find(' ');
    const std::size_t target = first->rfind(' ');
    if (method == std::string::npos || target <= method) break;
    request.method = first->substr(0, method);
    request.target = first->substr(method + 1, target - method - 1);
    auto line = connection.line();
    for (; line && !line->empty(); line = connection.line()) {
      const std::size_t colon = line->find(':');
      if (colon == std::string::npos) break;
      const std::size_t value = std::min(line->find_first_not_of(' ', colon + 1), line->size());
      request.headers.emplace_back(line->substr(0, colon), line->substr(value));
    }
    if (!line) break;
    auto body = connection.bytes(std::strtoull(request.header("Content-Length").c_str(), nullptr, 10));
    if (!body) break;
    request.body = std::move(*body);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      requests_.push_back(request);
    }
    if (!answer(connection, handler_(request), request.method == "HEAD")) break;
  }
  ::shutdown(socket, SHUT_RDWR);
}

/// Sends an answer. Returns false if the connection must be closed.
bool HttpServer::answer(Connection& connection, const HttpServerAnswer& answer, bool is_head) {
  if (answer.closes) return false;
  if (answer.stalls) {
    connection.wait();
    return false;
  }
  if (!answer.raw.empty()) {
    connection.send(answer.raw);
    return false;
  }
  std::string head = fmt::format("HTTP/1.1 {} Status\r\n", answer.status);
  for (const auto& [name, value] : answer.headers)
    head += name + ": " + value + "\r\n";
  if (answer.is_chunked) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (answer.stated_length || answer.status != 304) {
    head += "Content-Length: " + answer.stated_length.value_or(std::to_string(answer.body.size())) + "\r\n";
  }
  head += "\r\n";
  std::string body = is_head ? "" : answer.body;
  if (answer.is_chunked && !is_head) {
    body = (body.empty() ? "" : fmt::format("{:x}\r\n{}\r\n", body.size(), body)) + "0\r\n" + answer.trailers + "\r\n";
  }
  const auto part = answer.cut_after ? answer.cut_after : answer.stall_after;
  if (part) body.resize(std::min(body.size(), *part));
  const bool is_sent = answer.is_apart ? connection.send_apart(head, body) : connection.send(head + body);
  if (!is_sent || answer.cut_after) return false;
  if (answer.stall_after) {
    connection.wait();
    return false;
  }
  return true;
}

}  // namespace cframefs::test
