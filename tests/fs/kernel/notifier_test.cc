// Tasks of a Notifier while the kernel blocks some of them.
#include "fs/kernel/notifier.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fs/gate.h"

namespace cframefs::fs {
namespace {

using Lane = Notifier::Lane;

// Longer than any task takes that does not block.
constexpr std::chrono::seconds kLongEnough{60};

class NotifierTest : public testing::Test {
 protected:
  void SetUp() override { notifier_.start(); }
  void TearDown() override {
    gate_.open();
    notifier_.stop();
  }
  /// Posts a task that blocks at the gate.
  void post_held(Lane lane, std::uint64_t id, const std::string& what = "") {
    notifier_.post(lane, id, what, [this] { gate_.pass(); });
  }
  void post_note(Lane lane, std::uint64_t id, const std::string& what) {
    notifier_.post(lane, id, what, [this, what] {
      codec::MutexLock lock(mutex_);
      done_.push_back(what);
    });
  }
  std::vector<std::string> done() {
    codec::MutexLock lock(mutex_);
    return done_;
  }
  bool is_done(Lane lane, std::uint64_t id) { return notifier_.wait(lane, id, kLongEnough); }

  Gate gate_;
  Notifier notifier_;
  codec::Mutex mutex_;
  std::vector<std::string> done_ GUARDED_BY(mutex_);
};

TEST_F(NotifierTest, AFileThatBlocksDelaysNoOther) {
  for (std::uint64_t file = 1; file < Notifier::kMaxThreads; ++file) {
    post_held(Lane::pages, file);
    gate_.wait_for(static_cast<unsigned>(file));
    // Every later queue gets its turn, not only the first.
    if (file + 1 == Notifier::kMaxThreads) break;
    post_note(Lane::pages, 1000 + file, "other");
    EXPECT_TRUE(is_done(Lane::pages, 1000 + file));
  }
}

TEST_F(NotifierTest, TasksPostedTogetherDoNotWaitForTheFirst) {
  post_held(Lane::pages, 1);
  post_held(Lane::pages, 2);
  post_note(Lane::pages, 3, "third");
  EXPECT_TRUE(is_done(Lane::pages, 3));
}

TEST_F(NotifierTest, AttributesAreInvalidatedHoweverManyFilesBlock) {
  for (std::uint64_t file = 1; file <= 2 * Notifier::kMaxThreads; ++file)
    post_held(Lane::pages, file);
  gate_.wait_for(Notifier::kMaxThreads - 1);
  post_note(Lane::attributes, 1, "attributes");
  EXPECT_TRUE(is_done(Lane::attributes, 1));
  EXPECT_FALSE(notifier_.wait(Lane::pages, 2 * Notifier::kMaxThreads, std::chrono::milliseconds(1)));
  gate_.open();
  for (std::uint64_t file = 1; file <= 2 * Notifier::kMaxThreads; ++file)
    EXPECT_TRUE(is_done(Lane::pages, file));
}

TEST_F(NotifierTest, TasksOfOneQueueRunInOrder) {
  std::vector<std::string> names;
  post_held(Lane::names, 7, "first");
  for (int i = 0; i < 50; ++i) {
    names.push_back("name" + std::to_string(i));
    post_note(Lane::names, 7, names.back());
  }
  // Queues that do not block bring more threads to work.
  for (std::uint64_t id = 100; id < 150; ++id)
    post_note(Lane::pages, id, "");
  for (std::uint64_t id = 100; id < 150; ++id)
    EXPECT_TRUE(is_done(Lane::pages, id));
  gate_.open();
  EXPECT_TRUE(is_done(Lane::names, 7));
  auto in_order = done();
  std::erase(in_order, "");
  EXPECT_EQ(in_order, names);
}

TEST_F(NotifierTest, APendingTaskIsNotPostedTwice) {
  post_held(Lane::pages, 1, "first");
  gate_.wait_for(1);
  for (int i = 0; i < 3; ++i) {
    post_note(Lane::pages, 1, "again");
    post_note(Lane::pages, 1, "other");
  }
  gate_.open();
  EXPECT_TRUE(is_done(Lane::pages, 1));
  EXPECT_EQ(done(), (std::vector<std::string>{"again", "other"}));
}

TEST_F(NotifierTest, ATaskPostedWhileItRunsRunsOnceMore) {
  std::atomic<int> runs{0};
  const auto run = [&] {
    if (runs.fetch_add(1) == 0) gate_.pass();
  };
  notifier_.post(Lane::pages, 1, "", run);
  gate_.wait_for(1);
  notifier_.post(Lane::pages, 1, "", run);
  EXPECT_TRUE(notifier_.is_busy(Lane::pages, 1));
  gate_.open();
  EXPECT_TRUE(is_done(Lane::pages, 1));
  EXPECT_EQ(runs, 2);
  EXPECT_FALSE(notifier_.is_busy(Lane::pages, 1));
}

TEST_F(NotifierTest, WaitIgnoresOtherQueuesAndLaterTasks) {
  post_held(Lane::pages, 1);
  EXPECT_TRUE(is_done(Lane::rest, 1));
  EXPECT_TRUE(is_done(Lane::pages, 2));
  EXPECT_FALSE(notifier_.wait(Lane::pages, 1, std::chrono::milliseconds(1)));
}

TEST_F(NotifierTest, StopDiscardsPendingTasksAndWaitsForRunningOnes) {
  post_held(Lane::pages, 1);
  gate_.wait_for(1);
  post_note(Lane::pages, 1, "pending");
  auto waits = std::async(std::launch::async, [this] { return is_done(Lane::pages, 1); });
  auto stopped = std::async(std::launch::async, [this] { notifier_.stop(); });
  EXPECT_TRUE(waits.get()) << "no task will follow";
  gate_.open();
  stopped.get();
  EXPECT_TRUE(done().empty());
  post_note(Lane::pages, 1, "late");
  EXPECT_FALSE(notifier_.is_busy(Lane::pages, 1));
}

TEST_F(NotifierTest, ATaskThatRunsOutOfMemoryIsDoneOnceMore) {
  std::atomic<int> runs{0};
  notifier_.post(Lane::pages, 1, "", [&] {
    if (runs.fetch_add(1) < 2) throw std::bad_alloc();
  });
  EXPECT_TRUE(is_done(Lane::pages, 1));
  EXPECT_EQ(runs, 3);
}

}  // namespace
}  // namespace cframefs::fs
