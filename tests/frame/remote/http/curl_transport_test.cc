#include "frame/remote/http/curl_transport.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <mutex>

#include <gtest/gtest.h>

#include "tests/support/http_server.h"

namespace cframefs::test {
namespace {

using codec::ErrorKind;
using frame::CurlTransport;
using frame::HttpAnswer;
using frame::HttpRequest;
using frame::Result;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLong{30'000};

std::future<Result<HttpAnswer>> start(frame::HttpTransport& transport, HttpRequest request,
                                      milliseconds patience = kLong) {
  auto promise = std::make_shared<std::promise<Result<HttpAnswer>>>();
  auto future = promise->get_future();
  transport.start(std::move(request), Clock::now() + patience,
                  [promise](Result<HttpAnswer> answer) { promise->set_value(std::move(answer)); });
  return future;
}

HttpRequest get(const std::string& url, std::uint64_t most_body = 1U << 20U) {
  HttpRequest request;
  request.url = url;
  request.most_body = most_body;
  return request;
}

std::string text(const std::vector<std::uint8_t>& body) {
  return {body.begin(), body.end()};
}

HttpServerAnswer with_body(const std::string& body) {
  HttpServerAnswer answer;
  answer.body = body;
  return answer;
}

/// A transport, and a server that gives the same answer to each request.
class CurlTransportTest : public testing::Test {
 protected:
  // A proxy of the developer's machine is not asked.
  static void SetUpTestSuite() {
    for (const char* name : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})
      ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe): no other thread runs yet
  }

  Result<HttpAnswer> ask(const HttpServerAnswer& answer, const HttpRequest& request = get("/x"),
                         milliseconds patience = kLong) {
    server_ = std::make_unique<HttpServer>([answer](const HttpServerRequest&) { return answer; });
    HttpRequest complete = request;
    complete.url = server_->url(request.url);
    return start(transport_, complete, patience).get();
  }

