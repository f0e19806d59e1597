// Servers that send head and body of an answer apart.
#include "frame/remote/http/open_sockets.h"

#include <chrono>
#include <future>

#include <gtest/gtest.h>

#include "frame/remote/http/curl_transport.h"
#include "tests/support/http_server.h"

namespace cframefs::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(OpenSockets, AHeadWithoutItsBodyIsAcknowledgedAtOnce) {
  const HttpServer server([](const HttpServerRequest&) {
    HttpServerAnswer answer;
    answer.body = "abc";
    answer.is_apart = true;
    return answer;
  });
  frame::CurlTransport transport;
  constexpr int kRequests = 100;
  const auto begin = steady_clock::now();
  for (int i = 0; i < kRequests; ++i) {
    std::promise<codec::Result<frame::HttpAnswer>> done;
    frame::HttpRequest request;
    request.url = server.url("/x");
    request.most_body = 100;
    transport.start(std::move(request), steady_clock::now() + std::chrono::minutes(1),
                    [&done](codec::Result<frame::HttpAnswer> answer) { done.set_value(std::move(answer)); });
    const auto answer = done.get_future().get();
    ASSERT_TRUE(answer) << describe(answer.error());
    EXPECT_EQ(answer->body.size(), 3U);
  }
  EXPECT_EQ(server.connections(), 1);
  // The kernel would acknowledge nearly each of them 40 ms later.
  EXPECT_LT(steady_clock::now() - begin, kRequests * milliseconds(25));
}

}  // namespace
}  // namespace cframefs::test
