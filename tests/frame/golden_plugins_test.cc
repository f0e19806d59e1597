// Arrays that C-Blosc2 wrote with its plug-in codecs and filters decode to the content in their manifest.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/digest.h"
#include "tests/support/golden.h"
#include "tests/support/reading.h"

namespace cframefs {
namespace {

std::string note(const std::string& notes, const std::string& key) {
  for (const std::string& field : test::split(notes, ';')) {
    const std::size_t begin = field.find(key + "=");
    if (begin != std::string::npos) return field.substr(begin + key.size() + 1);
  }
  return {};
}

TEST(GoldenPlugins, ChunksDecode) {
  int checked = 0;
  for (const test::Row& row : test::read_manifest(test::golden_dir() / "legacy" / "MANIFEST.tsv")) {
    bool plugin = false;
    for (const char* name : {"-ndlz", "-zfp-", "-ndcell", "-ndmean"})
      plugin = plugin || row["file"].find(name) != std::string::npos;
    if (!plugin) continue;
    SCOPED_TRACE(row["file"]);
    const auto opened = test::open_frame(row.file("file").string());
    ASSERT_TRUE(opened) << describe(opened.error());
    test::Sha256 digest;
    std::size_t length = 0;
    const auto done = test::read_all(frame::FlatView(*opened), [&](codec::ByteView bytes) {
      digest.add(bytes);
      length += bytes.size();
    });
    ASSERT_TRUE(done) << describe(done.error());
    EXPECT_EQ(std::to_string(length), note(row["notes"], "raw_chunk_order_len"));
    EXPECT_EQ(digest.hex(), note(row["notes"], "raw_chunk_order_sha256"));
    ++checked;
  }
  EXPECT_EQ(checked, 7);
}

}  // namespace
}  // namespace cframefs