  CurlTransport transport_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(CurlTransportTest, AnswerHasStatusHeadersAndBody) {
  HttpServerAnswer sent = with_body("hello");
  sent.status = 206;
  sent.headers = {{"ETag", "\"1\""}, {"X-Empty", ""}, {"X-Padded", "  a b \t"}};
  HttpRequest request = get("/a/../b?x=1");
  request.headers = {{"Range", "bytes=0-4"}, {"X-Nothing", ""}};
  const auto answer = ask(sent, request);
  ASSERT_TRUE(answer) << answer.error().reason;
  EXPECT_EQ(answer->status, 206);
  EXPECT_EQ(text(answer->body), "hello");
  EXPECT_EQ(answer->header("etag"), "\"1\"");
  EXPECT_EQ(answer->header("X-Padded"), "a b");
  const HttpServerRequest seen = server_->requests().at(0);
  EXPECT_EQ(seen.method, "GET");
  EXPECT_EQ(seen.target, "/a/../b?x=1");  // a key of a bucket may look like this
  EXPECT_EQ(seen.header("Range"), "bytes=0-4");
  EXPECT_EQ(seen.header("User-Agent"), "cframefs");
  EXPECT_EQ(seen.header("Accept-Encoding"), "identity");
  EXPECT_EQ(seen.header("Content-Type"), "");
  EXPECT_TRUE(std::any_of(seen.headers.begin(), seen.headers.end(),
                          [](const auto& header) { return header.first == "X-Nothing"; }));
}

TEST_F(CurlTransportTest, BodiesAreSentWithPutAndPost) {
  for (const std::string method : {"PUT", "POST"}) {
    for (const std::string& body : {std::string(), std::string("a\0b", 3), std::string(3'000'000, 'x')}) {
      HttpRequest request = get("/x");
      request.method = method;
      request.body = body;
      ASSERT_TRUE(ask({}, request));
      EXPECT_EQ(server_->requests().at(0).method, method);
      EXPECT_EQ(server_->requests().at(0).body, body);
      EXPECT_EQ(server_->requests().at(0).header("Content-Length"), std::to_string(body.size()));
    }
  }
}

TEST_F(CurlTransportTest, HeadAndDeleteHaveNoBody) {
  HttpRequest request = get("/x", 0);
  request.method = "HEAD";
  const auto head = ask(with_body("12345"), request);
  ASSERT_TRUE(head) << head.error().reason;
  EXPECT_EQ(head->header("Content-Length"), "5");
  EXPECT_TRUE(head->body.empty());
  request.method = "DELETE";
  ASSERT_TRUE(ask({}, request));
  EXPECT_EQ(server_->requests().at(0).method, "DELETE");
}

TEST_F(CurlTransportTest, ConnectionsAreKept) {
  HttpServer server([](const HttpServerRequest&) { return with_body("x"); });
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(start(transport_, get(server.url("/"))).get());
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(CurlTransportTest, ManyRequestsShare64Connections) {
  std::mutex mutex;
  std::condition_variable changed;
  int now = 0;
  int most = 0;
  HttpServer server([&](const HttpServerRequest&) {
    std::unique_lock<std::mutex> lock(mutex);
    most = std::max(most, ++now);
    changed.notify_all();
    changed.wait_for(lock, kLong, [&] { return most >= 64; });
    --now;
    return with_body("x");
  });
  std::vector<std::future<Result<HttpAnswer>>> answers;
  for (int i = 0; i < 300; ++i)
    answers.push_back(start(transport_, get(server.url("/"))));
  for (auto& answer : answers)
    EXPECT_TRUE(answer.get());
  EXPECT_EQ(most, 64);
  EXPECT_EQ(server.connections(), 64);
}

TEST_F(CurlTransportTest, RequestsThatWaitForAConnectionEndInTime) {
  HttpServerAnswer stalls;
  stalls.stalls = true;
  HttpServer server([&stalls](const HttpServerRequest&) { return stalls; });
  std::vector<std::future<Result<HttpAnswer>>> answers;
  for (int i = 0; i < 100; ++i)
    answers.push_back(start(transport_, get(server.url("/")), milliseconds(100)));
  for (auto& answer : answers)
    EXPECT_EQ(answer.get().error().sys, ETIMEDOUT);
}

TEST_F(CurlTransportTest, BodyUpToTheLimitIsTaken) {
  const auto answer = ask(with_body("12345"), get("/x", 5));
  ASSERT_TRUE(answer) << answer.error().reason;
  EXPECT_EQ(text(answer->body), "12345");
  EXPECT_TRUE(ask(with_body(""), get("/x", 0)));
}

TEST_F(CurlTransportTest, LongerBodyIsRefusedByItsLengthBeforeItComes) {
  HttpServerAnswer sent = with_body("123456");
  sent.stall_after = 0;
  const auto answer = ask(sent, get("/x", 5));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::unsupported);
  EXPECT_NE(answer.error().reason.find("6 bytes (status 200), at most 5"), std::string::npos) << answer.error().reason;
}

TEST_F(CurlTransportTest, LongerBodyWithoutLengthIsRefusedWhileItComes) {
  HttpServerAnswer sent = with_body("123456");
  sent.is_chunked = true;
  EXPECT_TRUE(ask(sent, get("/x", 6)));
  sent.stall_after = 12;
  const auto answer = ask(sent, get("/x", 5));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::unsupported);
}

TEST_F(CurlTransportTest, LongerBodyThanTheRangeSaysThatRangesAreIgnored) {
  for (const bool is_chunked : {false, true}) {
    HttpServerAnswer sent = with_body("123456");
    sent.is_chunked = is_chunked;
    HttpRequest request = get("/x", 5);
    request.headers.push_back({"range", "bytes=0-4"});
    const auto answer = ask(sent, request);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, ErrorKind::unsupported);
    EXPECT_NE(answer.error().reason.find("the server ignores ranges: it sends"), std::string::npos)
        << answer.error().reason;
  }
}

TEST_F(CurlTransportTest, ShortBodyIsAnErrorWithBothFigures) {
  HttpServerAnswer sent = with_body("1234567890");
  sent.cut_after = 3;
  const auto answer = ask(sent);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().sys, EIO);
  EXPECT_NE(answer.error().reason.find("3 of 10 bytes"), std::string::npos) << answer.error().reason;
}

