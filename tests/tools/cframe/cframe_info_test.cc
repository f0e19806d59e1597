// cframe info against the manifest of the golden frames.
#include <algorithm>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "frame/cframe/frame_layout.h"
#include "tests/support/frame_builder.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/cframe/run_cframe.h"

namespace cframefs::test {
namespace {

using nlohmann::json;

json info_of(const std::string& path, const std::string& offset = "0") {
  const Ran ran = run_cframe({"info", "--json", "--all", "--frame-offset", offset, path});
  EXPECT_EQ(ran.status, tools::done) << ran.err;
  return json::parse(ran.out);
}

/// The count that the manifest gives for a kind of chunk, where it saw all chunks.
std::int64_t manifest_count(const Row& row, const std::string& kind) {
  for (const std::string& feature : split(row["features"], ',')) {
    if (feature.starts_with("has:" + kind + "=")) return std::stoll(feature.substr(kind.size() + 5));
  }
  return 0;
}

TEST(CframeInfo, SaysOfEveryGoldenFrameWhatTheManifestSays) {
  std::size_t compared = 0;
  for (const Row& row : read_manifest(golden_dir() / "cframe" / "MANIFEST.tsv")) {
    SCOPED_TRACE(row["path"] + " at " + row["offset"]);
    const json info = info_of(row.file("path").string(), row["offset"]);
    EXPECT_EQ(info["codec"], row["codec"]);
    EXPECT_EQ(info["clevel"], row.number("clevel"));
    EXPECT_EQ(info["typesize"], row.number("typesize"));
    EXPECT_EQ(info["blocksize"], row.number("blocksize"));
    EXPECT_EQ(info["chunksize"], row.number("chunksize"));
    EXPECT_EQ(info["chunks"], row.number("nchunks"));
    EXPECT_EQ(info["nbytes"], row.number("nbytes"));
    EXPECT_EQ(info["special_chunks"]["zeros"].get<std::int64_t>() + info["special_chunks"]["nan"].get<std::int64_t>() +
                  info["special_chunks"]["uninitialised"].get<std::int64_t>() +
                  info["stored_chunks"].get<std::int64_t>(),
              row.number("nchunks"));
    EXPECT_EQ(info["found"]["damaged"], 0);
    EXPECT_TRUE(info["found"]["complete"].get<bool>());
    ++compared;
  }
  EXPECT_GE(compared, 390U);
}

TEST(CframeInfo, CountsTheKindsOfChunksThatTheManifestCounts) {
  std::int64_t plain = 0;
  std::int64_t dictionaries = 0;
  for (const Row& row : read_manifest(golden_dir() / "cframe" / "MANIFEST.tsv")) {
    if (row.number("nchunks") > 300) continue;  // the manifest looked at the first 300
    SCOPED_TRACE(row["path"] + " at " + row["offset"]);
    const json found = info_of(row.file("path").string(), row["offset"])["found"];
    EXPECT_EQ(found["memcpyed"], manifest_count(row, "memcpyed-chunk"));
    plain += found["memcpyed"].get<std::int64_t>();
    dictionaries += found["dictionary"].get<std::int64_t>();
  }
  EXPECT_GT(plain, 0);
  EXPECT_GT(dictionaries, 0);
}

TEST(CframeInfo, NamesEveryMetalayer) {
  std::size_t layers = 0;
  for (const Row& row : read_manifest(golden_dir() / "cframe" / "MANIFEST.tsv")) {
    for (const auto& [column, key] : {std::pair("meta", "metalayers"), std::pair("vlmeta", "vlmetalayers")}) {
      if (row[column] == "-") continue;
      SCOPED_TRACE(row["path"]);
      const json shown = info_of(row.file("path").string(), row["offset"])[key];
      const auto wanted = split(row[column], ';');  // name:length:sha256
      ASSERT_EQ(shown.size(), wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const auto parts = split(wanted[i], ':');
        EXPECT_EQ(shown[i]["bytes"], std::stoull(parts[1])) << wanted[i];
        if (parts[0].find('%') == std::string::npos) {
          EXPECT_EQ(shown[i]["name"], parts[0]);
        }
        ++layers;
      }
    }
  }
  EXPECT_GE(layers, 50U);
}

TEST(CframeInfo, DecodesMsgpackAndText) {
  const json layers = info_of(golden_cframe("meta/vl-several.b2frame"))["vlmetalayers"];
  const auto layer = [&](const std::string& name) {
    return *std::find_if(layers.begin(), layers.end(), [&](const json& entry) { return entry["name"] == name; });
  };
  EXPECT_EQ(layer("json")["encoding"], "text");
  EXPECT_EQ(layer("msgpack")["encoding"], "msgpack");
  EXPECT_EQ(layer("msgpack")["value"]["d"], "hello");
  EXPECT_EQ(layer("random")["encoding"], "hex");
  EXPECT_EQ(layer("random")["value"].get<std::string>().size(), 2 * layer("random")["bytes"].get<std::size_t>());
}

TEST(CframeInfo, CountsTheIndexExactlyAndSaysWhereItSampled) {
  const Ran ran = run_cframe({"info", "--json", golden_cframe("huge/index-250k-chunks.b2frame")});
  ASSERT_EQ(ran.status, tools::done);
  const json info = json::parse(ran.out);
  EXPECT_EQ(info["special_chunks"]["zeros"].get<std::int64_t>() + info["stored_chunks"].get<std::int64_t>(), 250001);
}

/// A frame of as many chunks of one byte as an index holds, whose entries are these again and again.
std::string endless_frame(const TempDir& temp, const std::vector<std::int64_t>& entries) {
  const std::int64_t count =
      (INT32_MAX - 32) / 8 / static_cast<std::int64_t>(entries.size()) * static_cast<std::int64_t>(entries.size());
  FrameBuilder builder;
  builder.chunksize = 1;
  builder.nbytes = count;
  builder.chunk_section = plain_chunk(Bytes(1, 7));
  Bytes value(8 * entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i)
    codec::store_le(&value[8 * i], entries[i]);
  builder.index = repeated_chunk(value, static_cast<std::int32_t>(8 * count));
  temp.write("endless.b2frame", builder.build());
  return (temp.path() / "endless.b2frame").string();
}

TEST(CframeInfo, CountsRunsOfTheIndexAndNotItsEntries) {
  const TempDir temp;
  const json zeros = info_of(endless_frame(temp, {frame::layout::kZerosEntry}));
  EXPECT_EQ(zeros["special_chunks"]["zeros"], (INT32_MAX - 32) / 8);
  const std::string path = endless_frame(temp, {0, frame::layout::kUninitialisedEntry, -5});
  constexpr std::int64_t kThird = (INT32_MAX - 32) / 8 / 3;
  const Ran ran = run_cframe({"info", "--json", path});
  EXPECT_EQ(ran.status, tools::kDataError);
  const json mixed = json::parse(ran.out);
  EXPECT_EQ(mixed["stored_chunks"], kThird);
  EXPECT_EQ(mixed["special_chunks"]["uninitialised"], kThird);
  EXPECT_EQ(mixed["found"]["damaged"], kThird);
  EXPECT_EQ(mixed["found"]["memcpyed"], kThird);
  EXPECT_EQ(mixed["found"]["complete"], true);

  const Ran checked = run_cframe({"verify", "--json", path});
  EXPECT_EQ(checked.status, tools::kDataError);
  const json verdict = json::parse(checked.out)["files"][0];
  EXPECT_EQ(verdict["errors"].size(), 10000U);
  EXPECT_EQ(verdict["errors"][1]["chunk"], 5);
  EXPECT_EQ(verdict["further_errors"], kThird - 10000);
}

TEST(CframeInfo, PrintsTextForPeople) {
  const Ran ran = run_cframe({"info", golden_cframe("large/zstd.b2frame"), golden_cframe("sframe/lz4.b2frame")});
  EXPECT_EQ(ran.status, tools::done);
  EXPECT_EQ(ran.err, "");
  for (const char* text : {"large/zstd.b2frame\n", "cframe, version 2", "sframe, version 2", "zstd, level 5",
                           "2.1 MiB (2200000 bytes)", "4 of 683.6 KiB (700000 bytes)", "shuffle"}) {
    EXPECT_NE(ran.out.find(text), std::string::npos) << text << "\n" << ran.out;
  }
}

TEST(CframeInfo, GivesALineForEachFileAndGoesOnAfterABadOne) {
  const Ran ran = run_cframe({"info", "--json", golden_cframe("large/zstd.b2frame"), golden_cframe("MANIFEST.tsv"),
                              golden_cframe("large/lz4.b2frame")});
  EXPECT_EQ(ran.status, tools::kDataError);
  std::vector<json> list;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);)
    list.push_back(json::parse(line));
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0]["codec"], "zstd");
  EXPECT_TRUE(list[1].contains("error"));
  EXPECT_EQ(list[2]["codec"], "lz4");
}

