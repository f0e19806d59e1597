// Every damaged golden frame gives an outcome that its manifest allows. A false size in a header does not make the
// program allocate memory.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "frame/container/chunk_reader.h"
#include "tests/support/digest.h"
#include "tests/support/golden.h"
#include "tests/support/memory_meter.h"
#include "tests/support/reading.h"

namespace cframefs {
namespace {

using test::GoldenRange;
using test::Row;

std::filesystem::path malformed_manifest() {
  return test::golden_dir() / "malformed" / "MANIFEST.tsv";
}

// All files are small: opening and reading need memory for decoder states and one index unit.
constexpr std::size_t kMemoryBound = std::size_t{40} << 20;
// Limit of the address space, where it can be limited: the program, its libraries and the bound above.
constexpr std::size_t kAddressSpace = std::size_t{600} << 20;

/// Returns the path of the good frame that `row` derives from.
std::filesystem::path base_of(const Row& row) {
  const std::filesystem::path directory = test::golden_dir() / "malformed";
  return row["path"].starts_with("sframe/") ? directory / "sframe" / "good.b2frame" : directory / "good" / row["base"];
}

/// Returns the uncompressed content of a good frame, checked against the hashes of its row.
const std::vector<std::uint8_t>& content_of(const std::filesystem::path& base) {
  static std::map<std::filesystem::path, std::vector<std::uint8_t>> contents;
  const auto known = contents.find(base);
  if (known != contents.end()) return known->second;
  std::vector<std::uint8_t> content;
  const auto opened = test::open_frame(base.string());
  EXPECT_TRUE(opened) << base;
  if (opened) {
    const auto done = test::read_all(frame::FlatView(*opened), [&content](codec::ByteView bytes) {
      content.insert(content.end(), bytes.begin(), bytes.end());
    });
    EXPECT_TRUE(done) << base;
  }
  return contents.emplace(base, std::move(content)).first->second;
}

bool is_base(const std::vector<std::uint8_t>& bytes, const Row& row, const GoldenRange& range) {
  if (!range.sha256.empty()) return test::sha256(bytes) == range.sha256;
  const auto base = base_of(row);
  const std::vector<std::uint8_t>& content = content_of(base);
  if (range.offset + range.length > content.size()) return false;
  return std::equal(bytes.begin(), bytes.end(), content.begin() + static_cast<std::ptrdiff_t>(range.offset));
}

/// Reads every chunk and every metalayer. Errors are allowed; crashes are not.
void touch_everything(const frame::Container& container) {
  const std::int64_t chunks = std::min<std::int64_t>(container.chunk_count(), 50);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const auto reader = frame::ChunkReader::open(container, frame::ChunkNumber{chunk});
    if (!reader || (*reader)->decoder().nbytes() > (1 << 20)) continue;
    static_cast<void>(test::read_chunk(container, chunk));
  }
  for (const std::string& name : container.vlmetalayer_names())
    static_cast<void>(container.vlmetalayer(name));
  static_cast<void>(container.vlmetalayer("absent"));
  static_cast<void>(container.next_chunk(frame::ChunkNumber{0}, true));
  static_cast<void>(container.next_chunk(frame::ChunkNumber{0}, false));
}

class GoldenMalformed : public ::testing::TestWithParam<Row> {
 protected:
  static void SetUpTestSuite() {
    for (const Row& row : test::read_manifest(malformed_manifest())) {
      if (row["intact"] != "-") static_cast<void>(content_of(base_of(row)));
    }
    static_cast<void>(test::limit_address_space(kAddressSpace));
  }
};

TEST_P(GoldenMalformed, GivesWhatItsPolicyAllows) {
  const Row& row = GetParam();
  const std::string& policy = row["policy"];
  const std::size_t before = test::reset_peak();
  const auto opened = test::open_frame(row.file("path").string());
  if (opened) touch_everything(**opened);
  EXPECT_LT(test::peak_bytes() - before, kMemoryBound);

  if (policy == "open-error") {
    EXPECT_FALSE(opened);
    return;
  }
  if (policy == "same") {
    ASSERT_TRUE(opened) << describe(opened.error());
  }
  if (!opened) {
    EXPECT_FALSE(opened.error().reason.empty());
    return;
  }
  const auto view = std::make_shared<const frame::FlatView>(*opened);
  for (const GoldenRange& range : test::parse_ranges(row["intact"])) {
    const bool inside = range.offset + range.length <= view->size();
    const auto bytes = inside ? test::read_range(*view, range.offset, range.length)
                              : codec::Result<std::vector<std::uint8_t>>(codec::corrupt("past the end"));
    if (policy == "any") {
      EXPECT_TRUE(!bytes || is_base(*bytes, row, range)) << range.offset << '+' << range.length;
    } else {
      ASSERT_TRUE(bytes) << describe(bytes.error());
      EXPECT_TRUE(is_base(*bytes, row, range)) << range.offset << '+' << range.length;
    }
  }
  if (policy == "read-error") {
    std::vector<GoldenRange> affected = test::parse_ranges(row["affected"]);
    if (row["affected"] == "all") affected.push_back({0, view->size(), ""});
    ASSERT_FALSE(affected.empty());
    for (const GoldenRange& range : affected) {
      ASSERT_LE(range.offset + range.length, view->size());
      EXPECT_FALSE(test::read_range(*view, range.offset, range.length)) << range.offset << '+' << range.length;
    }
  }
}

// The manifest allows an error for these frames, but their data is intact, so it must be readable.
TEST_P(GoldenMalformed, DamageElsewhereDoesNotAffectData) {
  const Row& row = GetParam();
  if (row["affected"] != "none") return;
  const auto opened = test::open_frame(row.file("path").string());
  ASSERT_TRUE(opened) << describe(opened.error());
  const auto view = std::make_shared<const frame::FlatView>(*opened);
  for (const GoldenRange& range : test::parse_ranges(row["intact"])) {
    const auto bytes = test::read_range(*view, range.offset, range.length);
    ASSERT_TRUE(bytes) << describe(bytes.error());
    EXPECT_TRUE(is_base(*bytes, row, range)) << range.offset << '+' << range.length;
  }
}

// Likewise, the intact chunks of a frame with damaged chunks must be readable.
TEST_P(GoldenMalformed, IntactChunksOfADamagedFrameAreRead) {
  const Row& row = GetParam();
  if (row["policy"] != "any" || row["affected"] == "all") return;
  if (row["path"] == "index/short.b2frame") return;  // with an index of a wrong length no chunk has an offset
  const auto opened = test::open_frame(row.file("path").string());
  ASSERT_TRUE(opened) << describe(opened.error());
  const auto view = std::make_shared<const frame::FlatView>(*opened);
  for (const GoldenRange& range : test::parse_ranges(row["intact"])) {
    const auto bytes = test::read_range(*view, range.offset, range.length);
    ASSERT_TRUE(bytes) << describe(bytes.error());
    EXPECT_TRUE(is_base(*bytes, row, range)) << range.offset << '+' << range.length;
  }
}

INSTANTIATE_TEST_SUITE_P(Manifest, GoldenMalformed, ::testing::ValuesIn(test::read_manifest(malformed_manifest())),
                         [](const auto& instance) { return test::test_name(instance.param["path"]); });

TEST(GoldenMalformedManifest, IsWhole) {
  const std::vector<Row> rows = test::read_manifest(malformed_manifest());
  EXPECT_EQ(rows.size(), 508U);
  const std::set<std::string> known = {"open-error", "read-error", "any", "same"};
  for (const Row& row : rows) {
    EXPECT_TRUE(known.contains(row["policy"])) << row["path"];
    EXPECT_TRUE(std::filesystem::exists(row.file("path"))) << row["path"];
  }
}

}  // namespace
}  // namespace cframefs