TEST_F(CurlTransportTest, ChunkedBodyWithoutItsEndIsAnError) {
  HttpServerAnswer sent = with_body("1234567890");
  sent.is_chunked = true;
  sent.cut_after = 6;
  const auto answer = ask(sent);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().sys, EIO);
}

TEST_F(CurlTransportTest, LengthThatIsNoNumberIsRefused) {
  for (const std::string length : {"5x", "-5", "", "5, 6", "99999999999999999999"}) {
    HttpServerAnswer sent = with_body("12345");
    sent.stated_length = length;
    sent.cut_after = 5;
    EXPECT_FALSE(ask(sent)) << length;
  }
  HttpServerAnswer twice = with_body("12345");
  twice.headers = {{"Content-Length", "6"}};
  twice.cut_after = 5;
  EXPECT_FALSE(ask(twice));
}

TEST_F(CurlTransportTest, ServerThatStallsIsGivenUpInTime) {
  HttpServerAnswer sent = with_body("1234567890");
  sent.stall_after = 4;
  std::string reason;
  // A busy machine may need more time until the first bytes are there.
  for (const int patience : {100, 1'000, 10'000}) {
    const auto part = ask(sent, get("/x"), milliseconds(patience));
    ASSERT_FALSE(part);
    EXPECT_EQ(part.error().sys, ETIMEDOUT);
    reason = part.error().reason;
    if (reason.find("4 of 10 bytes") != std::string::npos) break;
  }
  EXPECT_NE(reason.find("4 of 10 bytes"), std::string::npos) << reason;
  sent.stalls = true;
  EXPECT_EQ(ask(sent, get("/x"), milliseconds(50)).error().sys, ETIMEDOUT);
  EXPECT_EQ(ask({}, get("/x"), milliseconds(-1)).error().sys, ETIMEDOUT);
}

TEST_F(CurlTransportTest, ConnectionThatClosesWithoutAnAnswerIsAnError) {
  HttpServerAnswer sent;
  sent.closes = true;
  EXPECT_EQ(ask(sent).error().sys, EIO);
}

TEST_F(CurlTransportTest, AnswerThatIsNoHttpIsAnError) {
  for (const std::string garbage :
       {"garbage\r\n\r\n", "\r\n\r\n", "HTTP/1.1 OK\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 99999 x\r\n\r\n"}) {
    HttpServerAnswer sent;
    sent.raw = garbage;
    const auto answer = ask(sent);
    ASSERT_FALSE(answer) << garbage << answer->status;
    EXPECT_EQ(answer.error().kind, ErrorKind::io) << garbage;
  }
}

TEST_F(CurlTransportTest, HeadersAreBounded) {
  HttpServerAnswer sent = with_body("x");
  for (int i = 0; i < 60; ++i)
    sent.headers.emplace_back("X-Header", std::string(1000, 'h'));
  EXPECT_TRUE(ask(sent));
  for (int i = 0; i < 10; ++i)
    sent.headers.emplace_back("X-Header", std::string(1000, 'h'));
  const auto answer = ask(sent);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::unsupported);
}

