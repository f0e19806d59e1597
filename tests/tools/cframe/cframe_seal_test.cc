// cframe seal, and what pack, convert, compact, verify and info do with digests.
#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/frame_builder.h"
#include "tests/support/frame_model.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/cframe/run_cframe.h"

namespace cframefs::test {
namespace {

using nlohmann::json;

constexpr std::int32_t kChunkToSeal = 5000;

class CframeSeal : public ::testing::Test {
 protected:
  CframeSeal() { temp_.write("x.b2frame", plain_frame(plain_, kChunkToSeal).build()); }

  std::string path(const std::string& name = "x.b2frame") const { return (temp_.path() / name).string(); }

  static Ran run(const std::vector<std::string>& arguments, int status = tools::done) {
    Ran ran = run_cframe(arguments);
    EXPECT_EQ(ran.status, status) << arguments.front() << ": " << ran.err;
    return ran;
  }
  static bool is_sealed(const std::string& frame) {
    const std::string said = run({"verify", frame}).out;
    const bool sealed = said.ends_with(", sealed\n");
    EXPECT_TRUE(sealed || said.ends_with(", not sealed\n")) << said;
    EXPECT_EQ(json::parse(run({"info", "--json", frame}).out)["sealed"], sealed);
    return sealed;
  }
  /// Changes a byte of chunk `chunk` of a frame as plain_frame() makes it.
  void damage(const std::string& name, std::size_t chunk) const {
    Bytes bytes = file_bytes(path(name));
    bytes[97 + chunk * (kChunkToSeal + 32) + 1000] ^= 1;
    temp_.write(name, bytes);
  }

  const Bytes plain_ = pattern(3 * kChunkToSeal + 123, 3);
  TempDir temp_;
};

TEST_F(CframeSeal, AddsDigestsToAFrameAndNothingElse) {
  EXPECT_FALSE(is_sealed(path()));
  EXPECT_EQ(run({"seal", path()}).out, path() + ": sealed\n");
  EXPECT_TRUE(is_sealed(path()));
  EXPECT_EQ(run({"cat", path()}).out, std::string(plain_.begin(), plain_.end()));
  EXPECT_NE(run({"info", path()}).out.find("  sealed        yes\n"), std::string::npos);
  EXPECT_EQ(run({"seal", "--quiet", path()}).out, "");
  EXPECT_EQ(json::parse(run({"seal", "--json", path()}).out), (json{{"path", path()}, {"sealed", true}}));
  run({"set-meta", path(), "note", "hello"});
  EXPECT_TRUE(is_sealed(path()));
}

TEST_F(CframeSeal, DamageThatDecodesIsFoundOnceAFrameIsSealed) {
  temp_.write("open.b2frame", file_bytes(path()));
  damage("open.b2frame", 1);
  EXPECT_FALSE(is_sealed(path("open.b2frame"))) << "no reader can see it";
  run({"seal", path()});
  damage("x.b2frame", 1);
  const Ran ran = run({"verify", path()}, tools::kDataError);
  EXPECT_NE(ran.err.find(": chunk 1 at file offset "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find(" has digest "), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find(": damaged, 4 chunks, 14.8 KiB, sealed\n"), std::string::npos) << ran.out;
  run({"cat", path()}, tools::kDataError);
  run({"compact", path()}, tools::kDataError);
  // It would be sealed as it is.
  const Ran again = run({"seal", path()}, tools::kDataError);
  EXPECT_EQ(again.out, "");
  EXPECT_NE(again.err.find(" has digest "), std::string::npos) << again.err;
}

TEST_F(CframeSeal, DoesNotDecodeWhatItIsToldToTrust) {
  Bytes numbers(100'000);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<std::uint8_t>(i * i / 1000);
  temp_.write("numbers", numbers);
  run({"pack", "--checksums=off", "--codec=zstd", "--filter=none", "--chunksize=100000", path("numbers"),
       path("y.b2frame")});
  Bytes bytes = file_bytes(path("y.b2frame"));
  // In the only stream of the first block: the magic of zstd, behind header, block starts and length.
  const Bytes magic = {0x28, 0xb5, 0x2f, 0xfd};
  const auto at = std::search(bytes.begin(), bytes.end(), magic.begin(), magic.end());
  ASSERT_NE(at, bytes.end());
  *at ^= 1;
  temp_.write("y.b2frame", bytes);
  run({"seal", path("y.b2frame")}, tools::kDataError);
  EXPECT_EQ(run({"seal", "--trust", path("y.b2frame")}).out, path("y.b2frame") + ": sealed\n");
}

TEST_F(CframeSeal, OptionsDecideWhatPackConvertAndCompactDo) {
  temp_.write("plain", plain_);
  const auto sealed_by = [&](const std::string& subcommand, const std::string& from, const std::string& option) {
    std::vector<std::string> words = {subcommand, "--force", path(from), path("out.b2frame")};
    if (!option.empty()) words.insert(words.begin() + 1, "--checksums=" + option);
    run(words);
    return is_sealed(path("out.b2frame"));
  };
  EXPECT_TRUE(sealed_by("pack", "plain", ""));
  EXPECT_TRUE(sealed_by("pack", "plain", "on"));
  EXPECT_FALSE(sealed_by("pack", "plain", "off"));
  EXPECT_TRUE(sealed_by("convert", "x.b2frame", ""));
  EXPECT_FALSE(sealed_by("convert", "x.b2frame", "keep"));
  run({"seal", path()});
  EXPECT_TRUE(sealed_by("convert", "x.b2frame", "keep"));
  EXPECT_FALSE(sealed_by("convert", "x.b2frame", "off"));
  for (const auto& [option, sealed] :
       {std::pair("keep", true), std::pair("off", false), std::pair("keep", false), std::pair("on", true)}) {
    run({"compact", std::string("--checksums=") + option, path()});
    EXPECT_EQ(is_sealed(path()), sealed) << option;
  }
}

TEST_F(CframeSeal, ADamagedPageOfDigestsIsReported) {
  run({"seal", path()});
  const auto opened = open_frame(path());
  ASSERT_TRUE(opened);
  const auto pages = (*opened)->as_frame()->seal()->pages();
  ASSERT_TRUE(pages && *pages && (*pages)->size() == 1);
  Bytes bytes = file_bytes(path());
  bytes[(*pages)->front().part.place + 20] ^= 1;
  temp_.write("x.b2frame", bytes);
  const Ran ran = run({"verify", path()}, tools::kDataError);
  EXPECT_NE(ran.err.find("chunk 0: the digests from this chunk on are damaged"), std::string::npos) << ran.err;
  EXPECT_EQ(run({"cat", path()}).out, std::string(plain_.begin(), plain_.end()));
}

}  // namespace
}  // namespace cframefs::test
