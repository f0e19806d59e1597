#include "frame/remote/objects/remote_object.h"

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "tests/frame/remote/objects/served_objects.h"

namespace cframefs::test::remote_object_tests {
namespace {

using frame::FetchedRanges;
using frame::FileOffset;
using frame::ObjectReading;
using frame::ObjectState;
using frame::RangeStore;
using frame::RemoteObject;
using Ranges = std::vector<std::string>;

constexpr std::uint64_t kKiB = 1U << 10;
constexpr std::uint64_t kMiB = 1U << 20;
const std::string kUrl = "http://host/object";

/// Keeps blocks in memory.
class MemoryStore final : public RangeStore {
 public:
  std::optional<std::vector<std::uint8_t>> find(const std::string& state, std::uint64_t block) override {
    codec::MutexLock lock(mutex_);
    const auto found = blocks_.find({state, block});
    if (found == blocks_.end()) return std::nullopt;
    return found->second;
  }
  bool may_have(const std::string& state, std::uint64_t block) override { return find(state, block).has_value(); }
  void keep(const std::string& state, std::uint64_t block, codec::ByteView bytes) override {
    codec::MutexLock lock(mutex_);
    blocks_[{state, block}] = std::vector<std::uint8_t>(bytes.begin(), bytes.end());
  }
  bool keeps() const override { return true; }
  std::size_t blocks() const {
    codec::MutexLock lock(mutex_);
    return blocks_.size();
  }

 private:
  mutable codec::Mutex mutex_;
  std::map<std::pair<std::string, std::uint64_t>, std::vector<std::uint8_t>> blocks_ GUARDED_BY(mutex_);
};

class RemoteObjectTest : public ::testing::Test {
 protected:
  void put(std::size_t size) {
    bytes_ = object_bytes(size);
    server_.put(kUrl, {bytes_, "\"t1\"", 784111777, ""});
  }
  ObjectState listed() const { return {"\"t1\"", "", 784111777, bytes_.size()}; }

  std::shared_ptr<RemoteObject> open(const ObjectState* expected = nullptr) {
    auto opened = RemoteObject::open(reading_, kUrl, expected);
    EXPECT_TRUE(opened) << opened.error().reason;
    return opened ? *opened : nullptr;
  }
  /// Reads a range and compares it with the object.
  testing::AssertionResult reads(RemoteObject& object, std::uint64_t at, std::size_t size) {
    std::vector<std::uint8_t> into(size);
    if (auto done = object.read(FileOffset{at}, into); !done) {
      return testing::AssertionFailure() << done.error().reason;
    }
    if (!std::equal(into.begin(), into.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(at))) {
      return testing::AssertionFailure() << "other bytes at " << at;
    }
    return testing::AssertionSuccess();
  }
  static codec::Error failure(RemoteObject& object, std::uint64_t at, std::size_t size) {
    std::vector<std::uint8_t> into(size);
    auto done = object.read(FileOffset{at}, into);
    EXPECT_FALSE(done) << "read " << size << " bytes at " << at;
    return done ? codec::Error{codec::ErrorKind::invalid, 0, "none"} : done.error();
  }
  Ranges ranges_from(std::size_t first) const {
    auto all = server_.ranges();
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(first, all.size())));
    return all;
  }

  std::vector<std::uint8_t> bytes_;
  ServedObjects server_;
  FetchedRanges memory_;
  ObjectReading reading_{server_, memory_, frame::no_store()};
};

TEST_F(RemoteObjectTest, OpensAndReadsTheFirstAndLastBytesInOneRoundTrip) {
  put(10 * kMiB);
  const auto object = open();
  EXPECT_EQ(object->state(), listed());
  EXPECT_TRUE(reads(*object, 0, 4096));
  EXPECT_TRUE(reads(*object, 10 * kMiB - 4096, 4096));
  EXPECT_EQ(server_.ranges(), (Ranges{"bytes=0-65535", "bytes=-262144"}));
  EXPECT_EQ(server_.round_trips(), 1U);
}

