// cframe convert: what comes out holds the same bytes, metalayers and arrays as what went in, in the format of today.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "frame/numpy/npy_file.h"
#include "frame/numpy/npy_header.h"
#include "tests/support/digest.h"
#include "tests/support/frame_builder.h"
#include "tests/support/golden.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/cframe/run_cframe.h"
#include "tools/stream/fortran_input.h"

namespace cframefs::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::string digest_of(const std::string& text) {
  return sha256(Bytes(text.begin(), text.end()));
}

class MemoryInput final : public tools::SeekableInput {
 public:
  explicit MemoryInput(Bytes bytes) : bytes_(std::move(bytes)) {}
  codec::Result<std::size_t> read(codec::ByteSpan into) override {
    const std::size_t size = std::min(into.size(), bytes_.size() - at_);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at_), size, into.begin());
    at_ += size;
    bytes_read += size;
    return size;
  }
  void go_to(std::uint64_t at) override { at_ = static_cast<std::size_t>(at); }
  std::size_t bytes_read = 0;

 private:
  const Bytes bytes_;
  std::size_t at_ = 0;
};

class CframeConvert : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (dir_.path() / name).string(); }
  static Ran convert(const std::string& in, const std::string& out, std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"convert", in, out, "-f"});
    return run_cframe(options);
  }
  static std::string cat(const std::string& file) {
    const Ran ran = run_cframe({"cat", file});
    EXPECT_EQ(ran.status, tools::done) << ran.err;
    return ran.out;
  }
  static nlohmann::json info(const std::string& file) {
    return nlohmann::json::parse(run_cframe({"info", "--json", file}).out);
  }
  static std::vector<Row> rows() {
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
    if (name.starts_with("legacy-b3") || name.starts_with("legacy-b4")) options.emplace_back("--beta-bitshuffle=old");
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

RC_GTEST_PROP(TransposingInput, IsTheOrderOfANaiveLoop, ()) {
  const auto ndim = *rc::gen::inRange<std::size_t>(0, 5);
  const auto shape = *rc::gen::container<std::vector<std::int64_t>>(ndim, rc::gen::inRange<std::int64_t>(0, 7));
  const auto itemsize = *rc::gen::inRange<std::uint64_t>(1, 9);
  std::vector<std::uint64_t> strides;  // in Fortran's order
  std::uint64_t total = itemsize;
  for (const std::int64_t extent : shape) {
    strides.push_back(total);
    total *= static_cast<std::uint64_t>(extent);
  }
  Bytes fortran(total);
  for (std::size_t i = 0; i < fortran.size(); ++i)
    fortran[i] = static_cast<std::uint8_t>(i * 37 >> 3);
  Bytes expected;
  for (std::uint64_t item = 0; item < total / itemsize; ++item) {
    std::uint64_t rest = item;
    std::uint64_t from = 0;
    for (std::size_t d = ndim; d-- > 0;) {
      from += rest % static_cast<std::uint64_t>(shape[d]) * strides[d];
      rest /= static_cast<std::uint64_t>(shape[d]);
    }
    expected.insert(expected.end(), &fortran[from], &fortran[from] + itemsize);
  }
  // From bands of one item to one of everything.
  const auto band = *rc::gen::inRange<std::uint64_t>(1, 2 * total + 2);
  const auto input = tools::in_c_order(std::make_unique<MemoryInput>(fortran), shape, itemsize, band);
  Bytes got(total + 1);
  std::size_t filled = 0;
  while (filled < total) {
    const std::size_t step = std::min<std::size_t>(*rc::gen::inRange<std::size_t>(1, 100), got.size() - filled);
    const auto read = input->read(codec::ByteSpan(got).subspan(filled, step));
    RC_ASSERT(read.has_value());
    RC_ASSERT(*read > 0U);
    filled += *read;
  }
  RC_ASSERT(input->read(codec::ByteSpan(got).last(1)).value() == 0U);
  got.resize(total);
  RC_ASSERT(got == expected);
}

TEST(TransposingInput, OfAnArrayThatFitsEachByteIsReadOnce) {
  auto memory = std::make_unique<MemoryInput>(Bytes(10 << 20));
  const MemoryInput& counted = *memory;
  const auto input = tools::in_c_order(std::move(memory), {5 << 10, 1 << 10}, 2);
  Bytes got(10 << 20);
  ASSERT_EQ(input->read(got).value(), got.size());
  EXPECT_EQ(counted.bytes_read, got.size());
}

TEST(TransposingInput, OfALargeArrayOnlyWhatABandNeedsIsReadWhereColumnsAreLong) {
  auto memory = std::make_unique<MemoryInput>(Bytes(16 << 20));
  const MemoryInput& counted = *memory;
  // Columns of 1 MiB; a band takes a sixteenth of each.
  const auto input = tools::in_c_order(std::move(memory), {1 << 19, 16}, 2, 1 << 20);
  Bytes got(16 << 20);
  ASSERT_EQ(input->read(got).value(), got.size());
  EXPECT_EQ(counted.bytes_read, got.size());
}

TEST(TransposingInput, AnEndThatComesTooEarlyIsDamage) {
  const auto input = tools::in_c_order(std::make_unique<MemoryInput>(Bytes(99)), {10, 10}, 1);
  Bytes got(100);
  const auto read = input->read(got);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, codec::ErrorKind::corruption);
}

