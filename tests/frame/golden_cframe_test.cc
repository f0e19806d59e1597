// Every good golden frame has the parameters, bytes and metalayers in its manifest. Frames that C-Blosc2 writes but
// cannot read back give the bytes that were written, or an error.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codec/stream/codec_table.h"
#include "frame/open/container_info.h"
#include "tests/support/digest.h"
#include "tests/support/golden.h"
#include "tests/support/reading.h"

namespace cframefs {
namespace {

using test::Row;

class GoldenCframe : public ::testing::TestWithParam<Row> {};

std::string split_mode_name(std::uint8_t mode) {
  static const char* const names[] = {"?", "always", "never", "auto", "fwd"};
  return mode < 5 ? names[mode] : "?";
}

/// Names are percent-encoded outside A-Za-z0-9_.- in the manifest.
std::string percent_encoded(const std::string& name) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '_' || c == '.' || c == '-') {
      text += c;
    } else {
      text += '%';
      text += digits[byte >> 4];
      text += digits[byte & 15];
    }
  }
  return text;
}

std::string listed(const std::vector<frame::Metalayer>& layers) {
  std::string text;
  for (const frame::Metalayer& layer : layers) {
    if (!text.empty()) text += ';';
    text +=
        percent_encoded(layer.name) + ':' + std::to_string(layer.content.size()) + ':' + test::sha256(layer.content);
  }
  return text.empty() ? "-" : text;
}

TEST_P(GoldenCframe, HasTheParametersOfTheManifest) {
  const Row& row = GetParam();
  const auto opened = test::open_frame(row.file("path").string(), static_cast<std::uint64_t>(row.number("offset")));
  ASSERT_TRUE(opened) << describe(opened.error());
  const frame::FrameParameters& parameters = (*opened)->parameters();
  EXPECT_EQ(codec::codec_name(parameters.compcode), row["codec"]);
  EXPECT_EQ(parameters.clevel, row.number("clevel"));
  EXPECT_EQ(frame::filters_name(parameters), row["filters"]);
  EXPECT_EQ(parameters.typesize, row.number("typesize"));
  EXPECT_EQ(parameters.blocksize, row.number("blocksize"));
  EXPECT_EQ(parameters.chunksize, row.number("chunksize"));
  EXPECT_EQ((*opened)->chunk_count(), row.number("nchunks"));
  EXPECT_EQ(split_mode_name(parameters.split_mode), row["splitmode"]);
  EXPECT_EQ(parameters.nbytes, static_cast<std::uint64_t>(row.number("nbytes")));
}

TEST_P(GoldenCframe, HasTheMetalayersOfTheManifest) {
  const Row& row = GetParam();
  const auto opened = test::open_frame(row.file("path").string(), static_cast<std::uint64_t>(row.number("offset")));
  ASSERT_TRUE(opened) << describe(opened.error());
  EXPECT_EQ(listed((*opened)->metalayers().value()), row["meta"]);
  std::vector<frame::Metalayer> variable;
  for (const std::string& name : (*opened)->vlmetalayer_names()) {
    const auto content = (*opened)->vlmetalayer(name);
    ASSERT_TRUE(content) << describe(content.error());
    variable.push_back({name, *content});
  }
  EXPECT_EQ(listed(variable), row["vlmeta"]);
  EXPECT_FALSE((*opened)->metalayer_damage());
  EXPECT_FALSE((*opened)->vlmetalayer_damage());
}