TEST_F(CurlTransportTest, BodyOfAFailureIsCutAt64KiB) {
  HttpServerAnswer sent = with_body(std::string(100'000, 'e'));
  sent.status = 500;
  const auto answer = ask(sent, get("/x", 0));
  ASSERT_TRUE(answer) << answer.error().reason;
  EXPECT_EQ(answer->status, 500);
  EXPECT_EQ(answer->body.size(), 65536U);
}

TEST_F(CurlTransportTest, StatusOfAFailureCountsEvenIfItsBodyIsCutShort) {
  HttpServerAnswer sent = with_body("no such object");
  sent.status = 404;
  sent.cut_after = 3;
  const auto answer = ask(sent);
  ASSERT_TRUE(answer) << answer.error().reason;
  EXPECT_EQ(answer->status, 404);
}

TEST_F(CurlTransportTest, CompressedObjectIsRefused) {
  HttpServerAnswer sent = with_body("x");
  sent.headers = {{"Content-Encoding", "GZIP"}};
  const auto answer = ask(sent);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::unsupported);
  EXPECT_NE(answer.error().reason.find("gzip"), std::string::npos) << answer.error().reason;
  sent.status = 404;
  EXPECT_TRUE(ask(sent));
  sent.status = 200;
  sent.headers = {{"Content-Encoding", "Identity"}};
  EXPECT_TRUE(ask(sent));
}

TEST_F(CurlTransportTest, HeadersAreThoseOfTheLastAnswerBeforeItsBody) {
  HttpServerAnswer sent = with_body("x");
  sent.is_chunked = true;
  sent.headers = {{"ETag", "\"1\""}};
  sent.trailers = "ETag: \"2\"\r\n";
  const auto trailers = ask(sent);
  ASSERT_TRUE(trailers) << trailers.error().reason;
  EXPECT_EQ(trailers->header("ETag"), "\"1\"");
  sent.raw = "HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz";
  const auto hints = ask(sent);
  ASSERT_TRUE(hints) << hints.error().reason;
  EXPECT_EQ(hints->status, 200);
  EXPECT_EQ(hints->header("X-Early"), "");
  EXPECT_EQ(text(hints->body), "z");
}

TEST_F(CurlTransportTest, RedirectsAreFollowedWithTheHeadersOfTheRequest) {
  HttpServer server([](const HttpServerRequest& request) {
    return request.target == "/dir/a" ? redirect_to("b?c") : with_body("there");
  });
  HttpRequest request = get(server.url("/dir/a"));
  request.headers = {{"Authorization", "Bearer t"}, {"Range", "bytes=0-4"}};
  const auto answer = start(transport_, request).get();
  ASSERT_TRUE(answer) << answer.error().reason;
  EXPECT_EQ(text(answer->body), "there");
  EXPECT_EQ(answer->header("Location"), "");
  const auto seen = server.requests();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[1].target, "/dir/b?c");
  EXPECT_EQ(seen[1].header("Authorization"), "Bearer t");
  EXPECT_EQ(seen[1].header("Range"), "bytes=0-4");
}

TEST_F(CurlTransportTest, RedirectToAnotherServerTakesNoCredentialsAlong) {
  HttpServer other([](const HttpServerRequest&) { return with_body("x"); });
  HttpServer server([&other](const HttpServerRequest&) { return redirect_to(other.url("/y"), 307); });
  HttpRequest request = get(server.url("/x"));
  request.url.insert(7, "user:password@");
  request.headers = {{"authorization", "Bearer t"},
                     {"X-Amz-Security-Token", "t"},
                     {"Cookie", "t"},
                     {"Range", "bytes=0-4"},
                     {"If-Match", "\"1\""}};
  ASSERT_TRUE(start(transport_, request).get());
  const HttpServerRequest seen = other.requests().at(0);
  EXPECT_EQ(seen.header("Authorization"), "");
  EXPECT_EQ(seen.header("X-Amz-Security-Token"), "");
  EXPECT_EQ(seen.header("Cookie"), "");
  EXPECT_EQ(seen.header("Range"), "bytes=0-4");
  EXPECT_EQ(seen.header("If-Match"), "\"1\"");
}

TEST_F(CurlTransportTest, RedirectsEndAfterFive) {
  HttpServer server([](const HttpServerRequest& request) {
    const int left = std::stoi(request.target.substr(1));
    return left == 0 ? with_body("end") : redirect_to("/" + std::to_string(left - 1), 301);
  });
  EXPECT_TRUE(start(transport_, get(server.url("/5"))).get());
  const auto answer = start(transport_, get(server.url("/6"))).get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::unsupported);
  EXPECT_NE(answer.error().reason.find("5 redirects"), std::string::npos) << answer.error().reason;
}

TEST_F(CurlTransportTest, RedirectsToOtherProtocolsAreRefused) {
  for (const std::string target : {"file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/", "http://"}) {
    const auto answer = ask(redirect_to(target));
    ASSERT_FALSE(answer) << target;
    EXPECT_EQ(answer.error().kind, ErrorKind::unsupported) << target;
  }
  EXPECT_FALSE(start(transport_, get("file:///etc/passwd")).get());
}

