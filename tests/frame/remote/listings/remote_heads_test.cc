#include "frame/remote/listings/remote_heads.h"

#include <cerrno>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "frame/remote/listings/look_ahead.h"
#include "tests/support/fake_objects.h"
#include "tests/support/fake_requests.h"
#include "tests/support/keeping_store.h"

namespace cframefs::test {
namespace {

using frame::LookAhead;
using frame::RemoteHeads;
using std::chrono::seconds;

/// Calls a function before each request.
class HookedRequests final : public frame::Requests {
 public:
  HookedRequests(frame::Requests& requests, std::function<void()> hook) : requests_(requests), hook_(std::move(hook)) {}
  std::future<codec::Result<frame::HttpAnswer>> start(frame::HttpRequest request) override {
    hook_();
    return requests_.start(std::move(request));
  }

 private:
  frame::Requests& requests_;
  const std::function<void()> hook_;
};

class RemoteHeadsTest : public testing::Test {
 protected:
  RemoteHeadsTest() {
    for (int i = 0; i < 200; ++i)
      objects_.put(std::to_string(i), std::vector<std::uint8_t>(100, static_cast<std::uint8_t>(i)), "\"t\"");
  }
  RemoteHeads heads_for(seconds ttl) {
    return {requests_, ttl, [this] { return now_; }};
  }
  /// The heads of another mount with the same store.
  RemoteHeads heads_with_store() {
    return {requests_, seconds(10), [this] { return now_; }, store_};
  }
  std::string_view last_header(std::string_view name) {
    last_ = requests_.requests().back();
    for (const frame::HttpHeader& header : last_.headers) {
      if (header.name == name) return header.value;
    }
    return {};
  }
  static std::string url(const std::string& path) { return FakeObjects::kRoot + path; }
  static std::vector<std::string> urls(int first, int end) {
    std::vector<std::string> all;
    for (int i = first; i < end; ++i)
      all.push_back(url(std::to_string(i)));
    return all;
  }

