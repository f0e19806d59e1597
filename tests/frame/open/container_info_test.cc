// The JSON description of containers.
#include "frame/open/container_info.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/frame_builder.h"
#include "tests/support/golden.h"
#include "tests/support/reading.h"

namespace cframefs {
namespace {

using test::Bytes;
using test::FrameBuilder;

TEST(Report, SummaryHasTheDocumentedKeys) {
  FrameBuilder builder = test::plain_frame(Bytes(1000, 3), 300);
  builder.metalayers = {{"one", {1}}};
  builder.vlmetalayers = {{"two", test::plain_chunk(Bytes(10))}};
  const auto opened = test::open_frame(builder.build());
  ASSERT_TRUE(opened) << describe(opened.error());
  const nlohmann::json json = frame::summary_json(**opened);
  const nlohmann::json expected = {{"format", "cframe"},      {"codec", "lz4"}, {"clevel", 5},
                                   {"filters", "shuffle"},    {"typesize", 1},  {"chunksize", 300},
                                   {"blocksize", 0},          {"nbytes", 1000}, {"cbytes", 1128},
                                   {"ratio", 0.887},          {"chunks", 4},    {"metalayers", {"one"}},
                                   {"vlmetalayers", {"two"}}, {"sealed", false}};
  EXPECT_EQ(json, expected);
}

TEST(Report, AnEmptyContainerHasNoRatio) {
  FrameBuilder builder;
  builder.chunksize = -1;
  const auto opened = test::open_frame(builder.build());
  ASSERT_TRUE(opened);
  EXPECT_TRUE(frame::summary_json(**opened)["ratio"].is_null());
}

TEST(Report, AnyNameMakesValidJson) {
  FrameBuilder builder = test::plain_frame(Bytes(100), 100);
  for (const char* name : {"\xff", "\xc3", "\xe2\x82", "\xed\xa0\x80", "\xc0\x80", "\xf5\x80\x80\x80", "\xc3\xa9",
                           "q\"\n", "\xf0\x9f\x98\x80"}) {
    builder.metalayers.emplace_back(name, Bytes{});
  }
  const auto opened = test::open_frame(builder.build());
  ASSERT_TRUE(opened);
  const nlohmann::json json = frame::summary_json(**opened);
  EXPECT_NO_THROW(static_cast<void>(json.dump()));
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(json["metalayers"][0], bad);
  EXPECT_EQ(json["metalayers"][2], bad + bad);
  EXPECT_EQ(json["metalayers"][6], "\xc3\xa9");
  EXPECT_EQ(json["metalayers"][8], "\xf0\x9f\x98\x80");
}

TEST(Report, EveryGoldenFrameHasOne) {
  for (const test::Row& row : test::read_manifest(test::golden_dir() / "cframe" / "MANIFEST.tsv")) {
    const auto opened = test::open_frame(row.file("path").string(), static_cast<std::uint64_t>(row.number("offset")));
    ASSERT_TRUE(opened);
    const nlohmann::json json = frame::summary_json(**opened);
    EXPECT_EQ(json["codec"], row["codec"]);
    EXPECT_EQ(json["chunks"], row.number("nchunks"));
    EXPECT_FALSE(json.dump().empty());
  }
}

TEST(Report, NamesOfFilters) {
  frame::FrameParameters parameters;
  EXPECT_EQ(frame::filters_name(parameters), "none");
  parameters.filters = {4, 0, 3, 0, 200, 2};
  parameters.filters_meta = {static_cast<std::uint8_t>(-12), 0, 0, 0, 5, 0};
  EXPECT_EQ(frame::filters_name(parameters), "trunc_prec(-12)+delta+filter 200(5)+bitshuffle");
}

}  // namespace
}  // namespace cframefs
