#include "fs/fuse/init_answer.h"

#include <array>
#include <cstring>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <unistd.h>

namespace cframefs::fs {
namespace {

// FUSE_PASSTHROUGH in the second word of flags.
constexpr std::uint32_t kTakesIds = 1U << 5U;

/// What the kernel asks.
struct Asked {
  fuse_in_header header{};
  fuse_init_in init{};
};

/// The answer as the device gets it.
struct Sent {
  fuse_out_header header{};
  fuse_init_out init{};
  std::uint32_t depth() const {
    std::uint32_t word = 0;
    std::memcpy(&word, init.unused, sizeof word);
    return word;
  }
};

class InitAnswerTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0); }
  void TearDown() override {
    for (const int end : ends_)
      ::close(end);
  }

  /// Has the kernel offer flags, and the daemon answer with `flags`.
  Sent exchange(std::uint32_t offered, std::uint32_t also_offered, std::uint32_t flags = 0,
                std::size_t length = sizeof(Asked)) {
    Asked asked;
    asked.header.opcode = FUSE_INIT;
    asked.init.flags = offered;
    asked.init.flags2 = also_offered;
    answer_.note_request(&asked, length);
    return send(flags);
  }
  Sent send(std::uint32_t flags) {
    Sent sent;
    sent.init.flags = flags;
    std::array<iovec, 2> parts = {iovec{&sent.header, sizeof sent.header}, iovec{&sent.init, sizeof sent.init}};
    EXPECT_EQ(answer_.send(ends_[1], parts.data(), 2), static_cast<ssize_t>(sizeof sent));
    Sent got;
    EXPECT_EQ(::read(ends_[0], &got, sizeof got), static_cast<ssize_t>(sizeof got));
    return got;
  }

  InitAnswer answer_;
  std::array<int, 2> ends_{-1, -1};
};

TEST_F(InitAnswerTest, TheKernelLearnsThatFilesArePassedIfItCanTakeThem) {
  answer_.want_backing();
  const Sent sent = exchange(FUSE_INIT_EXT | FUSE_PARALLEL_DIROPS, kTakesIds, FUSE_BIG_WRITES);
  EXPECT_EQ(sent.init.flags, FUSE_INIT_EXT | FUSE_PARALLEL_DIROPS | FUSE_BIG_WRITES);
  EXPECT_EQ(sent.init.flags2, kTakesIds);
  EXPECT_EQ(sent.depth(), 1U);
  EXPECT_TRUE(answer_.has_backing());
}

TEST_F(InitAnswerTest, NothingIsPassedUnlessItIsWanted) {
  const Sent sent = exchange(FUSE_INIT_EXT, kTakesIds);
  EXPECT_EQ(sent.init.flags, 0U);
  EXPECT_EQ(sent.depth(), 0U);
  EXPECT_FALSE(answer_.has_backing());
}

TEST_F(InitAnswerTest, NothingIsPassedBesideTheWriteBackCache) {
  answer_.want_backing();
  const Sent sent = exchange(FUSE_INIT_EXT, kTakesIds, FUSE_WRITEBACK_CACHE);
  EXPECT_EQ(sent.init.flags, FUSE_WRITEBACK_CACHE);
  EXPECT_EQ(sent.depth(), 0U);
  EXPECT_FALSE(answer_.has_backing());
}

TEST_F(InitAnswerTest, AnOlderKernelIsNotTold) {
  answer_.want_backing();
  // Its flags have one word; what follows is not its.
  const Sent sent = exchange(0, kTakesIds);
  EXPECT_EQ(sent.init.flags2, 0U);
  EXPECT_FALSE(answer_.has_backing());
}

TEST_F(InitAnswerTest, AShortRequestHasOneWordOfFlags) {
  answer_.want_backing();
  const Sent sent = exchange(FUSE_INIT_EXT | FUSE_PARALLEL_DIROPS, kTakesIds, 0, sizeof(fuse_in_header) + 16);
  EXPECT_EQ(sent.init.flags, FUSE_PARALLEL_DIROPS);
  EXPECT_FALSE(answer_.has_backing());
}

TEST_F(InitAnswerTest, OtherAnswersStayAsTheyAre) {
  answer_.want_backing();
  exchange(FUSE_INIT_EXT | FUSE_PARALLEL_DIROPS, kTakesIds);
  EXPECT_EQ(send(0).init.flags, 0U);
}

}  // namespace
}  // namespace cframefs::fs
