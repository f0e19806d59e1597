// What readers of an object meet if its server lies: the right bytes, or an error that says what is wrong.
#include <cerrno>
#include <thread>

#include <gtest/gtest.h>

#include "frame/remote/objects/remote_object.h"
#include "tests/frame/remote/objects/served_objects.h"

namespace cframefs::test::remote_object_lies_tests {
namespace {

using frame::FetchedRanges;
using frame::FileOffset;
using frame::ObjectState;
using frame::RemoteObject;

constexpr std::uint64_t kMiB = 1U << 20;
const std::string kUrl = "http://host/object";

class RemoteObjectLies : public ::testing::Test {
 protected:
  void put(std::size_t size) {
    bytes_ = object_bytes(size);
    server_.put(kUrl, {bytes_, "\"t1\"", 0, ""});
  }
  codec::Result<std::shared_ptr<RemoteObject>> open() { return RemoteObject::open(reading_, kUrl, nullptr); }
  bool reads(RemoteObject& object, std::uint64_t at, std::size_t size) const {
    std::vector<std::uint8_t> into(size);
    return object.read(FileOffset{at}, into) &&
           std::equal(into.begin(), into.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  std::vector<std::uint8_t> bytes_;
  ServedObjects server_;
  FetchedRanges memory_;
  frame::ObjectReading reading_{server_, memory_, frame::no_store()};
};

struct Met {
  Lie lie;
  codec::ErrorKind at_open;
  codec::ErrorKind at_read;
};

TEST_F(RemoteObjectLies, EachLieAboutARangeIsMetWithAnError) {
  using codec::ErrorKind;
  for (const Met& met :
       {Met{Lie::other_start, ErrorKind::io, ErrorKind::io}, Met{Lie::other_total, ErrorKind::io, ErrorKind::stale},
        Met{Lie::unknown_total, ErrorKind::unsupported, ErrorKind::unsupported},
        Met{Lie::short_body, ErrorKind::io, ErrorKind::io}, Met{Lie::long_body, ErrorKind::io, ErrorKind::io},
        Met{Lie::no_content_range, ErrorKind::io, ErrorKind::io},
        Met{Lie::several_parts, ErrorKind::unsupported, ErrorKind::unsupported},
        Met{Lie::encoding, ErrorKind::unsupported, ErrorKind::unsupported},
        Met{Lie::ignores_ranges, ErrorKind::unsupported, ErrorKind::unsupported}}) {
    SCOPED_TRACE(static_cast<int>(met.lie));
    put(4 * kMiB);
    server_.lie(Lie::none);
    const auto object = open();
    ASSERT_TRUE(object);
    server_.lie(met.lie);
    std::vector<std::uint8_t> into(100'000);
    const auto done = (*object)->read(FileOffset{2 * kMiB}, into);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, met.at_read) << done.error().reason;
    EXPECT_FALSE(done.error().reason.empty());
    if (met.lie == Lie::other_total) continue;  // a total that all answers tell is the total
    const auto opened = open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().kind, met.at_open) << opened.error().reason;
  }
}

TEST_F(RemoteObjectLies, AnotherTagIsStale) {
  for (const Lie lie : {Lie::other_tag, Lie::no_tag, Lie::weak_tag}) {
    put(4 * kMiB);
    server_.lie(Lie::none);
    const auto object = open();
    ASSERT_TRUE(object);
    server_.lie(lie);
    std::vector<std::uint8_t> into(100'000);
    const auto done = (*object)->read(FileOffset{2 * kMiB}, into);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, codec::ErrorKind::stale) << done.error().reason;
  }
}

TEST_F(RemoteObjectLies, AServerThatIgnoresConditionsIsFoundOutByTheTag) {
  put(4 * kMiB);
  server_.lie(Lie::ignores_conditions);
  const auto object = open();
  ASSERT_TRUE(object);
  EXPECT_TRUE(reads(**object, 2 * kMiB, 4096));
  server_.put(kUrl, {object_bytes(4 * kMiB, 2), "\"t2\"", 0, ""});
  std::vector<std::uint8_t> into(4096);
  const auto done = (*object)->read(FileOffset{3 * kMiB}, into);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, codec::ErrorKind::stale);
}

TEST_F(RemoteObjectLies, AShortObjectIsReadFromAServerThatIgnoresRanges) {
  put(kMiB);
  server_.lie(Lie::ignores_ranges);
  const auto object = open();
  ASSERT_TRUE(object) << object.error().reason;
  EXPECT_TRUE(reads(**object, 0, kMiB));
  EXPECT_EQ(server_.requests(), 2U);
  FetchedRanges other;
  const ObjectState state = (*object)->state();
  const auto lazy = RemoteObject::open({server_, other, frame::no_store()}, kUrl, &state);
  ASSERT_TRUE(lazy);
  EXPECT_TRUE(reads(**lazy, kMiB / 2, 100));
  EXPECT_TRUE(reads(**lazy, kMiB / 4, 100));
  EXPECT_TRUE(reads(**lazy, 0, kMiB));
  EXPECT_EQ(server_.requests(), 4U) << "the second request fetches all";
}

TEST_F(RemoteObjectLies, AServerWithWrongSuffixesIsAskedForExactRangesFromThenOn) {
  put(4 * kMiB);
  server_.lie(Lie::first_bytes_for_suffix);
  const auto first = open();
  ASSERT_TRUE(first) << first.error().reason;
  EXPECT_TRUE(reads(**first, 4 * kMiB - 100, 100));
  EXPECT_EQ(server_.ranges(), (std::vector<std::string>{"bytes=0-65535", "bytes=-262144", "bytes=4128768-4194303"}));
  const auto second = open();
  ASSERT_TRUE(second);
  EXPECT_TRUE(reads(**second, 0, 4 * kMiB));
  EXPECT_EQ(server_.ranges().at(3), "bytes=0-65535");
  EXPECT_NE(server_.ranges().at(4), "bytes=-262144");
}

TEST_F(RemoteObjectLies, ReadersThatWaitForOneRangeAllGetItsError) {
  put(4 * kMiB);
  const auto object = open();
  ASSERT_TRUE(object);
  server_.lie(Lie::short_body);
  server_.hold();
  std::vector<std::future<codec::Result<void>>> readers;
  for (int i = 0; i < 4; ++i) {
    readers.push_back(std::async(std::launch::async, [&] {
      std::vector<std::uint8_t> into(100);
      return (*object)->read(FileOffset{2 * kMiB}, into);
    }));
  }
  while (server_.requests() < 3)
    std::this_thread::yield();
  server_.release();
  for (auto& reader : readers) {
    const auto done = reader.get();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().sys, EIO);
  }
  server_.lie(Lie::none);
  EXPECT_TRUE(reads(**object, 2 * kMiB, 100));
}

}  // namespace
}  // namespace cframefs::test::remote_object_lies_tests