TEST_F(RemoteObjectTest, OpensObjectsOfAnyLength) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{65535}, std::size_t{65536},
                                 std::size_t{65537}, std::size_t{131071}, std::size_t{131073}, std::size_t{3000001}}) {
    put(size);
    const auto object = open();
    ASSERT_NE(object, nullptr);
    EXPECT_EQ(object->state().length, size);
    EXPECT_TRUE(reads(*object, 0, size)) << size;
    const ObjectState state = listed();
    FetchedRanges other;
    const auto lazy = RemoteObject::open({server_, other, frame::no_store()}, kUrl, &state);
    ASSERT_TRUE(lazy);
    EXPECT_TRUE(reads(**lazy, 0, size)) << size;
    EXPECT_EQ(failure(**lazy, size, 1).kind, codec::ErrorKind::corruption);
  }
}

TEST_F(RemoteObjectTest, AMissingObjectIsMissing) {
  const auto opened = RemoteObject::open(reading_, kUrl, nullptr);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().sys, ENOENT);
}

TEST_F(RemoteObjectTest, SendsNothingBeforeTheFirstReadOfAListedObject) {
  put(10 * kMiB);
  const ObjectState state = listed();
  const auto object = open(&state);
  EXPECT_EQ(server_.requests(), 0U);
  EXPECT_TRUE(reads(*object, 0, 80));
  EXPECT_TRUE(reads(*object, 10 * kMiB - 100, 100));
  EXPECT_EQ(server_.ranges(), (Ranges{"bytes=0-65535", "bytes=10420224-10485759"}));
  EXPECT_EQ(server_.round_trips(), 1U);
}

TEST_F(RemoteObjectTest, AListedObjectThatWasReplacedIsStale) {
  put(kMiB);
  const ObjectState state = listed();
  const auto object = open(&state);
  server_.put(kUrl, {object_bytes(kMiB, 2), "\"t2\"", 784111778, ""});
  EXPECT_EQ(failure(*object, 0, 80).kind, codec::ErrorKind::stale);
}

