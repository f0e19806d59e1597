// cframe verify: every good frame passes, damage is named with its place, and the exit status says whose fault it is.
#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/cframe/run_cframe.h"

namespace cframefs::test {
namespace {

using nlohmann::json;
namespace stdfs = std::filesystem;

std::string malformed(const std::string& name) {
  return (golden_dir() / "malformed" / name).string();
}

TEST(CframeVerify, PassesEveryGoldenFrame) {
  std::vector<std::string> arguments = {"verify", "--json"};
  std::set<std::string> files;
  for (const Row& row : read_manifest(golden_dir() / "cframe" / "MANIFEST.tsv")) {
    if (row["offset"] == "0") files.insert(row.file("path").string());
  }
  arguments.insert(arguments.end(), files.begin(), files.end());
  const Ran ran = run_cframe(arguments);
  EXPECT_EQ(ran.status, tools::done) << ran.err;
  const json report = json::parse(ran.out);
  EXPECT_EQ(report["checked"], files.size());
  EXPECT_EQ(report["ok"], files.size());
  for (const json& file : report["files"])
    EXPECT_EQ(file["verdict"], "ok") << file.dump();
  EXPECT_GE(files.size(), 390U);
}

TEST(CframeVerify, NamesTheDamagedChunkWithItsPlace) {
  const std::string file = malformed("truncate/zero-chunk-1.b2frame");
  const Ran ran = run_cframe({"verify", file});
  EXPECT_EQ(ran.status, tools::kDataError);
  EXPECT_NE(ran.err.find(file + ": chunk 1 at file offset "), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find(", 3 chunks, 444 bytes, not sealed\n"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find(": ok"), std::string::npos) << ran.out;

  const json report = json::parse(run_cframe({"verify", "--json", file}).out);
  ASSERT_EQ(report["files"][0]["errors"].size(), 1U);
  EXPECT_EQ(report["files"][0]["errors"][0]["chunk"], 1);
  EXPECT_GT(report["files"][0]["errors"][0]["file_offset"], 0);
  EXPECT_EQ(report["faulty"], 1);
}

// The chunks are all there, but who reads the metalayers does not get them.
TEST(CframeVerify, TellsOfDamagedMetalayers) {
  for (const char* name : {"meta/count_3.b2frame", "meta/offset_-1.b2frame", "vlmeta/count_8193.b2frame"}) {
    const std::string file = malformed(name);
    const Ran verified = run_cframe({"verify", file});
    EXPECT_EQ(verified.status, tools::kDataError) << file;
    EXPECT_NE(verified.err.find("metalayer"), std::string::npos) << verified.err;
    const Ran shown = run_cframe({"info", file});
    EXPECT_EQ(shown.status, tools::kDataError) << file;
    EXPECT_NE(shown.err.find("metalayer"), std::string::npos) << shown.err;
  }
}

TEST(CframeVerify, JudgesEveryMalformedFrameAsItsManifestAllows) {
  std::size_t faulty = 0;
  for (const Row& row : read_manifest(golden_dir() / "malformed" / "MANIFEST.tsv")) {
    SCOPED_TRACE(row["path"] + ": " + row["change"]);
    const Ran ran = run_cframe({"verify", "--quiet", row.file("path").string()});
    EXPECT_TRUE(ran.status == tools::done || ran.status == tools::kDataError) << ran.err;
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(ran.status == tools::done, ran.err.empty());
    if (row["policy"] == "same") {
      EXPECT_EQ(ran.status, tools::done) << ran.err;
    }
    if (row["policy"] == "open-error" || row["policy"] == "read-error") {
      EXPECT_EQ(ran.status, tools::kDataError);
    }
    faulty += ran.status == tools::kDataError;
  }
  EXPECT_GT(faulty, 100U);
}

TEST(CframeVerify, SearchesDirectories) {
  const TempDir directory;
  stdfs::create_directories(directory.path() / "deep" / "deeper");
  stdfs::copy(golden_cframe("large/lz4.b2frame"), directory.path() / "b.b2frame");
  stdfs::copy(golden_cframe("large/zstd.b2frame"), directory.path() / "deep" / "deeper" / "a.b2f");
  stdfs::copy(golden_cframe("sframe/lz4.b2frame"), directory.path() / "deep" / "sparse.b2frame",
              stdfs::copy_options::recursive);
  stdfs::copy(malformed("truncate/at-0300.b2frame"), directory.path() / "deep" / "bad.b2frame");
  stdfs::create_symlink(malformed("truncate/at-0301.b2frame"), directory.path() / "link.b2frame");
  directory.write("README", {});

  const Ran ran = run_cframe({"verify", "--json", directory.path().string()});
  EXPECT_EQ(ran.status, tools::kDataError);
  const json report = json::parse(ran.out);
  std::vector<std::string> names;
  for (const json& file : report["files"]) {
    names.push_back(stdfs::path(file["path"].get<std::string>()).lexically_relative(directory.path()).string() + " " +
                    file["verdict"].get<std::string>());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"b.b2frame ok", "deep/bad.b2frame damaged", "deep/sparse.b2frame ok",
                                             "deep/deeper/a.b2f ok"}));
}

TEST(CframeVerify, ASparseFrameWithoutItsIndexIsDamagedNotOverlooked) {
  const TempDir directory;
  const auto sparse = directory.path() / "x.b2frame";
  stdfs::copy(golden_cframe("sframe/lz4.b2frame"), sparse, stdfs::copy_options::recursive);
  stdfs::remove(sparse / "chunks.b2frame");
  EXPECT_NE(run_cframe({"verify", directory.path().string()}).status, tools::done);
}

TEST(CframeVerify, ReportsWhatTheSystemRefusesAndGoesOn) {
  const Ran ran = run_cframe({"verify", golden_cframe("no-such-frame"), golden_cframe("large/lz4.b2frame")});
  EXPECT_EQ(ran.status, tools::kUsageError);
  EXPECT_NE(ran.out.find("2 frames checked: 1 ok, 1 faulty"), std::string::npos) << ran.out;
}

TEST(CframeVerify, FindsDamageAnywhereInTheChunks) {
  // Flips in the chunk section are found, or harmless: never a crash, never a status other than 0 or 1.
  const auto good = file_bytes(golden_cframe("large/zstd.b2frame"));
  const TempDir directory;
  int found = 0;
  for (std::size_t at = 97; at < good.size() && at < 11000; at += 97) {
    auto bytes = good;
    bytes[at] ^= 0x40;
    const auto file = directory.write("flipped.b2frame", bytes);
    const Ran ran = run_cframe({"verify", file.string()});
    ASSERT_TRUE(ran.status == tools::done || ran.status == tools::kDataError) << at << ": " << ran.err;
    found += ran.status == tools::kDataError;
  }
  EXPECT_GT(found, 10);
}

TEST(CframeVerify, StopsWhenTold) {
  const std::atomic<bool> stop = true;
  tools::StringOutput out;
  tools::StringOutput err;
  tools::Io io{out, err, false, stop};
  EXPECT_EQ(tools::cframe_main({"verify", golden_dir().string()}, io), tools::interrupted);
  EXPECT_EQ(out.text, "");
}

}  // namespace
}  // namespace cframefs::test
