#include "frame/remote/listings/caching_listing.h"

#include <atomic>
#include <cerrno>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/waiting_threads.h"

namespace cframefs::test {
namespace {

using frame::CachingListing;
using frame::ListedEntry;
using std::chrono::seconds;

/// Directories with one entry, named by the number of the listing. A gate can hold the listings.
class CountingListing final : public frame::Listing {
 public:
  codec::Result<std::vector<ListedEntry>> list(const std::string& directory) override {
    const int number = ++count;
    const codec::MutexLock lock(mutex);
    while (is_held)
      changed.wait(mutex);
    if (directory == "missing") return codec::io_error(ENOENT, "list");
    return std::vector<ListedEntry>{{std::to_string(number), false, std::nullopt}};
  }
  std::string url_of(const std::string& path) const override { return path; }
  void hold(bool holds) {
    const codec::MutexLock lock(mutex);
    is_held = holds;
    changed.notify_all();
  }

  std::atomic<int> count{0};
  codec::Mutex mutex;
  codec::CondVar changed;
  bool is_held GUARDED_BY(mutex) = false;
};

class CachingListingTest : public testing::Test {
 protected:
  static std::string listed(CachingListing& cache, const std::string& directory) {
    const auto found = cache.list(directory);
    return found ? (*found)->entries.at(0).name : codec::describe(found.error());
  }
  CachingListing cache_for(seconds ttl, std::size_t most = CachingListing::kMostEntries) {
    return {source_, ttl, most, [this] { return now_; }};
  }

  CountingListing source_;
  std::chrono::steady_clock::time_point now_{};
};

TEST_F(CachingListingTest, ADirectoryIsValidForItsTime) {
  CachingListing cache = cache_for(seconds(10));
  EXPECT_EQ(listed(cache, "d"), "1");
  EXPECT_EQ(listed(cache, "d"), "1");
  now_ += seconds(9);
  EXPECT_EQ(listed(cache, "d"), "1");
  ASSERT_NE(cache.remembered("d"), nullptr);
  now_ += seconds(1);
  EXPECT_EQ(cache.remembered("d"), nullptr);
  EXPECT_EQ(listed(cache, "d"), "2");
  EXPECT_EQ(listed(cache, "e"), "3") << "another directory";
}

TEST_F(CachingListingTest, NothingIsRememberedForNoTime) {
  CachingListing cache = cache_for(seconds(0));
  EXPECT_EQ(listed(cache, "d"), "1");
  EXPECT_EQ(listed(cache, "d"), "2");
  EXPECT_EQ(cache.remembered("d"), nullptr);
}

TEST_F(CachingListingTest, FailuresAreNotRemembered) {
  CachingListing cache = cache_for(seconds(10));
  EXPECT_FALSE(cache.list("missing"));
  EXPECT_FALSE(cache.list("missing"));
  EXPECT_EQ(source_.count, 2);
}

TEST_F(CachingListingTest, TheDirectoryUsedLongestAgoGoesFirst) {
  CachingListing cache = cache_for(seconds(10), 2 * (1 + CachingListing::kDirectoryCharge));
  EXPECT_EQ(listed(cache, "a"), "1");
  EXPECT_EQ(listed(cache, "b"), "2");
  EXPECT_EQ(listed(cache, "a"), "1");
  EXPECT_EQ(listed(cache, "c"), "3");
  EXPECT_EQ(listed(cache, "a"), "1");
  EXPECT_EQ(listed(cache, "b"), "4");
}

TEST_F(CachingListingTest, ThreadsWaitForOneRequestPerDirectory) {
  for (const seconds ttl : {seconds(10), seconds(0)}) {
    CachingListing cache = cache_for(ttl);
    source_.count = 0;
    source_.hold(true);
    std::vector<std::string> names(8);
    WaitingThreads threads;
    threads.start([&] { names[0] = listed(cache, "d"); });
    threads.await_sleep();
    for (std::size_t i = 1; i < names.size(); ++i)
      threads.start([&, i] { names[i] = listed(cache, "d"); });
    threads.await_sleep();
    EXPECT_EQ(source_.count, 1);
    source_.hold(false);
    threads.join();
    EXPECT_EQ(names[0], "1");
    for (std::size_t i = 1; i < names.size(); ++i) {
      // Without a time of validity the running request may tell an older state than there was at the call.
      if (ttl.count() == 0) {
        EXPECT_NE(names[i], "1");
      } else {
        EXPECT_EQ(names[i], "1");
      }
    }
  }
}

TEST_F(CachingListingTest, ThreadsThatWaitShareAFailure) {
  CachingListing cache = cache_for(seconds(10));
  source_.hold(true);
  std::atomic<int> failures{0};
  WaitingThreads threads;
  for (int i = 0; i < 8; ++i) {
    threads.start([&] {
      if (!cache.list("missing")) ++failures;
    });
  }
  threads.await_sleep();
  source_.hold(false);
  threads.join();
  EXPECT_EQ(failures, 8);
  EXPECT_EQ(source_.count, 1) << "8 threads would wait 8 times for a dead server";
}

TEST_F(CachingListingTest, ADirectoryThatIsListedHoldsUpNoOther) {
  CachingListing cache = cache_for(seconds(10));
  EXPECT_EQ(listed(cache, "known"), "1");
  source_.hold(true);
  WaitingThreads slow;
  slow.start([&] { listed(cache, "slow"); });
  slow.await_sleep();
  EXPECT_EQ(source_.count, 2);
  EXPECT_EQ(listed(cache, "known"), "1");
  source_.hold(false);
}

TEST(ListedDirectoryTest, NamesAreFoundExactly) {
  frame::ListedDirectory directory;
  directory.entries = {
      {"b", false, std::nullopt}, {"a", false, std::nullopt}, {"b", true, std::nullopt}, {"ab", false, std::nullopt}};
  EXPECT_EQ(frame::merge_names(directory.entries), 1U);
  ASSERT_EQ(directory.entries.size(), 3U);
  ASSERT_NE(directory.find("b"), nullptr);
  EXPECT_TRUE(directory.find("b")->is_directory);
  for (const std::string name : {"", "aa", "abc", "c"})
    EXPECT_EQ(directory.find(name), nullptr) << name;
}

}  // namespace
}  // namespace cframefs::test
