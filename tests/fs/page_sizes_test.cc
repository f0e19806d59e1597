// Kernels have pages of 4, 16 or 64 KiB: what depends on the size of a page follows it.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "tests/fs/written_filesystem.h"
#include "tests/support/frame_builder.h"

namespace cframefs::fs {
namespace {

class PageSizes : public WrittenFilesystem, public testing::WithParamInterface<std::uint64_t> {
 protected:
  static constexpr std::int32_t kChunk = 16384;

  /// Mounts again, as on a kernel that has pages of this size.
  void mount_with_pages() {
    options_.kernel_cache.page_size = GetParam();
    remount();
  }
  /// A frame of three chunks, the second of them damaged.
  void write_damaged(const std::string& name) {
    const test::FrameBuilder builder = test::plain_frame(test::Bytes(3 * kChunk, 1), kChunk);
    test::Bytes frame = builder.build();
    const std::size_t chunk = builder.chunk_section.size() / 3;
    std::fill_n(frame.begin() + static_cast<std::ptrdiff_t>(builder.header_length() + chunk), 16, 0xff);
    directory_.write(name, frame);
  }
};

TEST_P(PageSizes, ReadsAreDirectIfAPageHasBytesOfADamagedChunkAndOfAGoodOne) {
  write_damaged("x.b2frame");
  mount_with_pages();
  const auto found = filesystem_->names().lookup(kRootNode, "x");
  ASSERT_TRUE(found) << found.error().reason;
  auto handle = filesystem_->files().open(found->node, O_RDONLY);
  ASSERT_TRUE(handle) << handle.error().reason;
  EXPECT_EQ((*handle)->direct, GetParam() > kChunk);
  filesystem_->files().release(std::move(*handle));
}

INSTANTIATE_TEST_SUITE_P(OfKernels, PageSizes, testing::Values(4096, 16384, 65536));

}  // namespace
}  // namespace cframefs::fs
