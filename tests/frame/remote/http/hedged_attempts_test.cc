#include "frame/remote/http/hedged_attempts.h"

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "frame/remote/http/hedge_policy.h"
#include "frame/remote/http/http_progress.h"

namespace cframefs::test::hedged_attempts_tests {
namespace {

using frame::HedgedAttempts;
using frame::HedgePolicy;
using frame::HttpAnswer;
using frame::HttpRequest;
using frame::Result;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kAtOnce{1};
constexpr milliseconds kNever{3'600'000};

/// Holds all requests until the test answers them. Requests that are given up end with ECANCELED.
class HoldingTransport final : public frame::HttpTransport {
 public:
  void start(HttpRequest request, Time until, Done done) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (begins_answers_ && request.progress) request.progress->note_first_byte();
    held_.push_back({std::move(request), until, std::move(done)});
    changed_.notify_all();
  }
  void end_given_up() override {
    std::vector<Done> ended;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (Held& held : held_) {
        const auto& progress = held.request.progress;
        if (held.done && progress && progress->is_given_up()) ended.push_back(std::exchange(held.done, nullptr));
      }
      given_up_ += ended.size();
    }
    for (const Done& done : ended)
      done(codec::io_error(ECANCELED, "GET"));
  }
  void stop() override {}
  /// Answers begin at once, or do not, from now.
  void begin_answers(bool begins) {
    const std::lock_guard<std::mutex> lock(mutex_);
    begins_answers_ = begins;
  }

  /// Waits for request `number`, and returns it.
  HttpRequest wait_for(std::size_t number) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return held_.size() > number; });
    return held_[number].request;
  }
  void answer(std::size_t number, Result<HttpAnswer> answer) {
    wait_for(number);
    Done done;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      done = std::exchange(held_[number].done, nullptr);
    }
    if (done) done(std::move(answer));
  }
  std::size_t started() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return held_.size();
  }
  std::size_t given_up() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return given_up_;
  }

 private:
  struct Held {
    HttpRequest request;
    Time until;
    Done done;
  };
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Held> held_;
  bool begins_answers_ = false;
  std::size_t given_up_ = 0;
};

std::future<Result<HttpAnswer>> start(HedgedAttempts& attempts, const std::string& method = "GET",
                                      milliseconds time = kNever) {
  auto promise = std::make_shared<std::promise<Result<HttpAnswer>>>();
  HttpRequest request;
  request.method = method;
  request.url = "https://host/x";
  attempts.start(std::move(request), Clock::now() + time,
                 [promise](Result<HttpAnswer> answer) { promise->set_value(std::move(answer)); });
  return promise->get_future();
}

HttpAnswer answer_with(int status) {
  HttpAnswer answer;
  answer.status = status;
  return answer;
}

TEST(HedgedAttempts, ARequestThatIsAnsweredIsSentOnce) {
  HoldingTransport transport;
  HedgedAttempts attempts(transport, kNever);
  auto answer = start(attempts);
  transport.answer(0, answer_with(206));
  EXPECT_EQ(answer.get()->status, 206);
  EXPECT_EQ(transport.started(), 1U);
  EXPECT_EQ(attempts.hedges(), 0U);
}

TEST(HedgedAttempts, ARequestWhoseAnswerDoesNotBeginIsSentOnAnotherConnection) {
  HoldingTransport transport;
  HedgedAttempts attempts(transport, kAtOnce);
  auto answer = start(attempts);
  EXPECT_FALSE(transport.wait_for(0).on_new_connection);
  EXPECT_TRUE(transport.wait_for(1).on_new_connection);
  EXPECT_EQ(transport.wait_for(1).url, "https://host/x");
  transport.answer(1, answer_with(206));
  EXPECT_EQ(answer.get()->status, 206);
  EXPECT_EQ(transport.given_up(), 1U);
  EXPECT_EQ(attempts.hedges(), 1U);
}

TEST(HedgedAttempts, TheFirstRequestMayWinAndNoneIsSentAThirdTime) {
  HoldingTransport transport;
  HedgedAttempts attempts(transport, kAtOnce);
  auto answer = start(attempts);
  transport.wait_for(1);
  transport.answer(0, answer_with(206));
  EXPECT_EQ(answer.get()->status, 206);
  EXPECT_TRUE(transport.wait_for(1).progress->is_given_up());
  EXPECT_EQ(transport.given_up(), 1U);
  EXPECT_EQ(transport.started(), 2U);
}

TEST(HedgedAttempts, ARequestWhoseAnswerHasBegunIsNotSentAgain) {
  HoldingTransport transport;
  HedgedAttempts attempts(transport, kAtOnce);
  transport.begin_answers(true);
  auto begun = start(attempts);
  transport.begin_answers(false);
  auto late = start(attempts);
  transport.wait_for(2);  // that of the later one
  transport.answer(2, answer_with(200));
  EXPECT_EQ(late.get()->status, 200);
  transport.answer(0, answer_with(206));
  EXPECT_EQ(begun.get()->status, 206);
  EXPECT_EQ(attempts.hedges(), 1U);
}

