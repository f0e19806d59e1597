// cframe convert: what comes out holds the same bytes, metalayers and arrays as what went in, in the format of today.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "frame/npy_file.h"
#include "frame/npy_header.h"
#include "tests/support/digest.h"
#include "tests/support/golden.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/run_cframe.h"

namespace cframefs::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::string digest_of(const std::string& text) {
  return sha256(Bytes(text.begin(), text.end()));
}

class CframeConvert : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (dir_.path() / name).string(); }
  Ran convert(const std::string& in, const std::string& out, std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"convert", in, out, "-f"});
    return run_cframe(options);
  }
  std::string cat(const std::string& file) const {
    const Ran ran = run_cframe({"cat", file});
    EXPECT_EQ(ran.status, tools::done) << ran.err;
    return ran.out;
  }
  nlohmann::json info(const std::string& file) const {
    return nlohmann::json::parse(run_cframe({"info", "--json", file}).out);
  }
  std::vector<Row> rows() const {
    std::vector<Row> found;
    for (const Row& row : read_manifest(golden_dir() / "legacy" / "MANIFEST.tsv")) {
      if (std::filesystem::exists(row.file("file"))) found.push_back(row);
    }
    return found;
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(dir_.path()), std::filesystem::directory_iterator()));
  }

  TempDir dir_;
};

TEST_F(CframeConvert, EveryOldFormatBecomesACurrentFrame) {
  std::map<std::string, int> formats;
  for (const Row& row : rows()) {
    const std::string& name = row["file"];
    const bool array = name.starts_with("b2nd") || name.starts_with("caterva");
    if (array || name.find("lizard") != std::string::npos || row["sha256_expected"] == "-") continue;
    SCOPED_TRACE(name);
    const std::string in = row.file("file").string();
    std::vector<std::string> options;
    if (name.starts_with("legacy-b3") || name.starts_with("legacy-b4")) options.push_back("--old-bits");
    const Ran ran = convert(in, path("x.b2frame"), options);
    ASSERT_EQ(ran.status, tools::done) << ran.err;
    EXPECT_EQ(digest_of(cat(path("x.b2frame"))), row["sha256_expected"]);
    const nlohmann::json before = info(in);
    const nlohmann::json after = info(path("x.b2frame"));
    EXPECT_EQ(after["format"], "cframe");
    EXPECT_EQ(after["nbytes"], before["nbytes"]);
    EXPECT_EQ(after["typesize"], before["typesize"]);
    EXPECT_EQ(after["metalayers"], before["metalayers"]);
    EXPECT_EQ(after["vlmetalayers"], before["vlmetalayers"]);
    ++formats[before["format"].get<std::string>()];
  }
  EXPECT_EQ(formats["legacy"], 100);
  EXPECT_EQ(formats["bloscpack"], 44);
  EXPECT_EQ(formats["chunk"], 46);
  EXPECT_EQ(formats["cframe"] + formats["sframe"], 21);
}

TEST_F(CframeConvert, ArraysStayArraysWhateverTheirCodec) {
  int checked = 0;
  for (const Row& row : rows()) {
    if (!row["file"].starts_with("b2nd") && !row["file"].starts_with("caterva")) continue;
    SCOPED_TRACE(row["file"]);
    const Ran ran = convert(row.file("file").string(), path("x.b2nd"));
    ASSERT_EQ(ran.status, tools::done) << ran.err;
    const Ran flat = run_cframe({"cat", "--b2nd", "flat", path("x.b2nd")});
    EXPECT_EQ(digest_of(flat.out), row["sha256_expected"]);
    const nlohmann::json after = info(path("x.b2nd"));
    EXPECT_EQ(after["metalayers"][0]["name"], "b2nd");
    ++checked;
  }
  EXPECT_GE(checked, 7);
}

/// Items of 8 bytes that count upwards.
Bytes counting(std::size_t items) {
  Bytes bytes(8 * items);
  for (std::size_t i = 0; i < items; ++i)
    codec::store_le(&bytes[8 * i], std::uint64_t{i});
  return bytes;
}

Bytes npy_of(const std::vector<std::int64_t>& shape, const Bytes& items, bool fortran_order = false) {
  Bytes file = frame::npy_header({"'<u8'", 8}, shape, fortran_order);
  file.insert(file.end(), items.begin(), items.end());
  return file;
}

