// FrameSnapshot: what is requested from the disk ahead of a reader.
#include "fs/read/frame_snapshot.h"

#include <memory>

#include <gtest/gtest.h>

#include "tests/support/frame_builder.h"
#include "tests/support/reading.h"

namespace cframefs::fs {
namespace {

using frame::FlatOffset;

class FrameSnapshotTest : public ::testing::Test {
 protected:
  FrameSnapshot snapshot_of(const test::FrameBuilder& builder, std::size_t head) {
    auto opened = test::open_frame(builder.build());
    EXPECT_TRUE(opened);
    auto view = std::make_shared<const frame::FlatView>(std::move(*opened), std::vector<std::uint8_t>(head, 'h'));
    return FrameSnapshot(1, {}, std::move(view), "x", cache_);
  }

  BufferPool pool_;
  DecodingStatistics statistics_;
  BlockCache cache_{std::uint64_t{1} << 20, pool_, statistics_};
};

TEST_F(FrameSnapshotTest, NothingOfAHeadIsRequestedFromTheDisk) {
  test::FrameBuilder empty;
  empty.chunksize = -1;
  const FrameSnapshot snapshot = snapshot_of(empty, 128);
  ASSERT_EQ(snapshot.view().size(), 128U);
  snapshot.prefetch(FlatOffset{64}, 64);
  const FrameSnapshot with_chunks = snapshot_of(test::plain_frame(test::Bytes(1000), 300), 128);
  with_chunks.prefetch(FlatOffset{0}, 128);
  with_chunks.prefetch(FlatOffset{100}, 1000);
}

}  // namespace
}  // namespace cframefs::fs