TEST_P(GoldenCframe, HasTheBytesOfTheManifest) {
  const Row& row = GetParam();
  const auto opened = test::open_frame(row.file("path").string(), static_cast<std::uint64_t>(row.number("offset")));
  ASSERT_TRUE(opened) << describe(opened.error());
  const auto view = std::make_shared<const frame::FlatView>(*opened);
  ASSERT_EQ(view->size(), static_cast<std::uint64_t>(row.number("nbytes")));
  ASSERT_TRUE(row["sha256"] != "-" || row["ranges"] != "-") << "the manifest has neither a hash nor ranges";
  if (row["sha256"] != "-") {
    test::Sha256 digest;
    std::uint64_t length = 0;
    const auto done = test::read_all(*view, [&](codec::ByteView bytes) {
      digest.add(bytes);
      length += bytes.size();
    });
    ASSERT_TRUE(done) << describe(done.error());
    EXPECT_EQ(length, view->size());
    EXPECT_EQ(digest.hex(), row["sha256"]);
  }
  for (const test::GoldenRange& range : test::parse_ranges(row["ranges"])) {
    const auto bytes = test::read_range(*view, range.offset, range.length);
    ASSERT_TRUE(bytes) << describe(bytes.error());
    EXPECT_EQ(test::sha256(*bytes), range.sha256) << range.offset << '+' << range.length;
  }
}

TEST_P(GoldenCframe, GivesTheSameBytesInPieces) {
  const Row& row = GetParam();
  if (row["sha256"] == "-" || row.number("nbytes") > (4 << 20))
    return;  // HasTheBytesOfTheManifest compares ranges of these
  const auto opened = test::open_frame(row.file("path").string(), static_cast<std::uint64_t>(row.number("offset")));
  ASSERT_TRUE(opened) << describe(opened.error());
  const auto view = std::make_shared<const frame::FlatView>(*opened);
  test::Sha256 digest;
  const std::uint64_t step = std::max<std::uint64_t>(view->size() / 37 + 1, 1000);
  for (std::uint64_t at = 0; at < view->size(); at += step) {
    const auto bytes = test::read_range(*view, at, std::min(step, view->size() - at));
    ASSERT_TRUE(bytes) << describe(bytes.error());
    digest.add(*bytes);
  }
  EXPECT_EQ(digest.hex(), row["sha256"]);
}

INSTANTIATE_TEST_SUITE_P(Manifest, GoldenCframe,
                         ::testing::ValuesIn(test::read_manifest(test::golden_dir() / "cframe" / "MANIFEST.tsv")),
                         [](const auto& instance) {
                           return test::test_name(instance.param["path"]) + "_at_" + instance.param["offset"];
                         });

TEST(GoldenCframeManifest, IsWhole) {
  EXPECT_EQ(test::read_manifest(test::golden_dir() / "cframe" / "MANIFEST.tsv").size(), 400U);
}

class GoldenQuirks : public ::testing::TestWithParam<Row> {};

TEST_P(GoldenQuirks, ReadAsWrittenOrFail) {
  const Row& row = GetParam();
  const auto opened = test::open_frame(row.file("path").string());
  if (!opened) {
    EXPECT_EQ(row["ref_open"], "error") << describe(opened.error());
    return;
  }
  std::uint64_t at = 0;
  const auto view = std::make_shared<const frame::FlatView>(*opened);
  for (const std::string& field : test::split(row["chunks"], ';')) {
    const auto parts = test::split(field, ':');
    ASSERT_GE(parts.size(), 4U);
    const auto length = std::stoull(parts[1]);
    const auto chunk = test::read_chunk(**opened, std::stoll(parts[0]));
    // Chunks that C-Blosc2 reads correctly must be readable.
    if (parts[3] == "same") {
      ASSERT_TRUE(chunk) << describe(chunk.error());
    }
    if (chunk) {
      EXPECT_EQ(test::sha256(*chunk), parts[2]) << "chunk " << parts[0];
    }
    // The same bytes at their offset in the flat file.
    if (at + length <= view->size()) {
      const auto bytes = test::read_range(*view, at, length);
      if (bytes) {
        EXPECT_EQ(test::sha256(*bytes), parts[2]) << "range of chunk " << parts[0];
      }
    }
    at += length;
  }
}

INSTANTIATE_TEST_SUITE_P(Manifest, GoldenQuirks,
                         ::testing::ValuesIn(test::read_manifest(test::golden_dir() / "cframe" / "quirks" /
                                                                 "QUIRKS.tsv")),
                         [](const auto& instance) { return test::test_name(instance.param["path"]); });

}  // namespace
}  // namespace cframefs
