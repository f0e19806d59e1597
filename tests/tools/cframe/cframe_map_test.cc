// cframe map, and what `cframe info` says of the gain of compact: against frames made by hand, whose every byte is
// known.
#include <algorithm>
#include <filesystem>
#include <numeric>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "frame/cframe/frame_layout.h"
#include "tests/support/frame_builder.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/cframe/run_cframe.h"
#include "tools/stream/frame_map.h"

namespace cframefs::test {
namespace {

using nlohmann::json;
using tools::ChunkKind;
using tools::SpaceKind;

constexpr std::int32_t kMapChunk = 1000;
constexpr std::size_t kMapStored = kMapChunk + 32;

class CframeMap : public ::testing::Test {
 protected:
  std::string write(const Bytes& bytes) { return temp_.write("x.b2frame", bytes).string(); }

  /// A frame of 10 chunks: 4 stored with 500 dead bytes before the third, one that names the bytes of the second again
  /// (`shares`) or is zeros, zeros, NaN and one uninitialised.
  static FrameBuilder mixed(bool shares = false) {
    FrameBuilder builder;
    builder.chunksize = kMapChunk;
    builder.nbytes = 10 * kMapChunk;
    std::vector<std::int64_t> entries;
    for (int i = 0; i < 4; ++i) {
      if (i == 2) builder.chunk_section.resize(builder.chunk_section.size() + 500, 0xaa);
      entries.push_back(static_cast<std::int64_t>(builder.chunk_section.size()));
      const Bytes chunk = plain_chunk(Bytes(kMapChunk, static_cast<std::uint8_t>(i)));
      builder.chunk_section.insert(builder.chunk_section.end(), chunk.begin(), chunk.end());
    }
    entries.push_back(shares ? entries[1] : frame::layout::kZerosEntry);
    entries.insert(entries.end(), 3, frame::layout::kZerosEntry);
    entries.push_back(frame::layout::kNanEntry);
    entries.push_back(frame::layout::kUninitialisedEntry);
    builder.index = plain_index(entries);
    return builder;
  }

  static tools::FrameMap map_of(const std::string& path, tools::MapRequest request) {
    const auto container = tools::open_frame(tools::InputFile(path), 0);
    EXPECT_TRUE(container);
    const std::atomic<bool> stop = false;
    tools::StringOutput out;
    tools::StringOutput err;
    tools::Io io{out, err, false, stop};
    tools::Progress progress(io, "", tools::Progress::Unit::items);
    request.file_bytes = std::filesystem::is_directory(path) ? request.file_bytes : std::filesystem::file_size(path);
    const auto map = tools::map_frame(**container, request, stop, progress);
    EXPECT_TRUE(map);
    return *map;
  }

  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
      lines.push_back(line);
    return lines;
  }

  TempDir temp_;
};

TEST_F(CframeMap, AccountsForEveryByteAndChunk) {
  const FrameBuilder builder = mixed(true);
  Bytes bytes = builder.build();
  const std::size_t length = bytes.size();
  bytes.resize(length + 77, 0x11);  // what an unfinished commit left
  const std::string path = write(bytes);
  for (const std::size_t cells : {1U, 7U, 100U, 100'000U}) {
    const auto map = map_of(path, {cells, cells, 0, {}});
    EXPECT_EQ(map.length, bytes.size());
    EXPECT_EQ(map.bytes_of(SpaceKind::header), builder.header_length());
    EXPECT_EQ(map.bytes_of(SpaceKind::live), 4 * kMapStored);
    EXPECT_EQ(map.bytes_of(SpaceKind::dead), 500U + 77U);
    EXPECT_EQ(std::accumulate(map.bytes.begin(), map.bytes.end(), std::uint64_t{0}), bytes.size());
    EXPECT_EQ(map.count_of(ChunkKind::stored), 5);
    EXPECT_EQ(map.count_of(ChunkKind::zeros), 3);
    EXPECT_EQ(map.count_of(ChunkKind::nan), 1);
    EXPECT_EQ(map.count_of(ChunkKind::uninitialised), 1);
    EXPECT_EQ(map.order.size(), std::min<std::size_t>(cells, 10));
    std::int64_t chunks = 0;
    for (const auto& cell : map.order)
      chunks += std::accumulate(cell.counts.begin(), cell.counts.end(), std::int64_t{0});
    EXPECT_EQ(chunks, 10);
    ASSERT_EQ(map.codecs.size(), 1U);
    EXPECT_EQ(map.codecs[0].name, "uncompressed");
    EXPECT_EQ(map.codecs[0].chunks, 5);
  }
}

TEST_F(CframeMap, PrintsLettersIntoAPipe) {
  const std::string path = write(mixed().build());
  const Ran ran = run_cframe({"map", path});
  EXPECT_EQ(ran.status, tools::done) << ran.err;
  EXPECT_EQ(ran.out.find('\x1b'), std::string::npos);
  const auto lines = lines_of(ran.out);
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const auto& line) { return line == "eeeezzzznu"; }))
      << ran.out;
  EXPECT_NE(ran.out.find("500 bytes, "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("compact would gain 500 bytes ("), std::string::npos) << ran.out;
  for (const auto& line : lines)
    EXPECT_LE(line.size(), 120U);
}

