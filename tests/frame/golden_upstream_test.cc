// Frames of other writers and releases, which are not part of the project. The option shared_golden gives their
// directory; without it, the tests are skipped.
#include <filesystem>
#include <iostream>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "frame/array/array_view.h"
#include "frame/io/file_ops.h"
#include "frame/open/open.h"
#include "tests/support/digest.h"
#include "tests/support/golden.h"
#include "tests/support/reading.h"

namespace cframefs {
namespace {

/// Returns the value of `key` in the manifest's column `details`: "key=value key=value …".
std::string detail(const std::string& details, const std::string& key) {
  for (const std::string& field : test::split(details, ' ')) {
    if (field.starts_with(key + "=")) return field.substr(key.size() + 1);
  }
  return {};
}

TEST(GoldenUpstream, FramesReadAsTheirManifestSays) {
  int frames = 0;
  for (const test::Row& row : test::read_manifest(test::shared_golden_dir() / "upstream" / "MANIFEST.tsv")) {
    if (!row["variant"].starts_with("CFrame")) continue;
    SCOPED_TRACE(row["file"]);
    const auto opened = test::open_frame(row.file("file").string());
    ASSERT_TRUE(opened) << describe(opened.error());
    EXPECT_EQ(std::to_string((*opened)->chunk_count()), detail(row["details"], "nchunks"));
    EXPECT_EQ(std::to_string((*opened)->parameters().chunksize), detail(row["details"], "chunksize"));
    const auto view = std::make_shared<const frame::FlatView>(*opened);
    EXPECT_EQ(std::to_string(view->size()), detail(row["details"], "nbytes"));
    test::Sha256 digest;
    const auto done = test::read_all(*view, [&digest](codec::ByteView bytes) { digest.add(bytes); });
    ASSERT_TRUE(done) << describe(done.error());
    // The hash of an array covers its items in C order, which is not chunk order.
    if (row["variant"].find("b2nd") == std::string::npos) {
      EXPECT_EQ(digest.hex(), row["sha256_of_decoded"]);
    }
    ++frames;
  }
  EXPECT_EQ(frames, 11);
}

TEST(GoldenUpstream, ChunksOfEveryReleaseReadAsTheirManifestSays) {
  int chunks = 0;
  int snappy = 0;
  for (const test::Row& row : test::read_manifest(test::shared_golden_dir() / "upstream" / "MANIFEST.tsv")) {
    if (!row["variant"].starts_with("chunk version")) continue;
    SCOPED_TRACE(row["file"]);
    const auto opened = test::open_frame(row.file("file").string());
    ASSERT_TRUE(opened) << describe(opened.error());
    EXPECT_EQ((*opened)->parameters().kind, frame::ContainerKind::chunk);
    test::Sha256 digest;
    const auto done = test::read_all(frame::FlatView(*opened), [&digest](codec::ByteView bytes) { digest.add(bytes); });
    ASSERT_TRUE(done) << describe(done.error());
    EXPECT_EQ(digest.hex(), row["sha256_of_decoded"]);
    ++chunks;
    snappy += row["file"].find("snappy") != std::string::npos;
  }
  EXPECT_EQ(chunks, 28);
  EXPECT_EQ(snappy, 3);
}

TEST(GoldenUpstream, ArraysReadInCOrderAsTheirManifestSays) {
  int arrays = 0;
  for (const test::Row& row : test::read_manifest(test::shared_golden_dir() / "legacy" / "MANIFEST.tsv")) {
    if (!row["file"].ends_with(".b2nd") && !row["file"].starts_with("caterva-")) continue;
    SCOPED_TRACE(row["file"]);
    frame::FileOps& files = frame::system_files();
    const frame::Descriptor file(files, files.open_named(row.file("file").string(), O_RDONLY).value());
    const auto summary = frame::summarise(files, file.handle());
    ASSERT_TRUE(summary) << describe(summary.error());
    EXPECT_TRUE(summary->has_metalayers) << "stat() would show the size of the chunks";
    const auto opened = test::open_frame(row.file("file").string());
    ASSERT_TRUE(opened) << describe(opened.error());
    const auto view = frame::make_view(*opened, frame::ArrayForm::flat, true);
    ASSERT_TRUE(view) << describe(view.error());
    EXPECT_EQ(std::to_string((*view)->size()), row["uncompressed_length"]);
    const auto bytes = test::read_range(**view, 0, (*view)->size());
    ASSERT_TRUE(bytes) << describe(bytes.error());
    EXPECT_EQ(test::sha256(*bytes), row["sha256_expected"]);
    ++arrays;
  }
  EXPECT_EQ(arrays, 41);
}

TEST(GoldenUpstream, SeedsOfTheCBlosc2FuzzerAreRead) {
  int frames = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::shared_golden_dir() / "fuzz-seeds")) {
    const auto opened = test::open_frame(entry.path().string());
    ASSERT_TRUE(opened) << entry.path() << describe(opened.error());
    std::uint64_t length = 0;
    const auto done =
        test::read_all(frame::FlatView(*opened), [&length](codec::ByteView bytes) { length += bytes.size(); });
    ASSERT_TRUE(done) << entry.path() << describe(done.error());
    EXPECT_EQ(length, (*opened)->parameters().nbytes);
    ++frames;
  }
  EXPECT_EQ(frames, 5);
}

}  // namespace
}  // namespace cframefs

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;  // meson's exit code for a skipped test
  if (cframefs::test::shared_golden_dir().empty()) {
    std::cout << "skipped: not part of the project: upstream frames; configure with -Dshared_golden=DIRECTORY\n";
    return kSkipped;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
