#include "frame/remote/http/remote_requests.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

namespace cframefs::test::remote_requests_tests {
namespace {

using codec::ErrorKind;
using frame::HttpAnswer;
using frame::HttpRequest;
using frame::RemoteRequests;
using frame::RequestPatience;
using frame::Result;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// Answers each request at once with the next answer of a script, the last one again and again; or holds requests until
/// the test answers them.
class ScriptedTransport final : public frame::HttpTransport {
 public:
  explicit ScriptedTransport(std::deque<Result<HttpAnswer>> script) : script_(std::move(script)) {}
  /// Holds all requests.
  ScriptedTransport() : holds_(true) {}

  void start(HttpRequest request, Time until, Done done) override {
    Result<HttpAnswer> answer;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      requests_.push_back(std::move(request));
      deadlines_.push_back(until);
      if (holds_) {
        held_.push_back(std::move(done));
        changed_.notify_all();
        return;
      }
      answer = script_.front();
      if (script_.size() > 1) script_.pop_front();
    }
    done(std::move(answer));
  }
  void stop() override {}

  /// Answers the requests that are held, first come first.
  void release(std::size_t count, const Result<HttpAnswer>& answer) {
    for (std::size_t i = 0; i < count; ++i) {
      Done done;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return !held_.empty(); });
        done = std::move(held_.front());
        held_.pop_front();
      }
      done(answer);
    }
  }
  void wait_for_held(std::size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return held_.size() >= count; });
  }
  void hold_no_more(std::deque<Result<HttpAnswer>> script) {
    const std::lock_guard<std::mutex> lock(mutex_);
    holds_ = false;
    script_ = std::move(script);
  }
  std::vector<HttpRequest> requests() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return requests_;
  }
  std::vector<Time> deadlines() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return deadlines_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool holds_ = false;
  std::deque<Result<HttpAnswer>> script_;
  std::deque<Done> held_;
  std::vector<HttpRequest> requests_;
  std::vector<Time> deadlines_;
};

/// Numbers the requests that it authorizes; can wait at a gate from the second on.
class NumberingAuthorizer final : public frame::Authorizer {
 public:
  explicit NumberingAuthorizer(bool renews = false) : renews_(renews) {}

  Result<void> authorize(HttpRequest& request) override {
    std::unique_lock<std::mutex> lock(mutex_);
    request.headers.push_back({"Authorization", std::to_string(++authorized_)});
    threads_.push_back(std::this_thread::get_id());
    if (authorized_ > 1) changed_.wait(lock, [this] { return is_open_; });
    return {};
  }
  bool may_renew(const HttpAnswer&) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++asked_;
    threads_.push_back(std::this_thread::get_id());
    return renews_;
  }

  void close_gate() { set_open(false); }
  void open_gate() { set_open(true); }
  int asked() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return asked_;
  }
  std::vector<std::thread::id> threads() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return threads_;
  }

 private:
  void set_open(bool is_open) {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_open_ = is_open;
    changed_.notify_all();
  }

  const bool renews_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;
  int authorized_ = 0;
  int asked_ = 0;
  std::vector<std::thread::id> threads_;
};

/// Refuses to authorize, for want of credentials.
class RefusingAuthorizer final : public frame::Authorizer {
 public:
  Result<void> authorize(HttpRequest&) override { return codec::io_error(EACCES, "sign", "no credentials"); }
  bool may_renew(const HttpAnswer&) override { return false; }
};

HttpRequest get(const std::string& url = "https://host/x") {
  HttpRequest request;
  request.url = url;
  request.most_body = 100;
  return request;
}

HttpAnswer answer_with(int status, const std::string& body = {}, std::vector<frame::HttpHeader> headers = {}) {
  HttpAnswer answer;
  answer.status = status;
  answer.body.assign(body.begin(), body.end());
  answer.headers = std::move(headers);
  return answer;
}

Result<HttpAnswer> error_with(int sys) {
  return codec::io_error(sys, "GET");
}