TEST_F(CframeMap, ShowsDamageWhateverElseACellHolds) {
  const FrameBuilder builder = mixed(true);
  Bytes bytes = builder.build();
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(builder.header_length() + kMapStored), 32, 0xff);
  const std::string path = write(bytes);
  const auto map = map_of(path, {1000, 10, 0, {}});
  EXPECT_EQ(map.count_of(ChunkKind::damaged), 2);  // two entries name it
  EXPECT_EQ(map.count_of(ChunkKind::stored), 3);
  // Its length is not known: it takes what is there until the next chunk.
  EXPECT_EQ(map.bytes_of(SpaceKind::damaged), kMapStored + 500);
  const Ran ran = run_cframe({"map", path});
  EXPECT_EQ(ran.status, tools::kDataError);
  EXPECT_NE(ran.out.find("\ne!ee!zzznu\n"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("compact would"), std::string::npos);
  EXPECT_NE(ran.err.find("chunk 1"), std::string::npos);
}

TEST_F(CframeMap, FindsDamageInsideOfChunksWithVerifyOnly) {
  auto bytes = file_bytes(golden_cframe("large/zstd.b2frame"));
  const auto header = static_cast<std::size_t>(bytes[11]) << 24U | static_cast<std::size_t>(bytes[12]) << 16U |
                      static_cast<std::size_t>(bytes[13]) << 8U | bytes[14];
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(header) + 300, 2000, 0xff);
  const std::string path = write(bytes);
  const Ran quick = run_cframe({"map", path});
  EXPECT_EQ(quick.status, tools::done) << quick.err;
  const Ran ran = run_cframe({"map", "--verify", path});
  EXPECT_EQ(ran.status, tools::kDataError);
  const auto has_damage = [](const std::string& text) { return text.find("chunks: damaged") != std::string::npos; };
  EXPECT_FALSE(has_damage(quick.out));
  EXPECT_TRUE(has_damage(ran.out)) << ran.out;
}

TEST_F(CframeMap, DrawsEveryGoldenFrame) {
  std::size_t drawn = 0;
  for (const Row& row : read_manifest(golden_dir() / "cframe" / "MANIFEST.tsv")) {
    const Ran ran = run_cframe({"map", "--frame-offset", row["offset"], row.file("path").string()});
    EXPECT_EQ(ran.status, tools::done) << row["path"] << ran.err;
    EXPECT_EQ(ran.out.find("damaged"), std::string::npos) << row["path"];
    ++drawn;
  }
  EXPECT_GE(drawn, 390U);
}

TEST_F(CframeMap, SurvivesEveryMalformedFrame) {
  for (const Row& row : read_manifest(golden_dir() / "malformed" / "MANIFEST.tsv")) {
    const Ran ran = run_cframe({"map", row.file("path").string()});
    EXPECT_TRUE(ran.status == tools::done || ran.status == tools::kDataError) << row["path"] << ": " << ran.err;
  }
}

TEST_F(CframeMap, CountsRunsOfTheIndexAndNotItsEntries) {
  // As many chunks as an index holds, in two runs whose entries take turns.
  constexpr std::int64_t kCount = (INT32_MAX - 32) / 8 / 2 * 2;
  FrameBuilder builder;
  builder.chunksize = 1;
  builder.nbytes = kCount;
  builder.chunk_section = plain_chunk(Bytes(1, 7));
  Bytes value(16);
  codec::store_le(value.data(), std::int64_t{0});
  codec::store_le(&value[8], frame::layout::kZerosEntry);
  builder.index = repeated_chunk(value, static_cast<std::int32_t>(8 * kCount));
  const auto map = map_of(write(builder.build()), {640, 640, 0, {}});
  EXPECT_EQ(map.count_of(ChunkKind::stored), kCount / 2);
  EXPECT_EQ(map.count_of(ChunkKind::zeros), kCount / 2);
  EXPECT_EQ(map.bytes_of(SpaceKind::live), 33U);
}

TEST_F(CframeMap, RefusesAPictureOfAnotherKind) {
  const std::string path = write(mixed().build());
  const Ran ran = run_cframe({"map", "-o", (temp_.path() / "x.gif").string(), path});
  EXPECT_EQ(ran.status, tools::kUsageError);
  EXPECT_NE(ran.err.find(".svg or .png"), std::string::npos);
}