TEST(HedgedAttempts, AFailureThatMayPassWaitsForTheOtherRequest) {
  HoldingTransport transport;
  HedgedAttempts attempts(transport, kAtOnce);
  auto answer = start(attempts);
  transport.answer(1, codec::io_error(EHOSTUNREACH, "GET"));
  EXPECT_EQ(answer.wait_for(milliseconds(0)), std::future_status::timeout);
  transport.answer(0, answer_with(206));
  EXPECT_EQ(answer.get()->status, 206);

  auto throttled = start(attempts);
  transport.answer(3, answer_with(503));
  EXPECT_EQ(throttled.wait_for(milliseconds(0)), std::future_status::timeout);
  transport.answer(2, codec::io_error(ETIMEDOUT, "GET"));
  EXPECT_EQ(throttled.get().error().sys, ETIMEDOUT);
}

TEST(HedgedAttempts, AFailureThatLastsIsReportedAtOnce) {
  HoldingTransport transport;
  HedgedAttempts attempts(transport, kAtOnce);
  auto missing = start(attempts);
  transport.answer(1, answer_with(404));
  EXPECT_EQ(missing.get()->status, 404);
  auto compressed = start(attempts);
  transport.answer(3, codec::unsupported("compressed"));
  EXPECT_EQ(compressed.get().error().kind, codec::ErrorKind::unsupported);
  EXPECT_EQ(transport.given_up(), 2U);
}

TEST(HedgedAttempts, AFailureBeforeTheSecondRequestIsReportedAtOnce) {
  HoldingTransport transport;
  HedgedAttempts attempts(transport, kNever);
  auto answer = start(attempts);
  transport.answer(0, codec::io_error(EHOSTUNREACH, "GET"));
  EXPECT_EQ(answer.get().error().sys, EHOSTUNREACH);
}

TEST(HedgedAttempts, RequestsThatChangeSomethingAreSentOnce) {
  HoldingTransport transport;
  HedgedAttempts attempts(transport, kAtOnce);
  auto put = start(attempts, "PUT");
  auto post = start(attempts, "POST");
  auto get = start(attempts);
  transport.answer(3, answer_with(200));  // the second request of the GET
  EXPECT_EQ(get.get()->status, 200);
  transport.answer(0, answer_with(200));
  transport.answer(1, answer_with(200));
  EXPECT_EQ(put.get()->status + post.get()->status, 400);
  EXPECT_EQ(transport.started(), 4U);
}

TEST(HedgedAttempts, AServerThatAnswersNothingIsNotAskedTwiceAsMuch) {
  HoldingTransport transport;
  HedgedAttempts attempts(transport, kAtOnce);
  std::vector<std::future<Result<HttpAnswer>>> answers;
  for (int i = 0; i < 30; ++i)
    answers.push_back(start(attempts));
  // 8 at once, and each tenth request one more.
  transport.wait_for(30 + HedgePolicy::kBurst - 1);
  std::size_t held = transport.started();
  for (std::size_t i = 0; i < held; held = transport.started(), ++i)
    transport.answer(i, answer_with(206));
  for (auto& answer : answers)
    EXPECT_EQ(answer.get()->status, 206);
  EXPECT_LE(attempts.hedges(), HedgePolicy::kBurst + 30 / HedgePolicy::kRequestsEach);
}

TEST(HedgedAttempts, NothingIsSentASecondTimeAfterStopOrWithoutTime) {
  HoldingTransport transport;
  HedgedAttempts attempts(transport, kAtOnce);
  auto late = start(attempts, "GET", milliseconds(0));
  auto in_time = start(attempts);
  transport.wait_for(2);  // that of the one in time
  attempts.stop();
  attempts.join();
  auto after = start(attempts);
  for (const std::size_t number : {0, 1, 3})
    transport.answer(number, answer_with(206));
  EXPECT_EQ(late.get()->status + in_time.get()->status + after.get()->status, 3 * 206);
  EXPECT_EQ(attempts.hedges(), 1U);
}

TEST(HedgedAttempts, AttemptsMayEndAfterTheirStarter) {
  HoldingTransport transport;
  std::future<Result<HttpAnswer>> answer;
  {
    HedgedAttempts attempts(transport, kAtOnce);
    answer = start(attempts);
    transport.wait_for(1);
  }
  transport.answer(0, answer_with(206));
  EXPECT_EQ(answer.get()->status, 206);
}

}  // namespace
}  // namespace cframefs::test::hedged_attempts_tests
