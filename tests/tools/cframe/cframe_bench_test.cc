// cframe bench: each setting that the options permit is measured, and what it stores is what pack stores.
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "codec/stream/codec_table.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/cframe/run_cframe.h"

namespace cframefs::test {
namespace {

using nlohmann::json;
using Bytes = std::vector<std::uint8_t>;

class CframeBench : public testing::Test {
 protected:
  void SetUp() override {
    Bytes plain(300'000);
    for (std::size_t i = 0; i < plain.size(); ++i)
      plain[i] = static_cast<std::uint8_t>(i % 4 == 0 ? i / 400 : 0);
    dir_.write("in", plain);
  }
  std::string path(const std::string& name) const { return (dir_.path() / name).string(); }
  static std::vector<json> measured(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"bench", "--json", "--seconds", "0"});
    const Ran ran = run_cframe(arguments);
    EXPECT_EQ(ran.status, tools::done) << ran.err;
    std::vector<json> all;
    std::istringstream stream(ran.out);
    for (std::string line; std::getline(stream, line);)
      all.push_back(json::parse(line));
    return all;
  }

  TempDir dir_;
};

TEST_F(CframeBench, MeasuresEveryCodecFilterAndLevel) {
  const auto all = measured({path("in"), "--typesize", "4"});
  std::set<std::string> settings;
  for (const json& one : all) {
    settings.insert(one["codec"].get<std::string>() + one["filters"].get<std::string>() + one["clevel"].dump());
    EXPECT_EQ(one["plain"], 300'000);
    EXPECT_GT(one["encode_bytes_per_second"], 0);
    EXPECT_GT(one["decode_bytes_per_second"], 0);
  }
  std::size_t codecs = 0;
  for (const codec::CodecInfo& codec : codec::codec_table())
    codecs += codec.encode != nullptr ? 1 : 0;
  EXPECT_EQ(settings.size(), codecs * 4 * 3);
  EXPECT_EQ(all.size(), settings.size());
  // The smallest first; it is the fastest of its size.
  for (std::size_t i = 1; i < all.size(); ++i)
    EXPECT_LE(all[i - 1]["stored"], all[i]["stored"]);
  EXPECT_TRUE(all.front()["fastest_encoding_of_its_size"].get<bool>());
}

TEST_F(CframeBench, OptionsLimitWhatIsMeasured) {
  const auto all = measured({path("in"), "--codec", "lz4", "--filter", "shuffle", "--clevel", "5", "--typesize", "4"});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0]["codec"], "lz4");
  EXPECT_EQ(all[0]["filters"], "shuffle");
  ASSERT_EQ(
      run_cframe({"pack", "--codec", "lz4", "--filter", "shuffle", "--typesize", "4", path("in"), path("x.b2frame")})
          .status,
      tools::done);
  // Of a frame the content is measured, with its typesize.
  const auto frame = measured({path("x.b2frame"), "--codec", "lz4", "--filter", "shuffle", "--clevel", "5"});
  ASSERT_EQ(frame.size(), 1U);
  EXPECT_EQ(frame[0]["stored"], all[0]["stored"]);
  const json info = json::parse(run_cframe({"info", "--json", path("x.b2frame")}).out);
  EXPECT_EQ(info["found"]["cbytes"].get<std::uint64_t>() + 8, all[0]["stored"].get<std::uint64_t>());
}

TEST_F(CframeBench, ATableNamesTheOptionsOfPack) {
  const Ran ran = run_cframe({"bench", "--seconds", "0", "--sample", "64K", "--chunksize", "64K", path("in")});
  EXPECT_EQ(ran.status, tools::done) << ran.err;
  EXPECT_NE(ran.out.find("--codec zstd --clevel 9 --filter bitshuffle"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("64 KiB in 1 chunks of 64 KiB"), std::string::npos) << ran.out;
}

TEST_F(CframeBench, RefusesWhatCannotBeMeasured) {
  dir_.write("empty", Bytes());
  EXPECT_EQ(run_cframe({"bench", path("empty")}).status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"bench", path("missing")}).status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"bench", "--sample", "2G", path("in")}).status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"bench", "--seconds", "-1", path("in")}).status, tools::kUsageError);
}

}  // namespace
}  // namespace cframefs::test