TEST(CframeInfo, ShowsDamageAndWhatIsLeft) {
  const Ran ran =
      run_cframe({"info", "--json", (golden_dir() / "malformed" / "truncate" / "zero-chunk-1.b2frame").string()});
  EXPECT_EQ(ran.status, tools::kDataError);
  const json info = json::parse(ran.out);
  EXPECT_EQ(info["chunks"], 3);
  EXPECT_EQ(info["found"]["damaged"], 1);
  EXPECT_NE(info["error"].get<std::string>().find("chunk 1"), std::string::npos);
}

TEST(CframeInfo, ReadsAFrameInsideAFile) {
  const TempDir directory;
  auto bytes = file_bytes(golden_cframe("large/lz4.b2frame"));
  bytes.insert(bytes.begin(), 5000, 0x55);
  const auto file = directory.write("archive", bytes);
  EXPECT_EQ(info_of(file.string(), "5000")["nbytes"], info_of(golden_cframe("large/lz4.b2frame"))["nbytes"]);
  EXPECT_EQ(run_cframe({"info", file.string()}).status, tools::kDataError);
}

TEST(CframeInfo, SurvivesEveryMalformedFrame) {
  for (const Row& row : read_manifest(golden_dir() / "malformed" / "MANIFEST.tsv")) {
    const Ran ran = run_cframe({"info", "--json", row.file("path").string()});
    EXPECT_TRUE(ran.status == tools::done || ran.status == tools::kDataError) << row["path"] << ": " << ran.err;
    EXPECT_TRUE(json::accept(ran.out)) << row["path"];
    if (row["policy"] == "same") {
      EXPECT_EQ(ran.status, tools::done) << row["path"] << ": " << ran.err;
    }
    if (row["policy"] == "open-error") {
      EXPECT_EQ(ran.status, tools::kDataError) << row["path"];
    }
  }
}

}  // namespace
}  // namespace cframefs::test