/// Hardly any pauses, much time; no request is sent a second time because the first is slow.
RequestPatience quick(milliseconds total = milliseconds(60'000)) {
  return {total, milliseconds(20'000), milliseconds(1), milliseconds(2), std::chrono::hours(1)};
}

TEST(RemoteRequests, AnswerIsReturned) {
  ScriptedTransport transport({answer_with(206, "abc")});
  RemoteRequests requests(transport, frame::no_authorizer());
  const auto answer = requests.send(get());
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body.size(), 3U);
  EXPECT_EQ(requests.counts().requests, 1U);
  EXPECT_EQ(requests.counts().retries, 0U);
  EXPECT_EQ(requests.counts().bytes, 3U);
}

TEST(RemoteRequests, NotModifiedIsAnAnswer) {
  ScriptedTransport transport({answer_with(304)});
  RemoteRequests requests(transport, frame::no_authorizer());
  EXPECT_EQ(requests.send(get())->status, 304);
}

TEST(RemoteRequests, PassingFailuresAreTriedAgain) {
  for (const std::string method : {"GET", "PUT"}) {
    ScriptedTransport transport({answer_with(503), error_with(EHOSTUNREACH), error_with(EIO), answer_with(429),
                                 error_with(ETIMEDOUT), answer_with(200, "x")});
    RemoteRequests requests(transport, frame::no_authorizer(), quick());
    HttpRequest request = get();
    request.method = method;
    request.body = "content";
    EXPECT_TRUE(requests.send(request));
    EXPECT_EQ(requests.counts().requests, 6U);
    EXPECT_EQ(requests.counts().retries, 5U);
    EXPECT_EQ(transport.requests().size(), 6U);
    for (const HttpRequest& sent : transport.requests())
      EXPECT_EQ(sent.body, "content");
  }
}

TEST(RemoteRequests, LastingFailuresAreNotTriedAgain) {
  for (const int status : {301, 400, 403, 404, 405, 409, 412, 416, 501}) {
    ScriptedTransport transport({answer_with(status), answer_with(200)});
    RemoteRequests requests(transport, frame::no_authorizer(), quick());
    EXPECT_FALSE(requests.send(get())) << status;
    EXPECT_EQ(transport.requests().size(), 1U) << status;
  }
  ScriptedTransport transport({codec::unsupported("compressed"), answer_with(200)});
  RemoteRequests requests(transport, frame::no_authorizer(), quick());
  EXPECT_EQ(requests.send(get()).error().kind, ErrorKind::unsupported);
}

TEST(RemoteRequests, MissingObjectIsMissing) {
  ScriptedTransport transport({answer_with(404)});
  RemoteRequests requests(transport, frame::no_authorizer());
  const auto answer = requests.send(get("https://user:password@host/x?secret"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().sys, ENOENT);
  EXPECT_EQ(answer.error().reason, "https://host/x: No such file or directory (404 Not Found)");
}

TEST(RemoteRequests, FailureThatLastsIsToldWhenTheTimeIsOver) {
  const std::vector<std::pair<Result<HttpAnswer>, int>> failures = {
      {answer_with(503), EIO}, {error_with(ETIMEDOUT), ETIMEDOUT}, {error_with(EHOSTUNREACH), EHOSTUNREACH}};
  for (const auto& [failure, sys] : failures) {
    ScriptedTransport transport({failure});
    RemoteRequests requests(transport, frame::no_authorizer(), quick(milliseconds(200)));
    const auto answer = requests.send(get());
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().sys, sys);
    EXPECT_GT(transport.requests().size(), 1U);
    EXPECT_NE(answer.error().reason.find("attempts"), std::string::npos) << answer.error().reason;
  }
}

TEST(RemoteRequests, FailedTlsIsTriedThreeTimes) {
  ScriptedTransport transport({error_with(EPROTO)});
  RemoteRequests requests(transport, frame::no_authorizer(), quick());
  EXPECT_EQ(requests.send(get()).error().sys, EPROTO);
  EXPECT_EQ(transport.requests().size(), 3U);
}

TEST(RemoteRequests, EachAttemptHasItsOwnLimitWithinTheWhole) {
  ScriptedTransport transport({answer_with(503), answer_with(503), answer_with(200)});
  RequestPatience patience = quick(milliseconds(60'000));
  patience.attempt = milliseconds(7'000);
  RemoteRequests requests(transport, frame::no_authorizer(), patience);
  const auto begin = Clock::now();
  ASSERT_TRUE(requests.send(get()));
  const auto end = Clock::now();
  for (const auto until : transport.deadlines()) {
    EXPECT_GE(until, begin + patience.attempt);
    EXPECT_LE(until, end + patience.attempt);
  }
  ScriptedTransport hasty({answer_with(200)});
  RemoteRequests short_requests(hasty, frame::no_authorizer(), quick(milliseconds(5'000)));
  ASSERT_TRUE(short_requests.send(get()));
  EXPECT_LE(hasty.deadlines().at(0), Clock::now() + milliseconds(5'000));
}

TEST(RemoteRequests, WaitsAsLongAsTheServerAsks) {
  ScriptedTransport transport({answer_with(503, "", {{"Retry-After", "2"}}), answer_with(200)});
  RemoteRequests requests(transport, frame::no_authorizer(), quick());
  auto answer = requests.start(get());
  EXPECT_EQ(answer.wait_for(milliseconds(60)), std::future_status::timeout);
  EXPECT_EQ(transport.requests().size(), 1U);
  requests.stop();
  EXPECT_EQ(answer.get().error().sys, ECANCELED);
}

TEST(RemoteRequests, GivesUpAtOnceIfTheServerAsksForMoreTimeThanIsLeft) {
  ScriptedTransport transport({answer_with(503, "", {{"Retry-After", "60"}}), answer_with(200)});
  RemoteRequests requests(transport, frame::no_authorizer(), quick(milliseconds(50'000)));
  const auto answer = requests.send(get());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().sys, EIO);
  EXPECT_NE(answer.error().reason.find("60 s"), std::string::npos) << answer.error().reason;
}

TEST(RemoteRequests, EachAttemptIsSignedAgain) {
  ScriptedTransport transport({answer_with(503), error_with(EIO), answer_with(200)});
  NumberingAuthorizer authorizer;
  RemoteRequests requests(transport, authorizer, quick());
  ASSERT_TRUE(requests.send(get()));
  const auto sent = transport.requests();
  ASSERT_EQ(sent.size(), 3U);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    ASSERT_EQ(sent[i].headers.size(), 1U);
    EXPECT_EQ(sent[i].headers[0].value, std::to_string(i + 1));
  }
}

TEST(RemoteRequests, RefusedCredentialsAreRenewedOnce) {
  const std::string expired = "<Error><Code>ExpiredToken</Code></Error>";
  for (const HttpAnswer& refusal : {answer_with(401), answer_with(403), answer_with(400, expired), answer_with(400)}) {
    ScriptedTransport transport({refusal, answer_with(200)});
    NumberingAuthorizer authorizer(true);
    RemoteRequests requests(transport, authorizer, quick());
    EXPECT_TRUE(requests.send(get())) << refusal.status;
    EXPECT_EQ(transport.requests().at(1).headers.at(0).value, "2");
    EXPECT_EQ(authorizer.asked(), 1);
  }
  ScriptedTransport transport({answer_with(403)});
  NumberingAuthorizer authorizer(true);
  RemoteRequests requests(transport, authorizer, quick());
  EXPECT_EQ(requests.send(get()).error().sys, EACCES);
  EXPECT_EQ(transport.requests().size(), 2U);
  EXPECT_EQ(authorizer.asked(), 1);
}

TEST(RemoteRequests, RefusalWithoutOtherCredentialsIsFinal) {
  ScriptedTransport transport({answer_with(403), answer_with(200)});
  NumberingAuthorizer authorizer(false);
  RemoteRequests requests(transport, authorizer, quick());
  EXPECT_EQ(requests.send(get()).error().sys, EACCES);
  EXPECT_EQ(transport.requests().size(), 1U);
  ScriptedTransport other({answer_with(400, "<Error><Code>InvalidArgument</Code></Error>"), answer_with(200)});
  RemoteRequests more(other, authorizer, quick());
  EXPECT_EQ(more.send(get()).error().sys, EIO);
  EXPECT_EQ(authorizer.asked(), 1);
}

TEST(RemoteRequests, AuthorizerRunsInTheThreadOfTheCallerAndInOneOfItsOwn) {
  ScriptedTransport transport;
  NumberingAuthorizer authorizer(true);
  RemoteRequests requests(transport, authorizer, quick());
  auto answer = requests.start(get());
  std::thread::id transport_thread;
  std::thread thread([&] {
    transport_thread = std::this_thread::get_id();
    transport.release(1, answer_with(503));
    transport.release(1, answer_with(401));
    transport.release(1, answer_with(200));
  });
  EXPECT_TRUE(answer.get());
  thread.join();
  const auto threads = authorizer.threads();
  ASSERT_EQ(threads.size(), 4U);
  EXPECT_EQ(threads[0], std::this_thread::get_id());
  for (std::size_t i = 1; i < threads.size(); ++i) {
    EXPECT_NE(threads[i], std::this_thread::get_id());
    EXPECT_NE(threads[i], transport_thread);
  }
}

TEST(RemoteRequests, AuthorizerThatWaitsHoldsUpNoDeadlineAndNoTransport) {
  ScriptedTransport transport({answer_with(503), answer_with(200)});
  NumberingAuthorizer authorizer;
  RemoteRequests requests(transport, authorizer, quick(milliseconds(200)));
  authorizer.close_gate();
  const auto answer = requests.send(get());  // its second attempt does not get through the gate
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().sys, EIO);
  EXPECT_EQ(transport.requests().size(), 1U);
  authorizer.open_gate();
  EXPECT_TRUE(requests.send(get()));
}

TEST(RemoteRequests, FailureOfTheAuthorizerIsReturned) {
  ScriptedTransport transport({answer_with(200)});
  RefusingAuthorizer authorizer;
  RemoteRequests requests(transport, authorizer, quick());
  EXPECT_EQ(requests.send(get()).error().sys, EACCES);
  EXPECT_TRUE(transport.requests().empty());
}

TEST(RemoteRequests, AtMost64AreUnderWayAndTheOthersFollow) {
  ScriptedTransport transport;
  RemoteRequests requests(transport, frame::no_authorizer(), quick());
  std::vector<std::future<Result<HttpAnswer>>> answers;
  for (int i = 0; i < 70; ++i)
    answers.push_back(requests.start(get("https://host/" + std::to_string(i))));
  EXPECT_EQ(transport.requests().size(), 64U);
  transport.release(1, answer_with(200));
  EXPECT_EQ(transport.requests().size(), 65U);
  EXPECT_EQ(transport.requests().back().url, "https://host/64");
  transport.release(69, answer_with(200));
  for (auto& answer : answers)
    EXPECT_TRUE(answer.get());
  EXPECT_EQ(requests.counts().requests, 70U);
}

TEST(RemoteRequests, RequestThatQueuesTooLongEndsInTime) {
  ScriptedTransport transport;
  RemoteRequests requests(transport, frame::no_authorizer(), quick(milliseconds(50)));
  std::vector<std::future<Result<HttpAnswer>>> answers;
  for (int i = 0; i < 65; ++i)
    answers.push_back(requests.start(get()));
  EXPECT_EQ(answers.back().get().error().sys, ETIMEDOUT);
  // A request that is late in flight is answered by the transport.
  transport.release(64, error_with(ETIMEDOUT));
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(answers[static_cast<std::size_t>(i)].get().error().sys, ETIMEDOUT);
  EXPECT_EQ(transport.requests().size(), 64U);
}

TEST(RemoteRequests, LongQueueIsWorkedOffWithoutRecursion) {
  ScriptedTransport transport;
  RemoteRequests requests(transport, frame::no_authorizer(), quick());
  std::vector<std::future<Result<HttpAnswer>>> answers;
  for (int i = 0; i < 20'000; ++i)
    answers.push_back(requests.start(get()));
  transport.hold_no_more({answer_with(200)});
  transport.release(64, answer_with(200));
  for (auto& answer : answers)
    EXPECT_TRUE(answer.get());
}

TEST(RemoteRequests, StopEndsAllWaitsAtOnce) {
  ScriptedTransport transport;
  std::vector<std::future<Result<HttpAnswer>>> answers;
  {
    RequestPatience patience;
    patience.first_pause = patience.longest_pause = milliseconds(60'000'000);
    patience.total = milliseconds(120'000'000);
    RemoteRequests requests(transport, frame::no_authorizer(), patience);
    for (int i = 0; i < 80; ++i)
      answers.push_back(requests.start(get()));
    transport.release(1, answer_with(503));  // that one pauses, 64 are under way, others queue
    transport.wait_for_held(64);
    requests.stop();
    for (auto& answer : answers) {
      const auto ended = answer.get();
      ASSERT_FALSE(ended);
      EXPECT_EQ(ended.error().sys, ECANCELED);
      EXPECT_NE(ended.error().reason.find("being ended"), std::string::npos) << ended.error().reason;
    }
    EXPECT_EQ(requests.send(get()).error().sys, ECANCELED);
    EXPECT_EQ(transport.requests().size(), 65U);
  }
  // The transport ends its requests later.
  transport.release(64, answer_with(200));
}

TEST(RemoteRequests, ManyThreadsAskAtOnceWhileTheServerFails) {
  std::deque<Result<HttpAnswer>> script;
  for (int i = 0; i < 600; ++i)
    script.push_back(i % 3 == 0   ? Result<HttpAnswer>(answer_with(200, "x"))
                     : i % 3 == 1 ? Result<HttpAnswer>(answer_with(503))
                                  : error_with(EHOSTUNREACH));
  script.emplace_back(answer_with(200, "x"));
  ScriptedTransport transport(script);
  NumberingAuthorizer authorizer;
  RemoteRequests requests(transport, authorizer, quick());
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 50; ++j)
        right += requests.send(get()) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(right, 400);
  EXPECT_EQ(requests.counts().requests, requests.counts().retries + 400);
}

}  // namespace
}  // namespace cframefs::test::remote_requests_tests