/// A frame of chunks of different sizes with a metalayer that says what each is.
FrameBuilder typed_chunks() {
  FrameBuilder frame;
  frame.general_flags = 0x53;
  frame.metalayers.emplace_back("vlarray", Bytes{0x81, 0xa7, 'v', 'e', 'r', 's', 'i', 'o', 'n', 1});
  frame.vlmetalayers.emplace_back("title", plain_chunk(Bytes{0xa1, 'x'}));
  std::vector<std::int64_t> places;
  for (const std::size_t size : {std::size_t{7}, std::size_t{3000}, std::size_t{1}}) {
    places.push_back(static_cast<std::int64_t>(frame.chunk_section.size()));
    const Bytes chunk = plain_chunk(Bytes(size, static_cast<std::uint8_t>(size)));
    frame.chunk_section.insert(frame.chunk_section.end(), chunk.begin(), chunk.end());
    frame.nbytes += static_cast<std::int64_t>(size);
    frame.chunk_section.insert(frame.chunk_section.end(), 100, 0xee);  // dead bytes
  }
  frame.index = plain_index(places);
  return frame;
}

TEST_F(CframeConvert, ChunksThatAMetalayerSpeaksOfStayAsTheyAre) {
  const Bytes before = typed_chunks().build();
  dir_.write("typed.b2frame", before);
  const Ran ran = convert(path("typed.b2frame"), path("x.b2frame"), {"--checksums=keep"});
  ASSERT_EQ(ran.status, tools::done) << ran.err;
  EXPECT_EQ(cat(path("x.b2frame")), cat(path("typed.b2frame")));
  const nlohmann::json made = info(path("x.b2frame"));
  const nlohmann::json old = info(path("typed.b2frame"));
  for (const char* same : {"chunks", "nbytes", "chunksize", "metalayers", "vlmetalayers", "frame_version"})
    EXPECT_EQ(made[same], old[same]) << same;
  EXPECT_LT(file_bytes(path("x.b2frame")).size(), before.size() - 250);
  EXPECT_EQ(run_cframe({"verify", path("x.b2frame")}).status, tools::done);
  const Ran wished = convert(path("typed.b2frame"), path("y.b2frame"), {"--codec", "lz4"});
  EXPECT_EQ(wished.status, tools::kUsageError);
  EXPECT_FALSE(std::filesystem::exists(path("y.b2frame")));
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
  EXPECT_EQ(convert(golden("bp-bad-checksum.blp"), path("x.b2frame")).status, tools::kDataError);
  EXPECT_EQ(convert(golden("legacy-b1-lizard.b2frame"), path("x.b2frame")).status, tools::kDataError);
  EXPECT_EQ(convert(path("text"), path("x.b2frame")).status, tools::kDataError);
  EXPECT_EQ(convert(path("object.npy"), path("x.b2nd")).status, tools::kDataError);
  EXPECT_EQ(convert(path("cut.npy"), path("x.b2nd")).status, tools::kDataError);
  EXPECT_EQ(convert(path("good.npy"), path("x.b2frame")).status, tools::kUsageError);
  EXPECT_EQ(convert(path("good.npy"), path("x.b2nd"), {"--chunksize", "1M"}).status, tools::kUsageError);
  EXPECT_EQ(convert(golden("bp-v1.blp"), path("x.b2nd")).status, tools::kUsageError);
  EXPECT_EQ(convert(golden("bp-v1.blp"), path("x.npy")).status, tools::kUsageError);
  EXPECT_NE(convert(path("nowhere"), path("x.b2frame")).status, tools::done);
  EXPECT_EQ(run_cframe({"convert", golden("bp-v1.blp"), path("there.b2frame")}).status, tools::kUsageError);
  EXPECT_EQ(entries(), before);
  EXPECT_EQ(file_bytes(path("there.b2frame")).size(), 3U);
}

}  // namespace
}  // namespace cframefs::test