  KeepingStore store_;
  frame::HttpRequest last_;
  FakeObjects objects_{false};
  FakeRequests requests_{[this](const frame::HttpRequest& request) { return objects_.answer(request); }};
  std::chrono::steady_clock::time_point now_{};
};

TEST_F(RemoteHeadsTest, AHeadHasTheStateAndTheFirstBytes) {
  std::vector<std::uint8_t> content(100'000);
  for (std::size_t i = 0; i < content.size(); ++i)
    content[i] = static_cast<std::uint8_t>(i * 7 / 3);
  objects_.put("long", content, "\"x\"");
  RemoteHeads heads = heads_for(seconds(10));
  const auto head = heads.head(url("long"));
  ASSERT_TRUE(head) << codec::describe(head.error());
  EXPECT_EQ((*head)->state.length, 100'000U);
  EXPECT_EQ((*head)->state.entity_tag, "\"x\"");
  content.resize(RemoteHeads::kHeadBytes);
  EXPECT_EQ((*head)->bytes, content);
  EXPECT_EQ(heads.kept(url("long"), (*head)->state), *head);
  auto other = (*head)->state;
  other.entity_tag = "\"y\"";
  EXPECT_EQ(heads.kept(url("long"), other), nullptr);
}

TEST_F(RemoteHeadsTest, ALaterMountAsksWhetherWhatTheStoreKeepsStillHolds) {
  const auto first = heads_with_store().head(url("7"));
  ASSERT_TRUE(first);
  EXPECT_EQ(last_header("If-None-Match"), "");
  RemoteHeads later = heads_with_store();
  EXPECT_TRUE(later.is_known(url("7")));
  EXPECT_FALSE(later.is_known(url("8")));
  const auto again = later.head(url("7"));
  ASSERT_TRUE(again) << codec::describe(again.error());
  EXPECT_EQ(last_header("If-None-Match"), "\"t\"");
  EXPECT_EQ((*again)->bytes, (*first)->bytes);
  EXPECT_EQ((*again)->state.length, 100U);
  EXPECT_EQ(requests_.count(), 2U);
  // A known state needs no request for its bytes.
  ASSERT_NE(heads_with_store().kept(url("7"), (*first)->state), nullptr);
  EXPECT_EQ(requests_.count(), 2U);
}

TEST_F(RemoteHeadsTest, WhatTheStoreKeepsOfAReplacedObjectIsNotUsed) {
  ASSERT_TRUE(heads_with_store().head(url("7")));
  objects_.put("7", std::vector<std::uint8_t>(50, 9), "\"other\"");
  const auto now = heads_with_store().head(url("7"));
  ASSERT_TRUE(now);
  EXPECT_EQ((*now)->state.entity_tag, "\"other\"");
  EXPECT_EQ((*now)->bytes, std::vector<std::uint8_t>(50, 9));
  const auto later = heads_with_store().head(url("7"));
  ASSERT_TRUE(later);
  EXPECT_EQ(last_header("If-None-Match"), "\"other\"");
  EXPECT_EQ((*later)->bytes, (*now)->bytes);
}

TEST_F(RemoteHeadsTest, WithoutATagTheStoreGoesByTheDate) {
  objects_.put("7", std::vector<std::uint8_t>(50, 9), "");
  ASSERT_TRUE(heads_with_store().head(url("7")));
  const auto later = heads_with_store().head(url("7"));
  ASSERT_TRUE(later) << codec::describe(later.error());
  EXPECT_EQ(last_header("If-Modified-Since"), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ((*later)->bytes, std::vector<std::uint8_t>(50, 9));
}

TEST_F(RemoteHeadsTest, ADamagedRecordOfTheStoreIsNone) {
  ASSERT_TRUE(heads_with_store().head(url("7")));
  const auto whole = store_.kept.begin()->second;
  for (const std::size_t length : {std::size_t{0}, std::size_t{17}, std::size_t{19}}) {
    store_.kept.begin()->second.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    const auto head = heads_with_store().head(url("7"));
    ASSERT_TRUE(head) << length;
    EXPECT_EQ(last_header("If-None-Match"), "") << length;
    EXPECT_EQ((*head)->bytes.size(), 100U) << length;
  }
}

TEST_F(RemoteHeadsTest, AStateWithoutBytesIsKeptWithoutThem) {
  const frame::ObjectState state{"\"t\"", "", 0, 100};
  heads_with_store().remember(url("7"), state);
  RemoteHeads later = heads_with_store();
  EXPECT_EQ(later.kept(url("7"), state), nullptr);
  const auto found = later.state(url("7"));
  ASSERT_TRUE(found) << codec::describe(found.error());
  EXPECT_EQ(last_header("If-None-Match"), "\"t\"");
  EXPECT_EQ(found->length, 100U);
}

TEST_F(RemoteHeadsTest, AShortAndAnEmptyObjectHaveHeads) {
  objects_.put("empty", {}, "\"e\"");
  RemoteHeads heads = heads_for(seconds(10));
  const auto head = heads.head(url("7"));
  ASSERT_TRUE(head);
  EXPECT_EQ((*head)->state.length, 100U);
  EXPECT_EQ((*head)->bytes.size(), 100U);
  const auto empty = heads.state(url("empty"));
  ASSERT_TRUE(empty) << codec::describe(empty.error());
  EXPECT_EQ(empty->length, 0U);
}

TEST_F(RemoteHeadsTest, AStateIsValidForItsTime) {
  RemoteHeads heads = heads_for(seconds(10));
  ASSERT_TRUE(heads.state(url("1")));
  now_ += seconds(9);
  ASSERT_TRUE(heads.state(url("1")));
  ASSERT_TRUE(heads.head(url("1")));
  EXPECT_EQ(requests_.count(), 1U);
  objects_.put("1", {1, 2, 3}, "\"new\"");
  EXPECT_EQ(heads.state(url("1"))->entity_tag, "\"t\"");
  now_ += seconds(1);
  EXPECT_FALSE(heads.remembered_state(url("1")));
  EXPECT_EQ(heads.state(url("1"))->entity_tag, "\"new\"");
  EXPECT_EQ((*heads.head(url("1")))->bytes, (std::vector<std::uint8_t>{1, 2, 3}));
}

TEST_F(RemoteHeadsTest, NoStateIsRememberedForNoTime) {
  RemoteHeads heads = heads_for(seconds(0));
  heads.ask_ahead(urls(0, 10));
  EXPECT_EQ(requests_.count(), 0U) << "what comes ahead would be too old";
  ASSERT_TRUE(heads.state(url("1")));
  ASSERT_TRUE(heads.state(url("1")));
  EXPECT_EQ(requests_.count(), 2U);
}

TEST_F(RemoteHeadsTest, AForgottenStateIsAskedForAgain) {
  RemoteHeads heads = heads_for(seconds(10));
  ASSERT_TRUE(heads.state(url("1")));
  objects_.put("1", {1}, "\"new\"");
  heads.forget(url("1"));
  EXPECT_EQ(heads.state(url("1"))->entity_tag, "\"new\"");
  heads.remember(url("1"), frame::ObjectState{"\"told\"", "", 0, 5});
  EXPECT_EQ(heads.state(url("1"))->entity_tag, "\"told\"");
}

TEST_F(RemoteHeadsTest, SixtyFourAreAskedForAtTheSameTime) {
  RemoteHeads heads = heads_for(seconds(10));
  requests_.hold();
  heads.ask_ahead(urls(0, 200));
  EXPECT_EQ(requests_.in_flight(), 64U);
  heads.ask_ahead(urls(0, 200));
  EXPECT_EQ(requests_.in_flight(), 64U) << "none twice, and no more";
  std::thread reader([&] { EXPECT_EQ((*heads.head(url("3")))->bytes.at(0), 3); });
  std::thread late(
      [&] { EXPECT_EQ((*heads.head(url("199")))->bytes.at(0), 199) << "what is needed now is asked for"; });
  while (requests_.in_flight() < 65)
    std::this_thread::yield();
  requests_.release();
  reader.join();
  late.join();
  for (const std::string& one : urls(0, 64))
    EXPECT_TRUE(heads.state(one));
  EXPECT_EQ(requests_.count(), 65U);
  heads.ask_ahead(urls(60, 70));
  EXPECT_EQ(requests_.count(), 71U) << "only those that are not known";
}

TEST_F(RemoteHeadsTest, ThreadsWaitForOneRequest) {
  RemoteHeads heads = heads_for(seconds(10));
  requests_.hold();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] { EXPECT_TRUE(heads.state(url("5"))); });
  while (requests_.in_flight() == 0)
    std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  requests_.release();
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(requests_.count(), 1U);
}

TEST_F(RemoteHeadsTest, FailuresAreNotRemembered) {
  RemoteHeads heads = heads_for(seconds(10));
  heads.ask_ahead({url("later")});
  const auto missing = heads.state(url("later"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().sys, ENOENT);
  objects_.put("later", {1}, "\"t\"");
  EXPECT_TRUE(heads.state(url("later")));
}

TEST_F(RemoteHeadsTest, AServerThatLiesIsFoundOut) {
  const auto lying = [](const std::string& range, std::size_t bytes, int status = 206,
                        const std::string& encoding = {}) {
    FakeRequests requests([&](const frame::HttpRequest&) {
      auto answer = answer_of(std::string(bytes, 'x'), {{"ETag", "\"t\""},
                                                        {"Content-Range", range},
                                                        {"Content-Length", std::to_string(bytes)},
                                                        {"Content-Encoding", encoding}});
      answer.status = status;
      return answer;
    });
    RemoteHeads heads(requests, seconds(10));
    return !heads.state("http://x/");
  };
  EXPECT_FALSE(lying("bytes 0-4095/5000", 4096));
  EXPECT_FALSE(lying("bytes 0-9/10", 10));
  EXPECT_FALSE(lying("", 500, 200)) << "a server that ignores ranges may send a short object whole";
  EXPECT_TRUE(lying("bytes 0-4095/5000", 4095));
  EXPECT_TRUE(lying("bytes 0-9/5000", 10));
  EXPECT_TRUE(lying("bytes 1-4096/5000", 4096));
  EXPECT_TRUE(lying("bytes 0-4095/*", 4096));
  EXPECT_TRUE(lying("", 4096));
  EXPECT_TRUE(lying("bytes 0-4095/5000", 4096, 204));
  EXPECT_TRUE(lying("bytes 0-4095/5000", 4096, 206, "gzip"));
  EXPECT_TRUE(lying("bytes 0-4095/99999999999999999999", 4096));
}

TEST_F(RemoteHeadsTest, KeptBytesAreBounded) {
  const std::size_t many = RemoteHeads::kMostKeptBytes / RemoteHeads::kHeadBytes + 100;
  RemoteHeads heads = heads_for(seconds(10));
  for (std::size_t i = 0; i < many; ++i) {
    objects_.put("n" + std::to_string(i), std::vector<std::uint8_t>(RemoteHeads::kHeadBytes), "\"t\"");
    ASSERT_TRUE(heads.state(url("n" + std::to_string(i))));
  }
  const auto state = heads.remembered_state(url("n0"));
  ASSERT_TRUE(state) << "states outlive bytes";
  EXPECT_EQ(heads.kept(url("n0"), *state), nullptr);
  EXPECT_NE(heads.kept(url("n" + std::to_string(many - 1)), *state), nullptr);
  EXPECT_TRUE(heads.head(url("n0")));
  EXPECT_EQ(requests_.count(), many + 1);
}

TEST(LookAheadTest, OrderIsFoundWithTheSecondEntry) {
  LookAhead ahead;
  EXPECT_EQ(ahead.note("d", 0), 0U);
  EXPECT_EQ(ahead.note("d", 1), 8U);
  EXPECT_EQ(ahead.note("d", 2), 16U);
  EXPECT_EQ(ahead.note("d", 3), 32U);
  EXPECT_EQ(ahead.note("d", 4), 64U);
  EXPECT_EQ(ahead.note("d", 5), 64U);
  EXPECT_EQ(ahead.note("d", 5), 64U) << "twice the same";
  EXPECT_EQ(ahead.note("e", 6), 0U) << "another directory";
}

TEST(LookAheadTest, SingleLookUpsLookAheadOfNothing) {
  LookAhead ahead;
  for (const std::size_t index : {5000, 100, 9000, 2000, 7000, 300, 4000})
    EXPECT_EQ(ahead.note("d", static_cast<std::size_t>(index)), 0U) << index;
}

TEST(LookAheadTest, TwoReadersDoNotDisturbEachOther) {
  LookAhead ahead;
  ahead.note("d", 0);
  ahead.note("d", 5000);
  for (std::size_t i = 1; i < 10; ++i) {
    EXPECT_GT(ahead.note("d", i), 0U);
    EXPECT_GT(ahead.note("d", 5000 + i), 0U);
  }
}

TEST_F(RemoteHeadsTest, ARequestIsStartedWithoutALock) {
  RemoteHeads* heads = nullptr;
  int started = 0;
  HookedRequests hooked(requests_, [&] {
    ++started;
    const auto other = std::async(std::launch::async, [&] { heads->forget(url("2")); });
    EXPECT_EQ(other.wait_for(seconds(10)), std::future_status::ready);
  });
  RemoteHeads asking(hooked, seconds(10), [this] { return now_; });
  heads = &asking;
  EXPECT_TRUE(asking.head(url("1")));
  asking.ask_ahead(urls(1, 3));
  EXPECT_EQ(started, 2);
}

}  // namespace
}  // namespace cframefs::test
