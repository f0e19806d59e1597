#include "frame/remote/http/http_progress.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "frame/remote/http/curl_transport.h"
#include "tests/support/http_server.h"

namespace cframefs::test::http_progress_tests {
namespace {

using frame::HttpAnswer;
using frame::HttpRequest;
using frame::Result;
using std::chrono::milliseconds;

std::future<Result<HttpAnswer>> start(frame::HttpTransport& transport, HttpRequest request,
                                      milliseconds patience = milliseconds(30'000)) {
  auto promise = std::make_shared<std::promise<Result<HttpAnswer>>>();
  auto future = promise->get_future();
  transport.start(std::move(request), std::chrono::steady_clock::now() + patience,
                  [promise](Result<HttpAnswer> answer) { promise->set_value(std::move(answer)); });
  return future;
}

HttpRequest get(const std::string& url) {
  HttpRequest request;
  request.url = url;
  request.most_body = 1000;
  return request;
}

HttpServerAnswer with_body(const std::string& body) {
  HttpServerAnswer answer;
  answer.body = body;
  return answer;
}

class HttpProgressTest : public testing::Test {
 protected:
  // A proxy of the developer's machine is not asked.
  static void SetUpTestSuite() {
    for (const char* name : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})
      ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe): no other thread runs yet
  }

  frame::CurlTransport transport_;
};

TEST_F(HttpProgressTest, RequestThatIsGivenUpEndsAndIsFollowedByOthers) {
  HttpServer server([](const HttpServerRequest& request) {
    HttpServerAnswer answer;
    answer.stalls = request.target == "/stalls";
    return answer;
  });
  HttpRequest request = get(server.url("/stalls"));
  request.progress = std::make_shared<frame::HttpProgress>();
  const auto progress = request.progress;
  auto stalled = start(transport_, request);
  ASSERT_TRUE(start(transport_, get(server.url("/x"))).get());
  EXPECT_EQ(stalled.wait_for(milliseconds(0)), std::future_status::timeout);
  EXPECT_FALSE(progress->first_byte());
  progress->give_up();
  transport_.end_given_up();
  EXPECT_EQ(stalled.get().error().sys, ECANCELED);
  EXPECT_EQ(start(transport_, request).get().error().sys, ECANCELED);  // it is not even sent
  EXPECT_TRUE(start(transport_, get(server.url("/x"))).get());
}

TEST_F(HttpProgressTest, FirstByteIsThatOfTheAnswerAfterRedirects) {
  HttpServer server([](const HttpServerRequest& request) {
    HttpServerAnswer stalls;
    stalls.stalls = true;
    if (request.target == "/from") return redirect_to("/stalls");
    return request.target == "/stalls" ? stalls : with_body("abc");
  });
  HttpRequest redirected = get(server.url("/from"));
  redirected.progress = std::make_shared<frame::HttpProgress>();
  EXPECT_FALSE(start(transport_, redirected, milliseconds(50)).get());
  EXPECT_FALSE(redirected.progress->first_byte());
  HttpRequest answered = get(server.url("/x"));
  answered.progress = std::make_shared<frame::HttpProgress>();
  EXPECT_TRUE(start(transport_, answered).get());
  EXPECT_TRUE(answered.progress->first_byte());
}

TEST_F(HttpProgressTest, NewConnectionIsMadeOnRequest) {
  HttpServer server([](const HttpServerRequest&) { return with_body("abc"); });
  HttpRequest request = get(server.url("/x"));
  ASSERT_TRUE(start(transport_, request).get());
  ASSERT_TRUE(start(transport_, request).get());
  EXPECT_EQ(server.connections(), 1);
  request.on_new_connection = true;
  ASSERT_TRUE(start(transport_, request).get());
  EXPECT_EQ(server.connections(), 2);
}

}  // namespace
}  // namespace cframefs::test::http_progress_tests