TEST_F(CframeConvert, NpyToB2ndAndBackIsTheSameFile) {
  const std::vector<std::vector<std::int64_t>> shapes = {{},
                                                         {1},
                                                         {0},
                                                         {5},
                                                         {300'000},
                                                         {7, 0, 3},
                                                         {3, 100'000},
                                                         {1000, 7},
                                                         {40, 50, 60},
                                                         {2, 3, 4, 5},
                                                         {1, 1, 70'001},
                                                         {131'073, 1},
                                                         {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}};
  for (const auto& shape : shapes) {
    std::size_t items = 1;
    std::string text;
    for (const std::int64_t extent : shape) {
      items *= static_cast<std::size_t>(extent);
      text += std::to_string(extent) + " ";
    }
    SCOPED_TRACE(text);
    const Bytes npy = npy_of(shape, counting(items));
    dir_.write("in.npy", npy);
    const Ran there = convert(path("in.npy"), path("x.b2nd"));
    ASSERT_EQ(there.status, tools::done) << there.err;
    const Ran back = convert(path("x.b2nd"), path("out.npy"));
    ASSERT_EQ(back.status, tools::done) << back.err;
    EXPECT_TRUE(file_bytes(path("out.npy")) == npy);
    EXPECT_EQ(run_cframe({"verify", path("x.b2nd")}).status, tools::done);
  }
}

TEST_F(CframeConvert, FortranOrderIsTurnedRound) {
  // Item (i, j, k) of a 3 x 4 x 5 array is at i + 3 j + 12 k in Fortran's order.
  Bytes fortran(8 * 60);
  for (std::uint64_t i = 0; i < 3; ++i)
    for (std::uint64_t j = 0; j < 4; ++j)
      for (std::uint64_t k = 0; k < 5; ++k)
        codec::store_le(&fortran[8 * (i + 3 * j + 12 * k)], std::uint64_t{20 * i + 5 * j + k});
  dir_.write("f.npy", npy_of({3, 4, 5}, fortran, true));
  ASSERT_EQ(convert(path("f.npy"), path("x.b2nd")).status, tools::done);
  ASSERT_EQ(convert(path("x.b2nd"), path("c.npy")).status, tools::done);
  EXPECT_TRUE(file_bytes(path("c.npy")) == npy_of({3, 4, 5}, counting(60)));
}

TEST_F(CframeConvert, NumpyArraysInBloscpack) {
  int checked = 0;
  for (const Row& row : rows()) {
    if (!row["file"].starts_with("bp-np-")) continue;
    SCOPED_TRACE(row["file"]);
    ASSERT_EQ(convert(row.file("file").string(), path("x.npy")).status, tools::done);
    ASSERT_EQ(convert(row.file("file").string(), path("x.b2nd")).status, tools::done);
    const Bytes npy = file_bytes(path("x.npy"));
    const auto header = frame::parse_npy_file(npy);
    ASSERT_TRUE(header) << describe(header.error());
    EXPECT_EQ(sha256(codec::ByteView(npy).subspan(header->data_at)), row["sha256_expected"]);
    // The notes of the manifest tell the bytes in C order.
    const std::string& notes = row["notes"];
    const std::size_t at = notes.find("C-order sha256=");
    const std::string expected = at == std::string::npos ? row["sha256_expected"] : notes.substr(at + 15, 64);
    EXPECT_EQ(digest_of(run_cframe({"cat", "--b2nd", "flat", path("x.b2nd")}).out), expected);
    ++checked;
  }
  EXPECT_EQ(checked, 7);
}

TEST_F(CframeConvert, WishesAreGranted) {
  const std::string in = (golden_dir() / "legacy" / "bp-v1.blp").string();
  const Ran ran =
      convert(in, path("x.b2frame"),
              {"--codec", "zlib", "--clevel", "7", "--filter", "bitshuffle", "--typesize", "8", "--chunksize", "4000"});
  ASSERT_EQ(ran.status, tools::done) << ran.err;
  const nlohmann::json after = info(path("x.b2frame"));
  EXPECT_EQ(after["codec"], "zlib");
  EXPECT_EQ(after["clevel"], 7);
  EXPECT_EQ(after["filters"], "bitshuffle");
  EXPECT_EQ(after["typesize"], 8);
  EXPECT_EQ(after["chunksize"], 4000);
  EXPECT_EQ(cat(path("x.b2frame")), cat(in));
}

TEST_F(CframeConvert, WhatCannotBeConvertedLeavesNothing) {
  const auto golden = [](const std::string& name) { return (golden_dir() / "legacy" / name).string(); };
  dir_.write("text", Bytes(100, 'x'));
  dir_.write("object.npy", frame::npy_header({"'|O'", 8}, std::vector<std::int64_t>{2}));
  Bytes cut = npy_of({10}, counting(10));
  cut.pop_back();
  dir_.write("cut.npy", cut);
  dir_.write("good.npy", npy_of({10}, counting(10)));
  dir_.write("there.b2frame", Bytes(3));
  const std::size_t before = entries();
  EXPECT_EQ(convert(golden("bp-bad-checksum.blp"), path("x.b2frame")).status, tools::data_at_fault);
  EXPECT_EQ(convert(golden("legacy-b1-lizard.b2frame"), path("x.b2frame")).status, tools::data_at_fault);
  EXPECT_EQ(convert(path("text"), path("x.b2frame")).status, tools::data_at_fault);
  EXPECT_EQ(convert(path("object.npy"), path("x.b2nd")).status, tools::data_at_fault);
  EXPECT_EQ(convert(path("cut.npy"), path("x.b2nd")).status, tools::data_at_fault);
  EXPECT_EQ(convert(path("good.npy"), path("x.b2frame")).status, tools::call_at_fault);
  EXPECT_EQ(convert(path("good.npy"), path("x.b2nd"), {"--chunksize", "1M"}).status, tools::call_at_fault);
  EXPECT_EQ(convert(golden("bp-v1.blp"), path("x.b2nd")).status, tools::call_at_fault);
  EXPECT_EQ(convert(golden("bp-v1.blp"), path("x.npy")).status, tools::call_at_fault);
  EXPECT_NE(convert(path("nowhere"), path("x.b2frame")).status, tools::done);
  EXPECT_EQ(run_cframe({"convert", golden("bp-v1.blp"), path("there.b2frame")}).status, tools::call_at_fault);
  EXPECT_EQ(entries(), before);
  EXPECT_EQ(file_bytes(path("there.b2frame")).size(), 3U);
}

}  // namespace
}  // namespace cframefs::test