TEST_F(CurlTransportTest, RedirectsAreLeftToTheCallerOnRequestAndForChanges) {
  HttpRequest request = get("/x");
  request.follows_redirects = false;
  EXPECT_EQ(ask(redirect_to("/y"), request)->status, 302);
  request.follows_redirects = true;
  request.method = "PUT";
  EXPECT_EQ(ask(redirect_to("/y", 307), request)->status, 307);
  EXPECT_EQ(server_->requests().size(), 1U);
  HttpServerAnswer nowhere;
  nowhere.status = 302;
  EXPECT_EQ(ask(nowhere)->status, 302);
}

TEST_F(CurlTransportTest, ServerThatIsNotThereCannotBeReached) {
  std::string url;
  {
    const HttpServer gone([](const HttpServerRequest&) { return HttpServerAnswer(); });
    url = gone.url("/x?signature=secret");
  }
  const auto answer = start(transport_, get(url)).get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().sys, EHOSTUNREACH);
  EXPECT_NE(answer.error().reason.find("GET http://127.0.0.1:"), std::string::npos) << answer.error().reason;
  EXPECT_EQ(answer.error().reason.find("secret"), std::string::npos) << answer.error().reason;
}

TEST_F(CurlTransportTest, FailedTlsHandshakeIsAnErrorOfTheProtocol) {
  HttpServer server([](const HttpServerRequest&) { return HttpServerAnswer(); });
  std::string url = server.url("/x");
  url.insert(4, "s");
  const auto answer = start(transport_, get(url)).get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().sys, EPROTO) << answer.error().reason;
}

TEST_F(CurlTransportTest, HeaderWithALineEndIsRefused) {
  HttpRequest request = get("/x");
  request.headers = {{"Authorization", "Bearer t\r\nHost: other"}};
  const auto answer = ask({}, request);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::invalid);
  EXPECT_EQ(answer.error().reason.find("Bearer"), std::string::npos);
  EXPECT_TRUE(server_->requests().empty());
}

TEST_F(CurlTransportTest, StopEndsRequestsAndRefusesLaterOnes) {
  HttpServerAnswer stalls;
  stalls.stalls = true;
  HttpServer server([&stalls](const HttpServerRequest&) { return stalls; });
  std::vector<std::future<Result<HttpAnswer>>> answers;
  for (int i = 0; i < 100; ++i)
    answers.push_back(start(transport_, get(server.url("/"))));
  transport_.stop();
  for (auto& answer : answers)
    EXPECT_EQ(answer.get().error().sys, ECANCELED);
  auto later = start(transport_, get(server.url("/")));
  ASSERT_EQ(later.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_EQ(later.get().error().sys, ECANCELED);
  CurlTransport never_started;
  never_started.stop();
  EXPECT_EQ(start(never_started, get(server.url("/"))).get().error().sys, ECANCELED);
}

TEST_F(CurlTransportTest, DestructorEndsRequests) {
  HttpServerAnswer stalls;
  stalls.stalls = true;
  HttpServer server([&stalls](const HttpServerRequest&) { return stalls; });
  std::future<Result<HttpAnswer>> answer;
  {
    CurlTransport transport;
    answer = start(transport, get(server.url("/")));
  }
  EXPECT_EQ(answer.get().error().sys, ECANCELED);
}

TEST_F(CurlTransportTest, RequestsStartFromManyThreadsAndFromAnswers) {
  HttpServer server([](const HttpServerRequest& request) { return with_body(request.target); });
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 25; ++i) {
        const std::string path = "/" + std::to_string(thread) + "/" + std::to_string(i);
        std::promise<void> ended;
        transport_.start(get(server.url(path)), Clock::now() + kLong, [&](Result<HttpAnswer> first) {
          if (first && text(first->body) == path) ++right;
          transport_.start(get(server.url(path + "b")), Clock::now() + kLong, [&](Result<HttpAnswer> second) {
            if (second && text(second->body) == path + "b") ++right;
            ended.set_value();
          });
        });
        ended.get_future().wait();
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(right, 200);
}

}  // namespace
}  // namespace cframefs::test
