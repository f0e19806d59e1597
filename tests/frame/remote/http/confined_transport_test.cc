// The transport in a process that gives up its rights: what it needs, and how it enters the sandbox.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>
#include <memory>
#include <thread>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "frame/remote/http/authorizer.h"
#include "frame/remote/http/curl_transport.h"
#include "frame/remote/http/network_needs.h"
#include "frame/remote/http/remote_requests.h"
#include "tests/support/http_server.h"

namespace cframefs::test {
namespace {

using frame::CurlTransport;
using frame::HttpAnswer;
using frame::HttpRequest;
using frame::Result;
using Ports = std::vector<std::uint16_t>;

Result<HttpAnswer> ask(CurlTransport& transport, const std::string& url) {
  auto promise = std::make_shared<std::promise<Result<HttpAnswer>>>();
  auto future = promise->get_future();
  HttpRequest request;
  request.url = url;
  request.most_body = 1U << 20U;
  transport.start(std::move(request), std::chrono::steady_clock::now() + std::chrono::seconds(30),
                  [promise](Result<HttpAnswer> answer) { promise->set_value(std::move(answer)); });
  return future.get();
}

TEST(ConfinedTransport, TheThreadEntersBeforeAndBetweenRequests) {
  HttpServer server([](const HttpServerRequest&) { return HttpServerAnswer{}; });
  CurlTransport transport;
  std::thread::id first;
  ASSERT_TRUE(transport.confine({}, [&first]() -> Result<void> {
    first = std::this_thread::get_id();
    return {};
  }));
  EXPECT_NE(first, std::this_thread::get_id());
  EXPECT_TRUE(ask(transport, server.url("/x")));
  const auto refused = transport.confine({}, [first]() -> Result<void> {
    EXPECT_EQ(first, std::this_thread::get_id());
    return codec::io_error(EPERM, "enter");
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sys, EPERM);
  transport.stop();
  EXPECT_EQ(transport.confine({}, []() -> Result<void> { return {}; }).error().sys, ECANCELED);
}

TEST(ConfinedTransport, PortsOfRedirectsAreKnownOnce) {
  HttpServer other([](const HttpServerRequest&) { return HttpServerAnswer{}; });
  HttpServer server([&other](const HttpServerRequest&) { return redirect_to(other.url("/y")); });
  CurlTransport transport;
  EXPECT_TRUE(ask(transport, other.url("/x")));
  EXPECT_EQ(transport.redirect_ports(), Ports());
  EXPECT_TRUE(ask(transport, server.url("/x")));
  EXPECT_TRUE(ask(transport, server.url("/x")));
  EXPECT_EQ(transport.redirect_ports(), Ports{other.port()});
}

TEST(ConfinedTransport, APortThatIsClosedIsNotCalledRefused) {
  std::uint16_t port = 0;
  std::string url;
  {
    HttpServer server([](const HttpServerRequest&) { return HttpServerAnswer{}; });
    port = server.port();
    url = server.url("/x");
  }
  CurlTransport transport;
  ASSERT_TRUE(transport.confine({1}, []() -> Result<void> { return {}; }));
  const auto answer = ask(transport, url);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().sys, EHOSTUNREACH) << port;
  EXPECT_EQ(answer.error().reason.find("sandbox"), std::string::npos);
}

TEST(ConfinedTransport, RequestsAreIdleOnceTheyAreAnswered) {
  HttpServer server([](const HttpServerRequest&) { return HttpServerAnswer{}; });
  HttpServer silent([](const HttpServerRequest&) { return HttpServerAnswer{.stalls = true}; });
  CurlTransport transport;
  frame::RemoteRequests requests(transport, frame::no_authorizer());
  EXPECT_TRUE(requests.is_idle());
  HttpRequest request;
  request.url = server.url("/x");
  EXPECT_TRUE(requests.start(request).get());
  EXPECT_TRUE(requests.is_idle());
  request.url = silent.url("/x");
  auto waits = requests.start(request);
  EXPECT_FALSE(requests.is_idle());
  requests.stop();
  EXPECT_FALSE(waits.get());
  EXPECT_TRUE(requests.is_idle());
}

TEST(ConfinedTransport, PortsOfAddresses) {
  EXPECT_EQ(frame::port_of("http://host/x"), 80);
  EXPECT_EQ(frame::port_of("https://host"), 443);
  EXPECT_EQ(frame::port_of("https://[::1]:8443/x?y=http://a:1"), 8443);
  EXPECT_EQ(frame::port_of("nothing"), 0);
}

TEST(ConfinedTransport, PortsOfProxies) {
  constexpr std::array<const char*, 5> kNames = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
  // NOLINTBEGIN(concurrency-mt-unsafe): no other thread reads the environment
  for (const char* const name : kNames)
    ::unsetenv(name);
  EXPECT_EQ(frame::proxy_ports(), Ports());
  EXPECT_FALSE(frame::has_tls_proxy());
  ::setenv("http_proxy", "http://user:secret@proxy:3128/", 1);
  ::setenv("https_proxy", "proxy", 1);
  ::setenv("HTTPS_PROXY", "https://proxy", 1);
  ::setenv("all_proxy", "socks5h://[::1]:9050", 1);
  ::setenv("ALL_PROXY", "", 1);
  EXPECT_EQ(frame::proxy_ports(), (Ports{3128, 1080, 443, 9050}));
  EXPECT_TRUE(frame::has_tls_proxy());
  ::unsetenv("HTTPS_PROXY");
  EXPECT_FALSE(frame::has_tls_proxy());
  for (const char* const name : kNames)
    ::unsetenv(name);
  // NOLINTEND(concurrency-mt-unsafe)
}

TEST(ConfinedTransport, NamesAndCertificatesAreInTheFilesThatAreRead) {
  ::setenv("SSL_CERT_FILE", "/some/certificates", 1);  // NOLINT(concurrency-mt-unsafe)
  const auto files = frame::network_files();
  ::unsetenv("SSL_CERT_FILE");  // NOLINT(concurrency-mt-unsafe)
  const auto has = [&files](const std::string& path) {
    return std::find(files.begin(), files.end(), path) != files.end();
  };
  EXPECT_TRUE(has("/etc"));
  EXPECT_TRUE(has("/run/systemd/resolve"));
  EXPECT_TRUE(has("/some/certificates"));
  for (const std::string& path : files)
    EXPECT_NE(path, "/");
}

TEST(ConfinedTransport, TheLibrariesThatLookUpNamesAreLoadedBefore) {
  frame::load_resolvers();
  std::ifstream names("/etc/nsswitch.conf");
  std::ifstream maps("/proc/self/maps");
  const std::string mapped{std::istreambuf_iterator<char>(maps), {}};
  for (std::string line; std::getline(names, line);) {
    if (line.rfind("hosts:", 0) != 0 || line.find(" dns") == std::string::npos) continue;
    EXPECT_NE(mapped.find("libnss_dns"), std::string::npos);
  }
}

}  // namespace
}  // namespace cframefs::test