TEST_F(RemoteObjectTest, FetchesWhatIsExpectedInOneRequest) {
  put(10 * kMiB);
  const auto object = open();
  object->expect(FileOffset{1'000'001}, 500'000);
  EXPECT_TRUE(reads(*object, 1'200'000, 32));
  EXPECT_TRUE(reads(*object, 1'000'001, 500'000));
  EXPECT_EQ(ranges_from(2), (Ranges{"bytes=1000001-1500000"}));
}

TEST_F(RemoteObjectTest, FetchesAtMostEightMiBOfWhatIsExpectedAtOnce) {
  put(20 * kMiB);
  const auto object = open();
  object->expect(FileOffset{kMiB}, 18 * kMiB);
  EXPECT_TRUE(reads(*object, kMiB, 10));
  EXPECT_EQ(ranges_from(2), (Ranges{"bytes=1048576-9437183"}));
  EXPECT_TRUE(reads(*object, 9 * kMiB, 10));
  EXPECT_EQ(ranges_from(3), (Ranges{"bytes=9437184-17825791"}));
}

TEST_F(RemoteObjectTest, FetchesAnAlignedPieceForASmallReadAndNothingTwice) {
  put(10 * kMiB);
  const auto object = open();
  EXPECT_TRUE(reads(*object, 5 * kMiB + 100, 4096));
  EXPECT_TRUE(reads(*object, 5 * kMiB + 60000, 1000));
  EXPECT_EQ(ranges_from(2), (Ranges{"bytes=5242880-5308415"}));
}

TEST_F(RemoteObjectTest, ReadsALongRangeByRequestsInParallel) {
  put(22 * kMiB);
  FetchedRanges memory(64 * kMiB);
  const auto object = RemoteObject::open({server_, memory, frame::no_store()}, kUrl, nullptr);
  ASSERT_TRUE(object);
  EXPECT_TRUE(reads(**object, kMiB, 20 * kMiB));
  EXPECT_EQ(ranges_from(2), (Ranges{"bytes=1048576-9437183", "bytes=9437184-17825791", "bytes=17825792-22020095"}));
  EXPECT_EQ(server_.round_trips(), 2U);
}

TEST_F(RemoteObjectTest, HoldsTheBoundOfTheMemoryWhenItReadsMore) {
  put(40 * kMiB);
  FetchedRanges memory(4 * kMiB);
  const auto object = RemoteObject::open({server_, memory, frame::no_store()}, kUrl, nullptr);
  ASSERT_TRUE(object);
  EXPECT_TRUE(reads(**object, 0, 40 * kMiB));
  EXPECT_LE(memory.charged(), 4 * kMiB);
}

TEST_F(RemoteObjectTest, FetchesAheadOfASequentialReader) {
  put(60 * kMiB);
  const auto object = open();
  std::uint64_t reads_done = 0;
  for (std::uint64_t at = 0; at < 60 * kMiB; at += 128 * kKiB, ++reads_done)
    ASSERT_TRUE(reads(*object, at, 128 * kKiB));
  EXPECT_LT(server_.round_trips(), 25U);
  EXPECT_LT(server_.requests(), 60U);
  EXPECT_LE(server_.bytes_sent(), 60 * kMiB + 128 * kKiB);
  EXPECT_LE(memory_.charged(), memory_.bound());
}

TEST_F(RemoteObjectTest, FetchesNothingAheadOfScatteredReads) {
  put(60 * kMiB);
  const auto object = open();
  for (std::uint64_t i = 0; i < 50; ++i)
    ASSERT_TRUE(reads(*object, (i * 37 % 57 + 1) * kMiB + 4 * kKiB * (i * 13 % 128), 4 * kKiB));
  EXPECT_EQ(server_.bytes_sent(), 51 * 64 * kKiB + 256 * kKiB);
}

TEST_F(RemoteObjectTest, PrefetchMakesTheLaterReadFree) {
  put(10 * kMiB);
  const auto object = open();
  object->prefetch(FileOffset{2 * kMiB}, 6 * kMiB);
  EXPECT_EQ(ranges_from(2), (Ranges{"bytes=2097152-6291455", "bytes=6291456-8388607"}));
  EXPECT_TRUE(reads(*object, 3 * kMiB, 4 * kMiB));
  EXPECT_EQ(server_.requests(), 4U);
}

TEST_F(RemoteObjectTest, AReplacedObjectIsStaleForEachLaterRead) {
  put(10 * kMiB);
  const auto object = open();
  server_.put(kUrl, {object_bytes(10 * kMiB, 2), "\"t2\"", 784111778, ""});
  EXPECT_TRUE(reads(*object, 0, 4096)) << "bytes that were fetched before it was replaced";
  EXPECT_EQ(failure(*object, 5 * kMiB, 4096).kind, codec::ErrorKind::stale);
  EXPECT_EQ(failure(*object, 0, 4096).kind, codec::ErrorKind::stale);
  const std::size_t before = server_.requests();
  EXPECT_EQ(failure(*object, 5 * kMiB, 4096).kind, codec::ErrorKind::stale);
  EXPECT_EQ(server_.requests(), before);
  bytes_ = object_bytes(10 * kMiB, 2);
  EXPECT_TRUE(reads(*open(), 5 * kMiB, 4096)) << "the next open sees the new object";
}

TEST_F(RemoteObjectTest, ARemovedObjectIsStaleForItsReaders) {
  put(10 * kMiB);
  const auto object = open();
  server_.before_each([&](std::size_t) { server_.remove_locked(kUrl); });
  EXPECT_EQ(failure(*object, 5 * kMiB, 4096).kind, codec::ErrorKind::stale);
}

TEST_F(RemoteObjectTest, AnObjectWithVersionsIsReadOnAfterItWasReplaced) {
  bytes_ = object_bytes(10 * kMiB);
  server_.put(kUrl, {bytes_, "\"t1\"", 784111777, "v1"});
  const auto object = open();
  const ObjectState state = listed();
  FetchedRanges other;
  const auto lazy = RemoteObject::open({server_, other, frame::no_store()}, kUrl, &state);
  ASSERT_TRUE(lazy);
  EXPECT_TRUE(reads(**lazy, 0, 10));
  server_.put(kUrl, {object_bytes(10 * kMiB, 2), "\"t2\"", 784111778, "v2"});
  EXPECT_TRUE(reads(*object, 5 * kMiB, 4096));
  EXPECT_TRUE(reads(**lazy, 6 * kMiB, 4096));
}

TEST_F(RemoteObjectTest, AReaderWithoutTheRightToVersionsReadsByTheTag) {
  bytes_ = object_bytes(10 * kMiB);
  server_.put(kUrl, {bytes_, "\"t1\"", 784111777, "v1"});
  server_.refuse_versions();
  const auto object = open();
  EXPECT_TRUE(reads(*object, 5 * kMiB, 4096));
  EXPECT_TRUE(reads(*object, 7 * kMiB, 4096));
  EXPECT_EQ(server_.requests(), 5U) << "the version is tried once";
  server_.put(kUrl, {object_bytes(10 * kMiB, 2), "\"t2\"", 784111778, "v2"});
  EXPECT_EQ(failure(*object, 6 * kMiB, 4096).kind, codec::ErrorKind::stale);
}

TEST_F(RemoteObjectTest, AnObjectWithoutATagIsTiedByItsDate) {
  bytes_ = object_bytes(10 * kMiB);
  server_.put(kUrl, {bytes_, "", 784111777, ""});
  const auto object = open();
  EXPECT_TRUE(reads(*object, 5 * kMiB, 4096));
  server_.lie(Lie::ignores_conditions);
  server_.put(kUrl, {object_bytes(10 * kMiB, 2), "", 784111778, ""});
  EXPECT_EQ(failure(*object, 6 * kMiB, 4096).kind, codec::ErrorKind::stale);
}

TEST_F(RemoteObjectTest, OpensTheNewStateOfAnObjectThatIsReplacedBetweenHeadAndTail) {
  put(10 * kMiB);
  const auto after = object_bytes(9 * kMiB, 2);
  server_.before_each([&](std::size_t request) {
    if (request == 1) server_.put_locked(kUrl, {after, "\"t2\"", 784111778, ""});
  });
  bytes_ = after;
  const auto object = open();
  EXPECT_EQ(object->state().entity_tag, "\"t2\"");
  EXPECT_TRUE(reads(*object, 0, 9 * kMiB));
}

TEST_F(RemoteObjectTest, AnObjectThatIsReplacedBeforeEachRequestIsStale) {
  put(10 * kMiB);
  server_.before_each([&](std::size_t request) {
    server_.put_locked(kUrl, {object_bytes(kMiB, request), '"' + std::to_string(request) + '"', 0, ""});
  });
  const auto opened = RemoteObject::open(reading_, kUrl, nullptr);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, codec::ErrorKind::stale);
  EXPECT_EQ(server_.requests(), 8U);
}

TEST_F(RemoteObjectTest, AFailedFetchAheadIsAskedForAgain) {
  put(10 * kMiB);
  const auto object = open();
  server_.fail_with(EIO);
  object->prefetch(FileOffset{kMiB}, kMiB);
  server_.fail_with(0);
  EXPECT_TRUE(reads(*object, kMiB, 4096));
}

TEST_F(RemoteObjectTest, HealsAfterAnError) {
  put(10 * kMiB);
  const auto object = open();
  server_.fail_with(ETIMEDOUT);
  EXPECT_EQ(failure(*object, 5 * kMiB, 4096).sys, ETIMEDOUT);
  server_.fail_with(0);
  EXPECT_TRUE(reads(*object, 5 * kMiB, 4096));
}

TEST_F(RemoteObjectTest, ASecondMountReadsNothingFromTheServerIfTheStoreHasIt) {
  put(5 * kMiB + 12345);
  MemoryStore store;
  const ObjectState state = listed();
  for (int mount = 0; mount < 2; ++mount) {
    FetchedRanges memory;
    const auto object = RemoteObject::open({server_, memory, store}, kUrl, &state);
    ASSERT_TRUE(object);
    const std::size_t before = server_.requests();
    EXPECT_TRUE(reads(**object, 0, 80));
    EXPECT_TRUE(reads(**object, bytes_.size() - 100, 100));
    EXPECT_TRUE(reads(**object, 3 * kMiB + 7, 100));
    EXPECT_TRUE(reads(**object, 0, bytes_.size()));
    EXPECT_EQ(server_.requests() == before, mount == 1);
  }
  EXPECT_LE(server_.bytes_sent(), bytes_.size() + 2 * 64 * kKiB);
  EXPECT_EQ(store.blocks(), 6U + 2U) << "six blocks, and the two ends";
}

TEST_F(RemoteObjectTest, TheLastBytesOfALongObjectAreMore) {
  put(200 * kMiB);
  const ObjectState state = listed();
  const auto object = open(&state);
  EXPECT_TRUE(reads(*object, 0, 80));
  EXPECT_TRUE(reads(*object, 200 * kMiB - 200 * kKiB, 200 * kKiB));
  EXPECT_EQ(server_.ranges(), (Ranges{"bytes=0-65535", "bytes=209510400-209715199"}));
}

TEST_F(RemoteObjectTest, TheEndsThatAnOpenFetchedServeALaterOpenFromTheStore) {
  put(400 * kMiB);  // its last bytes are longer than those of an object whose length is not known
  MemoryStore store;
  const ObjectState state = listed();
  std::size_t before = 0;
  for (const ObjectState* known : {static_cast<const ObjectState*>(nullptr), &state, &state}) {
    FetchedRanges memory;
    const auto object = RemoteObject::open({server_, memory, store}, kUrl, known);
    ASSERT_TRUE(object);
    EXPECT_TRUE(reads(**object, 0, 4096));
    EXPECT_TRUE(reads(**object, 400 * kMiB - 4096, 4096));
    EXPECT_TRUE(reads(**object, 400 * kMiB - 300 * kKiB, 4096));
    if (known != nullptr) {
      EXPECT_EQ(server_.requests(), before);
    }
    before = server_.requests();
  }
}

TEST_F(RemoteObjectTest, AStoreIsNotAskedForAStateThatNothingIdentifies) {
  bytes_ = object_bytes(3 * kMiB);
  server_.put(kUrl, {bytes_, "", 0, ""});
  MemoryStore store;
  FetchedRanges memory;
  const auto object = RemoteObject::open({server_, memory, store}, kUrl, nullptr);
  ASSERT_TRUE(object);
  EXPECT_TRUE(reads(**object, 0, 3 * kMiB));
  EXPECT_EQ(store.blocks(), 0U);
  bytes_ = object_bytes(3 * kMiB, 2);
  server_.put(kUrl, {bytes_, "", 0, ""});
  const auto again = RemoteObject::open({server_, memory, store}, kUrl, nullptr);
  ASSERT_TRUE(again);
  EXPECT_TRUE(reads(**again, 0, 3 * kMiB));
}

TEST_F(RemoteObjectTest, WhatWasFetchedIsReadWithoutTheServer) {
  put(20 * kMiB);
  const auto object = open();
  ASSERT_TRUE(object->fetch(FileOffset{5 * kMiB}, kMiB));
  const std::size_t requests = server_.requests();
  server_.fail_with(ETIMEDOUT);
  EXPECT_TRUE(reads(*object, 5 * kMiB, kMiB));
  EXPECT_TRUE(object->fetch(FileOffset{5 * kMiB}, kMiB));
  EXPECT_EQ(server_.requests(), requests);
}

TEST_F(RemoteObjectTest, AFetchThatFailsTellsTheErrorAndTheNextReadAsksAgain) {
  put(20 * kMiB);
  const auto object = open();
  server_.fail_with(ETIMEDOUT);
  const auto failed = object->fetch(FileOffset{5 * kMiB}, kMiB);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().sys, ETIMEDOUT);
  server_.fail_with(0);
  EXPECT_TRUE(reads(*object, 5 * kMiB, kMiB));
  server_.put(kUrl, {bytes_, "\"t2\"", 784111777, ""});
  const auto replaced = object->fetch(FileOffset{10 * kMiB}, kMiB);
  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error().kind, codec::ErrorKind::stale);
}

