// Files of older writers and related formats have the content in their manifest: frames of the betas and release
// candidates of Blosc2 2.0, chunks of Blosc1 and of the alphas, Bloscpack.
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "frame/io/byte_source.h"
#include "frame/io/file_ops.h"
#include "frame/open/open.h"
#include "tests/support/digest.h"
#include "tests/support/golden.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"

namespace cframefs {
namespace {

using codec::ErrorKind;
using test::Row;

std::filesystem::path legacy_manifest() {
  return test::golden_dir() / "legacy" / "MANIFEST.tsv";
}

/// Returns the rows whose file name begins with "PREFIX-".
std::vector<Row> rows(const std::string& prefix) {
  std::vector<Row> chosen;
  for (const Row& row : test::read_manifest(legacy_manifest())) {
    if (row["file"].starts_with(prefix + "-")) chosen.push_back(row);
  }
  return chosen;
}

codec::Result<std::shared_ptr<const frame::Container>> open(const Row& row, bool old_bitshuffle = false) {
  return frame::open_path(frame::system_files(), row.file("file").string(), nullptr, {}, old_bitshuffle);
}

codec::Result<std::string> digest_of(const frame::Container& container) {
  test::Sha256 digest;
  std::uint64_t begin = 0;
  for (std::int64_t chunk = 0; chunk < container.chunk_count(); ++chunk) {
    const auto plain = test::read_chunk(container, chunk);
    if (!plain) return codec::Failure(plain.error());
    if (!plain->empty()) {
      const auto span = container.chunk_at(frame::FlatOffset{begin});
      if (!span) return codec::Failure(span.error());
      EXPECT_EQ(span->chunk.value, chunk);
      EXPECT_EQ(span->begin.value, begin);
      EXPECT_EQ(span->nbytes, plain->size());
    }
    begin += plain->size();
    digest.add(*plain);
  }
  EXPECT_EQ(begin, container.parameters().nbytes);
  return digest.hex();
}

/// Opens, summarises and reads all of a row's file, and compares the results with the row.
void expect_golden(const Row& row, const std::string& kind, bool old_bitshuffle = false) {
  const auto opened = open(row, old_bitshuffle);
  ASSERT_TRUE(opened) << describe(opened.error());
  EXPECT_EQ(frame::kind_name((*opened)->parameters().kind), kind);
  EXPECT_EQ((*opened)->parameters().nbytes, row.number("uncompressed_length"));
  const auto digest = digest_of(**opened);
  ASSERT_TRUE(digest) << describe(digest.error());
  EXPECT_EQ(*digest, row["sha256_expected"]);
  if (!std::filesystem::is_directory(row.file("file"))) {
    const auto in_memory = frame::open_container(frame::memory_source(test::file_bytes(row.file("file").string())),
                                                 nullptr, old_bitshuffle);
    ASSERT_TRUE(in_memory) << describe(in_memory.error());
    EXPECT_EQ((*in_memory)->parameters().kind, (*opened)->parameters().kind);
    EXPECT_EQ(digest_of(**in_memory).value_or(""), *digest);
  }

  const auto fd = frame::system_files().open_named(row.file("file").string(), 0);
  ASSERT_TRUE(fd);
  const frame::Descriptor file(frame::system_files(), *fd);
  const auto summary = frame::summarise(frame::system_files(), file.handle());
  ASSERT_TRUE(summary) << describe(summary.error());
  if (!std::filesystem::is_directory(row.file("file"))) {
    EXPECT_NE(summary->kind, frame::ContainerKind::none);
  }
  EXPECT_EQ(summary->nbytes, row.number("uncompressed_length"));
}

bool is_lizard(const Row& row) {
  return row["file"].find("lizard") != std::string::npos;
}

TEST(GoldenLegacy, FramesOfTheBetas) {
  std::map<std::string, int> forms;
  for (const Row& row : rows("legacy")) {
    SCOPED_TRACE(row["file"]);
    if (is_lizard(row)) {
      const auto opened = open(row);
      ASSERT_TRUE(opened) << describe(opened.error());
      const auto digest = digest_of(**opened);
      ASSERT_FALSE(digest);
      EXPECT_EQ(digest.error().kind, ErrorKind::unsupported);
      EXPECT_NE(digest.error().reason.find("lizard"), std::string::npos);
    } else {
      // beta.5 changed bitshuffle, and nothing in the file tells beta.3 and beta.4 from beta.5.
      const bool old = row["file"].starts_with("legacy-b3") || row["file"].starts_with("legacy-b4");
      expect_golden(row, "legacy", old);
    }
    ++forms[row["variant"]];
  }
  EXPECT_EQ(forms["F0 (beta.1: 64-byte header, no trailer)"] + forms["F0 (beta.1)"], 22);
  EXPECT_EQ(forms["F1 trailer 0 (beta.2)"], 20);
  EXPECT_EQ(forms["F1 trailer 1 (beta.3)"], 20);
  EXPECT_EQ(forms["F1 trailer 1 (beta.4)"], 21);
  EXPECT_EQ(forms["F1 trailer 1 (beta.5)"], 22);
}

TEST(GoldenLegacy, OnlyAnOptionSelectsTheBitshuffleOfBeta3) {
  int checked = 0;
  for (const Row& row : rows("legacy")) {
    if (row["file"].find("zlib-bitshuffle-odd") == std::string::npos) continue;
    SCOPED_TRACE(row["file"]);
    const bool new_rule = row["file"].starts_with("legacy-b5");
    const bool undecided = new_rule || row["file"].starts_with("legacy-b3") || row["file"].starts_with("legacy-b4");
    for (const bool old : {false, true}) {
      const auto opened = open(row, old);
      ASSERT_TRUE(opened);
      EXPECT_EQ(*digest_of(**opened) == row["sha256_expected"], !undecided || old != new_rule);
    }
    ++checked;
  }
  EXPECT_EQ(checked, 5);
}

TEST(GoldenLegacy, MetalayersAndUsermetaOfTheBetas) {
  const std::vector<std::uint8_t> rose = {0x93, 1, 2, 3};
  int with_two = 0;
  int with_usermeta = 0;
  for (const Row& row : rows("legacy")) {
    SCOPED_TRACE(row["file"]);
    const auto opened = open(row);
    ASSERT_TRUE(opened);
    const auto layers = (*opened)->metalayers().value();
    EXPECT_FALSE((*opened)->metalayer_damage());
    const std::string& notes = row["notes"];
    const std::size_t expected = notes.starts_with("2 metalayer") ? 2 : notes.starts_with("1 metalayer") ? 1 : 0;
    ASSERT_EQ(layers.size(), expected);
    if (expected > 0) {
      EXPECT_EQ(layers[0].name, "rose");
      EXPECT_EQ(layers[0].content, rose);
    }
    if (expected == 2) {
      const char text[] = "not msgpack at all";
      EXPECT_EQ(layers[1].name, "a-second-metalayer-name-31chars");
      EXPECT_EQ(layers[1].content, std::vector<std::uint8_t>(text, text + 18));
      ++with_two;
    }
    const std::size_t usermeta = notes.find("usermeta");
    const auto names = (*opened)->vlmetalayer_names();
    if (usermeta == std::string::npos) {
      EXPECT_TRUE(names.empty());
      EXPECT_FALSE((*opened)->vlmetalayer("usermeta"));
      continue;
    }
    const bool shrunk = notes.find("replaced by 11 B") != std::string::npos;
    const std::size_t length = shrunk || notes.find("usermeta 11 B") != std::string::npos ? 11 : 300;
    ASSERT_EQ(names, std::vector<std::string>{"usermeta"});
    const auto content = (*opened)->vlmetalayer("usermeta");
    ASSERT_TRUE(content) << describe(content.error());
    EXPECT_EQ(content->size(), length);
    ++with_usermeta;
  }
  EXPECT_EQ(with_two, 10);
  EXPECT_EQ(with_usermeta, 20);
}

TEST(GoldenLegacy, ChunksOfBlosc1) {
  int checked = 0;
  for (const Row& row : rows("blosc1")) {
    SCOPED_TRACE(row["file"]);
    expect_golden(row, "chunk");
    ++checked;
  }
  EXPECT_EQ(checked, 39);
}

TEST(GoldenLegacy, ChunksOfTheAlphas) {
  int checked = 0;
  for (const Row& row : rows("alpha5")) {
    SCOPED_TRACE(row["file"]);
    expect_golden(row, "chunk");
    ++checked;
  }
  EXPECT_EQ(checked, 7);
}

TEST(GoldenLegacy, FramesOfTheReleaseCandidates) {
  int checked = 0;
  for (const Row& row : rows("cframe")) {
    SCOPED_TRACE(row["file"]);
    expect_golden(row, row["file"].find("sparse") == std::string::npos ? "cframe" : "sframe");
    ++checked;
  }
  EXPECT_EQ(checked, 21);
}

TEST(GoldenLegacy, Bloscpack) {
  std::map<std::string, int> versions;
  for (const Row& row : rows("bp")) {
    if (row["sha256_expected"] == "-") continue;
    SCOPED_TRACE(row["file"]);
    expect_golden(row, "bloscpack");
    ++versions[row["variant"]];
  }
  EXPECT_EQ(versions["Bloscpack v1"], 2);
  EXPECT_EQ(versions["Bloscpack v2"], 4);
  EXPECT_EQ(versions["Bloscpack v3"], 38);
}

TEST(GoldenLegacy, AWrongChecksumFailsOnlyItsChunk) {
  for (const Row& row : rows("bp")) {
    if (row["file"] != "bp-bad-checksum.blp") continue;
    const auto opened = open(row);
    ASSERT_TRUE(opened) << describe(opened.error());
    ASSERT_EQ((*opened)->chunk_count(), 3);
    EXPECT_TRUE(test::read_chunk(**opened, 0));
    EXPECT_TRUE(test::read_chunk(**opened, 1));
    for (int again = 0; again < 2; ++again) {
      const auto damaged = test::read_chunk(**opened, 2);
      ASSERT_FALSE(damaged);
      EXPECT_EQ(damaged.error().kind, ErrorKind::corruption);
      EXPECT_EQ(damaged.error().chunk, 2);
      EXPECT_NE(damaged.error().reason.find("crc32"), std::string::npos) << damaged.error().reason;
    }
    return;
  }
  FAIL() << "the file is missing";
}

TEST(GoldenLegacy, MetadataOfBloscpack) {
  std::map<std::string, std::string> texts;
  for (const Row& row : rows("bp")) {
    const auto opened = open(row);
    ASSERT_TRUE(opened) << row["file"] << describe(opened.error());
    for (const std::string& name : (*opened)->vlmetalayer_names()) {
      const auto content = (*opened)->vlmetalayer(name);
      ASSERT_TRUE(content) << row["file"] << describe(content.error());
      EXPECT_EQ(name, "metadata");
      texts[row["file"]] = std::string(content->begin(), content->end());
    }
  }
  EXPECT_EQ(texts.size(), 12U);
  EXPECT_EQ(texts["bp-meta-small-nocomp.blp"], "{\"a\":1}");
  EXPECT_NE(texts["bp-np-i4-fortran.blp"].find("\"order\":\"F\""), std::string::npos) << texts["bp-np-i4-fortran.blp"];
  for (const auto& [file, text] : texts) {
    EXPECT_TRUE(text.starts_with("{") && text.ends_with("}")) << file << text;
  }
}

}  // namespace
}  // namespace cframefs
