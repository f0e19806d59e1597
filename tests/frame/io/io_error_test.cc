// Every read fails in turn: each time the result is an I/O error, never corruption and never bytes.
#include <gtest/gtest.h>

#include "frame/container/chunk_reader.h"
#include "frame/open/open.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/golden.h"
#include "tests/support/reading.h"

namespace cframefs {
namespace {

using codec::Result;
using test::FaultyFiles;

/// Opens a container and reads everything in it; returns the first error.
Result<std::vector<std::uint8_t>> read_everything(frame::FileOps& files, const std::string& path) {
  const auto opened = frame::open_path(files, path, nullptr);
  if (!opened) return codec::Failure(opened.error());
  std::vector<std::uint8_t> content;
  const auto done = test::read_all(frame::FlatView(*opened), [&content](codec::ByteView bytes) {
    content.insert(content.end(), bytes.begin(), bytes.end());
  });
  if (!done) return codec::Failure(done.error());
  const auto located = (*opened)->chunk_at(frame::FlatOffset{content.size() - 1});
  if (!located) return codec::Failure(located.error());
  for (const std::string& name : (*opened)->vlmetalayer_names()) {
    const auto layer = (*opened)->vlmetalayer(name);
    if (!layer) return codec::Failure(layer.error());
  }
  return content;
}

class IoError : public ::testing::TestWithParam<const char*> {};

TEST_P(IoError, AtAnyReadIsReportedAsIoError) {
  const std::string path = (test::golden_dir() / GetParam()).string();
  FaultyFiles faultless;
  const auto expected = read_everything(faultless, path);
  ASSERT_TRUE(expected) << describe(expected.error());
  ASSERT_GT(faultless.reads(), 3);
  for (std::int64_t n = 1; n <= faultless.reads(); ++n) {
    FaultyFiles files(n);
    const auto content = read_everything(files, path);
    ASSERT_FALSE(content) << "read " << n << " of " << faultless.reads();
    EXPECT_EQ(content.error().kind, codec::ErrorKind::io) << describe(content.error());
    EXPECT_EQ(content.error().sys, EIO);
  }
}

INSTANTIATE_TEST_SUITE_P(Frames, IoError,
                         ::testing::Values("malformed/good/base-lz4.b2frame", "malformed/good/base-varchunks.b2frame",
                                           "malformed/good/base-vlblocks.b2frame",
                                           "malformed/good/base-memcpyed.b2frame",
                                           "malformed/good/base-dict-zstd.b2frame", "malformed/sframe/good.b2frame",
                                           "legacy/legacy-b5-um-shrunk.b2frame", "legacy/bp-v1.blp",
                                           "legacy/bp-meta-zlib.blp", "legacy/bp-codec-lz4.blp",
                                           "legacy/blosc1-mixed.cdata"),
                         [](const auto& instance) { return test::test_name(instance.param); });

TEST(IoError, PassesAndTheSameContainerReadsAgain) {
  // Chunks of different sizes: their table must not cache the failed read.
  const std::string path = (test::golden_dir() / "malformed/good/base-varchunks.b2frame").string();
  FaultyFiles counting;
  const auto first = frame::open_path(counting, path, nullptr);
  ASSERT_TRUE(first);
  FaultyFiles files(counting.reads() + 2);
  const auto opened = frame::open_path(files, path, nullptr);
  ASSERT_TRUE(opened);
  const auto failed = (*opened)->chunk_at(frame::FlatOffset{500});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, codec::ErrorKind::io);
  EXPECT_TRUE((*opened)->chunk_at(frame::FlatOffset{500}));
}

/// Every read returns fewer bytes than requested, as if another program had truncated the file.
class CuttingFiles : public test::ForwardingFiles {
 public:
  Result<std::size_t> pread(frame::OpenFile file, codec::ByteSpan into, frame::FileOffset at) override {
    return ForwardingFiles::pread(file, into.first(into.size() / 2), at);
  }
};

TEST(IoError, AFileThatEndsEarlyGivesNoBytes) {
  CuttingFiles files;
  EXPECT_FALSE(read_everything(files, (test::golden_dir() / "malformed/good/base-lz4.b2frame").string()));
}

}  // namespace
}  // namespace cframefs
