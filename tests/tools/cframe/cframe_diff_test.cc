// cframe diff: whether two files have the same content, where they differ first, and in how many bytes.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/cframe/run_cframe.h"

namespace cframefs::test {
namespace {

using nlohmann::json;
using Bytes = std::vector<std::uint8_t>;

Bytes pattern(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::uint8_t>(i * 2654435761U >> 13);
  return bytes;
}

class CframeDiff : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (dir_.path() / name).string(); }
  void pack(const std::string& name, const Bytes& plain, std::vector<std::string> options) const {
    dir_.write(name, plain);
    options.insert(options.begin(), {"pack", "-f", path(name), path(name + ".b2frame")});
    EXPECT_EQ(run_cframe(options).status, tools::done);
  }
  Ran diff(const std::string& a, const std::string& b, std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"diff", path(a), path(b)});
    return run_cframe(options);
  }
  json found(const std::string& a, const std::string& b) const {
    const Ran ran = diff(a, b, {"--json"});
    EXPECT_EQ(ran.status, tools::kDataError) << ran.err;
    return json::parse(ran.out);
  }

  TempDir dir_;
};

TEST_F(CframeDiff, TheSameContentInOtherCodecsAndChunks) {
  const Bytes plain = pattern(5'000'001);
  pack("a", plain, {"--codec", "lz4"});
  pack("b", plain, {"--codec", "zlib", "--clevel", "1", "--chunksize", "77777"});
  for (const char* other : {"a", "a.b2frame", "b.b2frame"}) {
    const Ran ran = diff("a.b2frame", other);
    EXPECT_EQ(ran.status, tools::done) << other << ran.err;
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(json::parse(diff(other, "a.b2frame", {"--json"}).out)["same"].get<bool>());
  }
}

TEST_F(CframeDiff, TheFirstDifferenceAndTheirNumber) {
  Bytes plain = pattern(3'000'000);
  pack("a", plain, {});
  for (const std::size_t at : {std::size_t{1'234'567}, std::size_t{1'234'569}, std::size_t{2'999'999}})
    plain[at] ^= 0x80;
  pack("b", plain, {"--codec", "lz4", "--chunksize", "100000"});
  const json shown = found("a.b2frame", "b.b2frame");
  EXPECT_EQ(shown["first"], 1'234'567);
  EXPECT_EQ(shown["different"], 3);
  EXPECT_EQ(shown["sizes"], (json{3'000'000, 3'000'000}));
  const std::string text = diff("b.b2frame", "a").out;
  EXPECT_NE(text.find("first at byte 1234567; 3 of 3000000 bytes differ"), std::string::npos) << text;
  const Ran quiet = diff("a.b2frame", "b.b2frame", {"--quiet"});
  EXPECT_EQ(quiet.status, tools::kDataError);
  EXPECT_EQ(quiet.out + quiet.err, "");
}

TEST_F(CframeDiff, OneLongerThanTheOther) {
  const Bytes plain = pattern(100'000);
  pack("a", plain, {});
  pack("b", Bytes(plain.begin(), plain.end() - 1), {});
  pack("c", {}, {});
  EXPECT_EQ(found("a.b2frame", "b.b2frame")["first"], 99'999);
  EXPECT_EQ(found("a.b2frame", "b.b2frame")["different"], 0);
  EXPECT_EQ(found("c.b2frame", "a")["first"], 0);
  EXPECT_NE(diff("a", "b.b2frame").out.find("lengths 100000 and 99999"), std::string::npos);
  EXPECT_EQ(diff("c", "c.b2frame").status, tools::done);
}

TEST_F(CframeDiff, ArraysHaveItems) {
  const auto array = golden_dir() / "legacy" / "b2nd-2d-ndlz4.b2nd";
  const std::string npy = path("x.npy");
  ASSERT_EQ(run_cframe({"convert", array.string(), npy}).status, tools::done);
  EXPECT_EQ(run_cframe({"diff", array.string(), npy}).status, tools::done);
  Bytes bytes = file_bytes(npy);
  bytes[bytes.size() - 3600 + 60 * 7 + 5] ^= 1;
  dir_.write("y.npy", bytes);
  ASSERT_EQ(run_cframe({"convert", path("y.npy"), path("y.b2nd")}).status, tools::done);
  const json shown = json::parse(run_cframe({"diff", "--json", array.string(), path("y.b2nd")}).out);
  EXPECT_EQ(shown["item"], (json{7, 5}));
  EXPECT_EQ(shown["different"], 1);
  const json flat = json::parse(run_cframe({"diff", "--json", "--b2nd", "flat", array.string(), path("y.b2nd")}).out);
  EXPECT_EQ(flat["first"], 60 * 7 + 5);
}

TEST_F(CframeDiff, DamageIsAnErrorWithItsFile) {
  const Bytes plain = pattern(1'000'000);
  pack("a", plain, {"--chunksize", "100000"});
  Bytes frame = file_bytes(path("a.b2frame"));
  // The header of the first chunk.
  const std::size_t first_chunk = static_cast<std::size_t>(frame[13]) << 8U | frame[14];
  std::fill_n(frame.begin() + static_cast<std::ptrdiff_t>(first_chunk), 32, std::uint8_t{0});
  dir_.write("bad.b2frame", frame);
  for (const auto& [a, b] : {std::pair("a.b2frame", "bad.b2frame"), std::pair("bad.b2frame", "a")}) {
    const Ran ran = diff(a, b);
    EXPECT_EQ(ran.status, tools::kDataError) << ran.out;
    EXPECT_NE(ran.err.find("bad.b2frame: chunk 0"), std::string::npos) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  dir_.write("cut.b2frame", Bytes(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(frame.size() / 2)));
  const Ran ran = diff("a", "cut.b2frame");
  EXPECT_EQ(ran.status, tools::kDataError);
  EXPECT_NE(ran.err.find("cut.b2frame"), std::string::npos) << ran.err;
  EXPECT_EQ(diff("a", "missing").status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"diff", "-", "-"}).status, tools::kUsageError);
  std::filesystem::create_directory(path("directory"));
  EXPECT_EQ(diff("a", "directory").status, tools::kUsageError);
}

}  // namespace
}  // namespace cframefs::test
