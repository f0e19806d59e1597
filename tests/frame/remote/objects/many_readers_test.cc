// Many readers of one object, each reading on from another place, with a memory that holds little of it: each byte is
// fetched about once.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "frame/remote/objects/remote_object.h"
#include "tests/frame/remote/objects/served_objects.h"
#include "tests/support/keeping_store.h"

namespace cframefs::test::many_readers_tests {
namespace {

using frame::ByteRange;
using frame::FetchedRanges;
using frame::FileOffset;
using frame::ObjectState;
using frame::RangeStore;
using frame::RemoteObject;

constexpr std::uint64_t kKiB = 1U << 10;
constexpr std::uint64_t kMiB = 1U << 20;
constexpr std::uint64_t kMemory = 16 * kMiB;
constexpr std::chrono::hours kPatience{1};  // slow machines evict no more than others
const std::string kUrl = "http://host/object";

struct Reading {
  std::uint64_t chunk = 0;   // what a reader expects to read next
  std::uint64_t piece = 0;   // of one read
  bool waits_first = false;  // as a thread that decodes: fetch(), other reads, read()
};

/// Returns the object, made once: that takes longer than to read it.
const std::vector<std::uint8_t>& large_object() {
  static const std::vector<std::uint8_t> bytes = object_bytes(80 * kMiB);
  return bytes;
}

/// Reads the whole object by `readers` readers in random turns. Returns how many bytes were fetched for each byte.
double fetched_by(std::size_t readers, const Reading& how, RangeStore& store) {
  ServedObjects server;
  FetchedRanges memory(kMemory, kPatience);
  const std::vector<std::uint8_t>& bytes = large_object();
  server.put(kUrl, {bytes, "\"t1\"", 784111777, ""});
  const ObjectState state{"\"t1\"", "", 784111777, bytes.size()};
  const auto object = RemoteObject::open({server, memory, store}, kUrl, &state);
  EXPECT_TRUE(object);
  std::vector<ByteRange> rest;
  for (std::size_t reader = 0; reader < readers; ++reader)
    rest.push_back({bytes.size() * reader / readers, bytes.size() * (reader + 1) / readers});
  std::mt19937_64 chance(7);
  std::vector<std::uint8_t> into(how.piece);
  while (!rest.empty()) {
    const std::size_t turn = chance() % rest.size();
    const std::uint64_t at = rest[turn].begin;
    const std::uint64_t size = std::min(how.piece, rest[turn].size());
    const bool begins_chunk = at % how.chunk < how.piece;
    if (begins_chunk) (*object)->expect(FileOffset{at}, std::min(how.chunk, rest[turn].size()));
    if (how.waits_first) {
      EXPECT_TRUE((*object)->fetch(FileOffset{at}, size));
      const std::uint64_t other = rest[chance() % rest.size()].begin;
      EXPECT_TRUE((*object)->fetch(FileOffset{other}, std::min(how.piece, bytes.size() - other)));
    }
    EXPECT_TRUE((*object)->read(FileOffset{at}, codec::ByteSpan(into).first(size)));
    EXPECT_EQ(std::memcmp(into.data(), bytes.data() + at, size), 0);
    rest[turn].begin += size;
    if (rest[turn].empty()) rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(turn));
    EXPECT_LE(memory.charged(), kMemory + 2 * FetchedRanges::kMostRequest);
  }
  return static_cast<double>(server.bytes_sent()) / static_cast<double>(bytes.size());
}

TEST(ManyReaders, FetchEachByteAboutOnce) {
  for (const std::size_t readers : {1, 4, 24}) {
    const Reading how{428 * kKiB, 107 * kKiB, false};
    EXPECT_LT(fetched_by(readers, how, frame::no_store()), 1.25) << readers << " readers";
  }
}

TEST(ManyReaders, FetchEachByteAboutOnceForADiskCache) {
  for (const std::size_t readers : {4, 64}) {
    KeepingStore store;
    const Reading how{428 * kKiB, 107 * kKiB, false};
    EXPECT_LT(fetched_by(readers, how, store), 1.1) << readers << " readers";
  }
}

TEST(ManyReaders, WhatAReaderWaitedForIsNotFetchedAgainForTheRead) {
  for (const std::size_t readers : {4, 64}) {
    KeepingStore store;
    const Reading how{428 * kKiB, 107 * kKiB, true};
    EXPECT_LT(fetched_by(readers, how, store), 1.1) << readers << " readers";
  }
}

TEST(ManyReaders, ABlockThatIsKeptIsNotFetchedAsPartOfAnExpectedRange) {
  ServedObjects server;
  FetchedRanges memory(kMemory);
  KeepingStore store;
  const auto bytes = object_bytes(40 * kMiB);
  server.put(kUrl, {bytes, "\"t1\"", 784111777, ""});
  const ObjectState state{"\"t1\"", "", 784111777, bytes.size()};
  std::vector<std::uint8_t> into(4 * kKiB);
  {
    const auto object = RemoteObject::open({server, memory, store}, kUrl, &state);
    ASSERT_TRUE(object);
    EXPECT_TRUE((*object)->read(FileOffset{11 * kMiB}, into));
    EXPECT_TRUE((*object)->read(FileOffset{14 * kMiB}, into));
  }
  FetchedRanges other_memory(kMemory);
  const auto object = RemoteObject::open({server, other_memory, store}, kUrl, &state);
  ASSERT_TRUE(object);
  const std::size_t before = server.requests();
  (*object)->expect(FileOffset{10 * kMiB}, 6 * kMiB);
  EXPECT_TRUE((*object)->read(FileOffset{12 * kMiB}, into));
  ASSERT_EQ(server.requests(), before + 1);
  EXPECT_EQ(server.ranges().back(), "bytes=12582912-14680063") << "blocks 12 and 13";
}

}  // namespace
}  // namespace cframefs::test::many_readers_tests