TEST_F(CframeMap, WritesTheSamePictureToStandardOutput) {
  const std::string path = write(mixed().build());
  const std::string picture = (temp_.path() / "x.svg").string();
  ASSERT_EQ(run_cframe({"map", "-o", picture, path}).status, tools::done);
  const Ran ran = run_cframe({"map", "-o", "-", path});
  EXPECT_EQ(ran.status, tools::done) << ran.err;
  const Bytes drawn = file_bytes(picture);
  EXPECT_EQ(ran.out, std::string(drawn.begin(), drawn.end()));
}

TEST_F(CframeMap, PrintsJson) {
  const FrameBuilder builder = mixed();
  const std::string path = write(builder.build());
  const Ran ran = run_cframe({"map", "--json", path});
  EXPECT_EQ(ran.status, tools::done) << ran.err;
  EXPECT_EQ(lines_of(ran.out).size(), 1U);
  const json map = json::parse(ran.out);
  const auto length = static_cast<std::uint64_t>(builder.build().size());
  EXPECT_EQ(map["path"], path);
  EXPECT_EQ(map["plain"], 10 * kMapChunk);
  EXPECT_EQ(map["stored"], length);
  EXPECT_EQ(map["compact_gain"], 500);
  EXPECT_EQ(map["estimated"], false);
  EXPECT_EQ(map["damage"], nullptr);
  EXPECT_EQ(map["bytes"], (json{{"header", builder.header_length()},
                                {"chunks", 4 * kMapStored},
                                {"dead", 500},
                                {"index", length - builder.header_length() - 4 * kMapStored - 500},
                                {"damaged", 0}}));
  EXPECT_EQ(map["chunks"],
            (json{{"stored", 4}, {"zeros", 4}, {"nan", 1}, {"uninitialised", 1}, {"repeated", 0}, {"damaged", 0}}));
  EXPECT_EQ(map["codecs"],
            json::array(
                {json{{"name", "uncompressed"}, {"chunks", 4}, {"plain", 4 * kMapChunk}, {"stored", 4 * kMapStored}}}));
  EXPECT_EQ(map["order"], "eeeezzzznu");
  EXPECT_EQ(map["space"].get<std::string>().find_first_not_of("eh.i"), std::string::npos) << map["space"];
}

TEST_F(CframeMap, PrintsDamageAsJson) {
  const FrameBuilder builder = mixed();
  Bytes bytes = builder.build();
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(builder.header_length() + kMapStored), 32, 0xff);
  const Ran ran = run_cframe({"map", "--json", write(bytes)});
  EXPECT_EQ(ran.status, tools::kDataError);
  const json map = json::parse(ran.out);
  EXPECT_EQ(map["order"], "e!eezzzznu");
  EXPECT_EQ(map["chunks"]["damaged"], 1);
  EXPECT_EQ(map["compact_gain"], nullptr);
  EXPECT_NE(map["damage"].get<std::string>().find("chunk 1"), std::string::npos) << ran.out;
  EXPECT_EQ(run_cframe({"map", "--json", "-o", "x.svg", "x.b2frame"}).status, tools::kUsageError);
}

json properties_of(const std::string& path) {
  const Ran ran = run_cframe({"info", "--json", path});
  EXPECT_EQ(ran.status, tools::done) << ran.err;
  return json::parse(ran.out);
}

TEST_F(CframeMap, InfoSaysWhatCompactGains) {
  Bytes bytes = mixed().build();
  bytes.resize(bytes.size() + 77, 0x11);
  const std::string path = write(bytes);
  const json before = properties_of(path);
  EXPECT_EQ(before["compact_gain"], 577);
  EXPECT_EQ(before["compact_gain_is_estimate"], false);
  const Ran ran = run_cframe({"info", path});
  EXPECT_NE(ran.out.find("compact       would gain 577 bytes ("), std::string::npos) << ran.out;
  const Ran compacted = run_cframe({"compact", "--checksums=keep", path});
  ASSERT_EQ(compacted.status, tools::done) << compacted.err;
  const json after = properties_of(path);
  EXPECT_EQ(after["compact_gain"], 0);
  // The new index compresses as the codec of the frame does.
  const auto gained = static_cast<std::int64_t>(bytes.size()) - after["file_bytes"].get<std::int64_t>();
  EXPECT_GE(gained, 577);
  EXPECT_LE(gained, 577 + 100);
}

TEST_F(CframeMap, InfoKnowsNoGainWhereCompactIsRefused) {
  const std::string shared = write(mixed(true).build());
  EXPECT_TRUE(properties_of(shared)["compact_gain"].is_null());
  EXPECT_EQ(run_cframe({"compact", shared}).status, tools::kDataError);
  Bytes bytes = mixed().build();
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(mixed().header_length() + kMapStored), 32, 0xff);
  const Ran ran = run_cframe({"info", "--json", write(bytes)});
  EXPECT_EQ(ran.status, tools::kDataError);
  EXPECT_TRUE(json::parse(ran.out)["compact_gain"].is_null());
}

}  // namespace
}  // namespace cframefs::test
