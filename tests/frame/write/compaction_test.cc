// Copies of stored chunks: with and without digests they are the same bytes, and a damaged chunk is not copied.
#include "frame/write/compaction.h"

#include <algorithm>
#include <memory>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "tests/support/digest_frame.h"
#include "tests/support/frame_builder.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"

namespace cframefs {
namespace {

using test::Bytes;
using test::RefusingVerifier;

class Compaction : public ::testing::Test {
 protected:
  static constexpr std::int32_t kChunk = 300000;  // above the window of a copy
  static constexpr std::int64_t kNone = -1;

  /// Copies all chunks of the frame into the file `copy`.
  codec::Result<void> copy_all(const frame::FrameContainer& from) {
    const int fd = ::open((dir_.path() / "copy").c_str(), O_RDWR | O_CREAT, 0600);
    const frame::Descriptor file(frame::system_files(), frame::system_file(fd));
    frame::FileTarget target(frame::system_files(), file.handle());
    frame::BufferedAppender out(target, frame::FileOffset{0});
    frame::IndexEncoder index;
    if (auto done = frame::copy_all_chunks(from, 0, out, index); !done) return done;
    EXPECT_EQ(index.count(), from.chunk_count());
    return out.flush();
  }
  Bytes copied() const { return test::file_bytes(dir_.path() / "copy"); }

  const test::TempDir dir_;
  const test::FrameBuilder builder_ = [] {
    Bytes plain(3 * kChunk + 1000);
    for (std::size_t i = 0; i < plain.size(); ++i)
      plain[i] = static_cast<std::uint8_t>(i * i >> 7);
    return test::plain_frame(plain, kChunk);
  }();
};

TEST_F(Compaction, CopiesChunksAsTheyAreStored) {
  const auto frame = test::open_frame(builder_.build());
  ASSERT_TRUE(frame);
  const auto done = copy_all(*(*frame)->as_frame());
  ASSERT_TRUE(done) << describe(done.error());
  EXPECT_EQ(copied(), builder_.chunk_section);
}

TEST_F(Compaction, VerifiesEachChunkThatHasADigest) {
  const auto verifier = std::make_shared<const RefusingVerifier>(kNone);
  const auto frame = test::digest_frame(builder_.build(), verifier);
  ASSERT_TRUE(frame);
  const auto done = copy_all(*frame);
  ASSERT_TRUE(done) << describe(done.error());
  EXPECT_EQ(copied(), builder_.chunk_section);
  EXPECT_GE(verifier->verified(), frame->chunk_count());
}

TEST_F(Compaction, DoesNotCopyAChunkWhoseDigestDiffers) {
  const auto frame = test::digest_frame(builder_.build(), std::make_shared<const RefusingVerifier>(2));
  ASSERT_TRUE(frame);
  const auto done = copy_all(*frame);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, codec::ErrorKind::corruption);
  EXPECT_EQ(done.error().chunk, 2);
}

}  // namespace
}  // namespace cframefs
