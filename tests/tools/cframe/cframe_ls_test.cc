// cframe ls: frames, directories and stores, as lines, JSON and a tree.
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/cframe/run_cframe.h"
#include "tools/lib/sizes.h"

namespace cframefs::test {
namespace {

using nlohmann::json;
using Bytes = std::vector<std::uint8_t>;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

class CframeLs : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(dir_.path() / "d" / "e");
    dir_.write("plain", Bytes(100'000, 'x'));
    dir_.write("d/text", Bytes(10, 'x'));
    EXPECT_EQ(run_cframe({"pack", "--codec", "lz4", path("plain"), path("d/a.b2frame")}).status, tools::done);
    EXPECT_EQ(run_cframe({"pack", path("plain"), path("d/e/b.b2frame")}).status, tools::done);
  }
  std::string path(const std::string& name) const { return (dir_.path() / name).string(); }
  static std::vector<json> listed(std::vector<std::string> arguments, int status = tools::done) {
    arguments.insert(arguments.begin(), {"ls", "--json"});
    const Ran ran = run_cframe(arguments);
    EXPECT_EQ(ran.status, status) << ran.err;
    std::vector<json> all;
    for (const std::string& line : lines_of(ran.out))
      all.push_back(json::parse(line));
    return all;
  }

  TempDir dir_;
};

TEST_F(CframeLs, AFrame) {
  const auto all = listed({path("d/a.b2frame")});
  ASSERT_EQ(all.size(), 1U);
  const auto stored = std::filesystem::file_size(path("d/a.b2frame"));
  EXPECT_EQ(all[0]["path"], path("d/a.b2frame"));
  EXPECT_EQ(all[0]["plain"], 100'000);
  EXPECT_EQ(all[0]["stored"], stored);
  EXPECT_NEAR(all[0]["ratio"].get<double>(), 100'000.0 / static_cast<double>(stored), 0.001);
  EXPECT_EQ(all[0]["codec"], "lz4");
  EXPECT_FALSE(all[0].contains("shape"));
  const auto lines = lines_of(run_cframe({"ls", path("d/a.b2frame")}).out);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NE(lines[1].find("97.7 KiB"), std::string::npos) << lines[1];
  EXPECT_NE(lines[1].find("lz4 5"), std::string::npos) << lines[1];
  EXPECT_TRUE(lines[1].ends_with(path("d/a.b2frame"))) << lines[1];
}

TEST_F(CframeLs, ADirectoryIsListedAndItsDirectoriesAreNamed) {
  const auto all = listed({path("d")});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["path"], path("d/a.b2frame"));
  EXPECT_EQ(all[1], (json{{"path", path("d/e")}, {"type", "directory"}}));
  const auto deep = listed({"-r", path("d/")});
  ASSERT_EQ(deep.size(), 2U);
  EXPECT_EQ(deep[1]["path"], path("d/e/b.b2frame"));
  // The sums are those of the frames.
  const auto lines = lines_of(run_cframe({"ls", "-r", path("d")}).out);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_NE(lines[3].find("195.3 KiB"), std::string::npos) << lines[3];
  const std::uint64_t stored = deep[0]["stored"].get<std::uint64_t>() + deep[1]["stored"].get<std::uint64_t>();
  EXPECT_NE(lines[3].find(" " + tools::human_size(stored) + " "), std::string::npos) << lines[3];
  EXPECT_TRUE(lines[3].ends_with("2 frames")) << lines[3];
}

// It told of a full disk once for each file, and went through a whole tree after the program behind a pipe had ended.
TEST_F(CframeLs, NothingIsListedOnceTheOutputIsLost) {
  for (const int error : {ENOSPC, EPIPE}) {
    const std::atomic<bool> stop = false;
    BrokenOutput lost(error);
    tools::StringOutput err;
    tools::Io io{lost, err, false, stop};
    const int status = tools::cframe_main({"ls", "--json", "-r", path("d"), path("d"), path("none")}, io);
    EXPECT_EQ(status, error == EPIPE ? tools::done : tools::kSystemError);
    EXPECT_EQ(lost.writes, 1);
    EXPECT_EQ(lines_of(err.text).size(), error == EPIPE ? 0U : 1U) << err.text;
  }
}

TEST_F(CframeLs, ATree) {
  dir_.write("d/f.b2frame", Bytes());
  const auto lines = lines_of(run_cframe({"ls", "--tree", path("d")}).out);
  ASSERT_EQ(lines.size(), 7U);
  EXPECT_TRUE(lines[1].ends_with(path("d") + "/")) << lines[1];
  EXPECT_TRUE(lines[2].ends_with("├── a.b2frame")) << lines[2];
  EXPECT_TRUE(lines[3].ends_with("├── e/")) << lines[3];
  EXPECT_TRUE(lines[4].ends_with("│   └── b.b2frame")) << lines[4];
  EXPECT_TRUE(lines[5].ends_with("└── f.b2frame")) << lines[5];
}

TEST_F(CframeLs, ArraysHaveShapes) {
  const auto all = listed({(golden_dir() / "legacy" / "b2nd-2d-ndlz4.b2nd").string()});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0]["shape"], (json{60, 60}));
  EXPECT_EQ(all[0]["dtype"], "|u1");
  const Ran ran = run_cframe({"ls", (golden_dir() / "legacy" / "b2nd-2d-ndlz4.b2nd").string()});
  EXPECT_NE(ran.out.find("|u1 60x60"), std::string::npos) << ran.out;
}

TEST_F(CframeLs, WhatIsNoFrameIsAnError) {
  dir_.write("d/bad.b2frame", Bytes(50, 'x'));
  const auto all = listed({path("d")}, tools::kDataError);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_TRUE(all[1].contains("error"));
  EXPECT_EQ(all[1]["stored"], 50);
  EXPECT_EQ(all[2]["type"], "directory");
  EXPECT_EQ(listed({path("plain")}, tools::kDataError).size(), 1U);
  EXPECT_EQ(listed({path("missing")}, tools::kUsageError).size(), 1U);
}

TEST_F(CframeLs, EveryGoldenFrameOfTheManifest) {
  std::size_t compared = 0;
  for (const auto& row : read_manifest(golden_dir() / "cframe" / "MANIFEST.tsv")) {
    if (row.number("offset") != 0) continue;
    const auto all = listed({row.file("path").string()});
    ASSERT_EQ(all.size(), 1U) << row["path"];
    EXPECT_EQ(all[0]["plain"], row.number("nbytes")) << row["path"];
    EXPECT_EQ(all[0]["codec"], row["codec"]) << row["path"];
    if (++compared == 50) break;
  }
  EXPECT_EQ(compared, 50U);
}

}  // namespace
}  // namespace cframefs::test