TEST_F(RemoteObjectTest, ManyThreadsReadOneObject) {
  put(8 * kMiB);
  FetchedRanges memory(2 * kMiB);
  MemoryStore store;
  const auto object = RemoteObject::open({server_, memory, store}, kUrl, nullptr);
  ASSERT_TRUE(object);
  std::vector<std::thread> readers;
  std::atomic<unsigned> wrong{0};
  for (unsigned seed = 0; seed < 4; ++seed) {
    readers.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      for (int i = 0; i < 100; ++i) {
        const std::uint64_t at = random() % (8 * kMiB - 70000);
        if (!reads(**object, at, random() % 70000)) ++wrong;
        if (i % 10 == 0) (*object)->prefetch(FileOffset{at}, kMiB);
      }
    });
  }
  for (auto& reader : readers)
    reader.join();
  EXPECT_EQ(wrong, 0U);
}

TEST_F(RemoteObjectTest, RandomReadsEqualTheObjectOrAreStale) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed);
    put(1 + random() % (3 * kMiB));
    FetchedRanges memory(random() % (4 * kMiB));
    MemoryStore store;
    RangeStore& kept = random() % 2 == 0 ? static_cast<RangeStore&>(store) : frame::no_store();
    const ObjectState state = listed();
    if (random() % 3 == 0) server_.lie(Lie::ignores_conditions);
    const auto object = RemoteObject::open({server_, memory, kept}, kUrl, random() % 2 == 0 ? &state : nullptr);
    ASSERT_TRUE(object);
    const int replaced_at = static_cast<int>(random() % 80);
    bool was_stale = false;
    for (int step = 0; step < 60; ++step) {
      if (step == replaced_at) server_.put(kUrl, {object_bytes(bytes_.size(), 99), "\"t2\"", 784111778, ""});
      const std::uint64_t at = random() % bytes_.size();
      const std::size_t size = random() % (bytes_.size() - at) % (random() % 5 == 0 ? 2 * kMiB : 9000);
      if (random() % 6 == 0) (*object)->expect(FileOffset{at}, random() % kMiB);
      if (random() % 9 == 0) (*object)->prefetch(FileOffset{at}, random() % kMiB);
      std::vector<std::uint8_t> into(size);
      const auto done = (*object)->read(FileOffset{at}, into);
      if (!done) {
        ASSERT_EQ(done.error().kind, codec::ErrorKind::stale) << done.error().reason;
        ASSERT_GE(step, replaced_at);
        was_stale = true;
      } else {
        ASSERT_FALSE(was_stale && size != 0) << "a stale object was read";
        ASSERT_TRUE(std::equal(into.begin(), into.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(at))) << seed;
      }
    }
    server_.lie(Lie::none);
  }
}

}  // namespace
}  // namespace cframefs::test::remote_object_tests
