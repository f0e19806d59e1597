// cframe cat against the golden frames: every byte, and ranges of them.
#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/support/array_builder.h"
#include "tests/support/digest.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/cframe/run_cframe.h"
#include "tools/stream/parallel_reader.h"

namespace cframefs::test {
namespace {

constexpr std::int64_t kMaxPrinted = std::int64_t{64} << 20;  // kept in memory by the test

std::string digest(const std::string& text) {
  return sha256(std::vector<std::uint8_t>(text.begin(), text.end()));
}

std::vector<Row> golden_frames() {
  return read_manifest(golden_dir() / "cframe" / "MANIFEST.tsv");
}

TEST(CframeCat, WritesEveryGoldenFrame) {
  std::size_t compared = 0;
  for (const Row& row : golden_frames()) {
    if (row["sha256"] == "-" || row.number("nbytes") > kMaxPrinted) continue;
    SCOPED_TRACE(row["path"] + " at " + row["offset"]);
    const Ran ran = run_cframe({"cat", row.file("path").string(), "--frame-offset", row["offset"]});
    EXPECT_EQ(ran.status, tools::done);
    EXPECT_EQ(ran.err, "");
    EXPECT_EQ(ran.out.size(), static_cast<std::size_t>(row.number("nbytes")));
    EXPECT_EQ(digest(ran.out), row["sha256"]);
    ++compared;
  }
  EXPECT_GE(compared, 390U);
}

TEST(CframeCat, WritesRangesOfTheHugeFrames) {
  std::size_t compared = 0;
  for (const Row& row : golden_frames()) {
    for (const GoldenRange& range : parse_ranges(row["ranges"])) {
      SCOPED_TRACE(row["path"] + " from " + std::to_string(range.offset));
      const Ran ran = run_cframe({"cat", row.file("path").string(), "--offset", std::to_string(range.offset),
                                  "--length", std::to_string(range.length)});
      EXPECT_EQ(ran.status, tools::done);
      EXPECT_EQ(digest(ran.out), range.sha256);
      ++compared;
    }
  }
  EXPECT_GE(compared, 20U);
}

TEST(CframeCat, AnyRangeIsThatPartOfTheWhole) {
  for (const char* name :
       {"large/zstd.b2frame", "matrix/132-lz4hc-c5-delta-delta-t1.b2frame", "variable/vlblocks-lz4-0.b2frame",
        "special/mixed-t4-d.b2frame", "count/many-tiny.b2frame"}) {
    const Ran whole = run_cframe({"cat", golden_cframe(name)});
    ASSERT_EQ(whole.status, tools::done) << name;
    rc::check(std::string("a range of ") + name, [&] {
      const auto size = whole.out.size();
      const auto offset = *rc::gen::inRange<std::size_t>(0, size + 2);
      const auto length = *rc::gen::inRange<std::size_t>(0, size + 2);
      const auto workers = *rc::gen::inRange(1, 5);
      const Ran part = run_cframe({"cat", golden_cframe(name), "--offset", std::to_string(offset), "--length",
                                   std::to_string(length), "--workers", std::to_string(workers)});
      RC_ASSERT(part.status == tools::done);
      RC_ASSERT(part.out == (offset >= size ? std::string() : whole.out.substr(offset, length)));
    });
  }
}

/// An array of 3 x 3 x 2 chunks in a file; `items`: its C-order bytes.
std::string array_file(const TempDir& directory, Bytes& items) {
  const ArraySpec spec{{25, 30, 41}, {10, 12, 30}, {4, 5, 16}, 4, "<f4"};
  items = varied_items(spec.nbytes());
  const auto kind = [](std::int64_t chunk) { return chunk % 5 == 0 ? ArrayChunk::plain : ArrayChunk::blocks; };
  return directory.write("a.b2nd", array_frame(spec, items, kind).build()).string();
}

TEST(CframeCat, AnArrayIsWrittenAsItShowsOnAMount) {
  const TempDir directory;
  Bytes items;
  const std::string path = array_file(directory, items);
  const std::string flat(items.begin(), items.end());
  const Ran npy = run_cframe({"cat", path});
  ASSERT_EQ(npy.status, tools::done) << npy.err;
  ASSERT_EQ(npy.out.size(), 128 + flat.size());
  EXPECT_EQ(npy.out.substr(1, 5), "NUMPY");
  EXPECT_EQ(npy.out.substr(128), flat);
  EXPECT_EQ(run_cframe({"cat", path, "--b2nd", "flat"}).out, flat);
  EXPECT_EQ(run_cframe({"cat", path, "--b2nd", "chunks"}).out.size(), 3U * 3 * 2 * (12 * 15 * 32 * 4));
  rc::check("a range of an array", [&] {
    const auto offset = *rc::gen::inRange<std::size_t>(0, npy.out.size() + 2);
    const auto length = *rc::gen::inRange<std::size_t>(0, npy.out.size() + 2);
    const auto workers = *rc::gen::inRange(1, 4);
    const Ran part = run_cframe({"cat", path, "--offset", std::to_string(offset), "--length", std::to_string(length),
                                 "--workers", std::to_string(workers)});
    RC_ASSERT(part.status == tools::done);
    RC_ASSERT(part.out == (offset >= npy.out.size() ? std::string() : npy.out.substr(offset, length)));
  });
}

TEST(CframeCat, AFormThatDoesNotExistIsAnsweredWithThoseThatDo) {
  for (const char* form : {"foo", "1", ""}) {
    const Ran ran = run_cframe({"cat", golden_cframe("large/lz4.b2frame"), "--b2nd", form, "--length", "1"});
    EXPECT_EQ(ran.status, tools::kUsageError) << form;
    for (const char* known : {"npy", "flat", "chunks"})
      EXPECT_NE(ran.err.find(known), std::string::npos) << ran.err;
  }
}

TEST(CframeCat, AnArrayWhoseLayerIsDamagedIsNotWritten) {
  const TempDir directory;
  Bytes items;
  const std::string path = array_file(directory, items);
  Bytes frame = file_bytes(path);
  // The first extent of the shape becomes negative.
  const Bytes begin = {0x97, 0x00, 0x03, 0x93, 0xd3};
  const auto found = std::search(frame.begin(), frame.end(), begin.begin(), begin.end());
  ASSERT_NE(found, frame.end());
  found[5] = 0x80;
  directory.write("a.b2nd", frame);
  for (const char* form : {"npy", "flat"}) {
    const Ran ran = run_cframe({"cat", path, "--b2nd", form});
    EXPECT_EQ(ran.status, tools::kDataError);
    EXPECT_EQ(ran.out, "");
  }
  EXPECT_EQ(run_cframe({"verify", path}).status, tools::kDataError);
}

TEST(CframeCat, TakesSizesWithSuffixes) {
  const Ran whole = run_cframe({"cat", golden_cframe("large/lz4.b2frame")});
  const Ran part = run_cframe({"cat", golden_cframe("large/lz4.b2frame"), "--offset", "1M", "--length", "4K"});
  EXPECT_EQ(part.status, tools::done);
  EXPECT_EQ(part.out, whole.out.substr(1 << 20, 4096));
}

TEST(CframeCat, LargeChunksAreCutAtBlocks) {
  // One chunk of 16 MiB and more in jobs of 2 MiB: the seams must not show.
  const std::string frame = golden_cframe("huge/repeat-6GiB.b2frame");
  const Ran ran = run_cframe({"cat", frame, "--offset", "16777000", "--length", "20M"});
  ASSERT_EQ(ran.status, tools::done);
  ASSERT_EQ(ran.out.size(), std::size_t{20} << 20);
  const Ran seam = run_cframe({"cat", frame, "--offset", std::to_string(16777000 + (2 << 20) - 8), "--length", "16"});
  EXPECT_EQ(ran.out.substr((2 << 20) - 8, 16), seam.out);
}

TEST(CframeCat, StopsAtTheDamagedChunkAfterWhatIsGood) {
  const std::string damaged = (golden_dir() / "malformed" / "truncate" / "zero-chunk-1.b2frame").string();
  const Ran good = run_cframe({"cat", (golden_dir() / "malformed" / "good" / "base-lz4.b2frame").string()});
  const Ran ran = run_cframe({"cat", damaged});
  EXPECT_EQ(ran.status, tools::kDataError);
  EXPECT_EQ(ran.out, good.out.substr(0, 192));
  EXPECT_NE(ran.err.find(damaged + ": chunk 1"), std::string::npos) << ran.err;
  const Ran rest = run_cframe({"cat", damaged, "--offset", "384"});
  EXPECT_EQ(rest.status, tools::done);
  EXPECT_EQ(rest.out, good.out.substr(384));
}

TEST(CframeCat, SaysWhatIsWrongWithTheCall) {
  EXPECT_EQ(run_cframe({"cat"}).status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"cat", golden_cframe("large/lz4.b2frame"), "--length", "1X"}).status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"cat", golden_cframe("large/lz4.b2frame"), "--workers", "0"}).status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"cat", golden_cframe("no-such-frame")}).status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"cat", golden_cframe("MANIFEST.tsv")}).status, tools::kDataError);
}

TEST(Cframe, NamesASubcommandThatIsNone) {
  const Ran ran = run_cframe({"inof", golden_cframe("large/lz4.b2frame")});
  EXPECT_EQ(ran.status, tools::kUsageError);
  EXPECT_EQ(ran.err, "cframe: unknown subcommand 'inof' (--help lists them)\n");
  EXPECT_EQ(run_cframe({}).err, "cframe: A subcommand is required (--help shows the usage)\n");
}

TEST(CframeCat, AReaderThatHasGoneIsNobodysFault) {
  const std::atomic<bool> stop = false;
  tools::StringOutput err;
  BrokenOutput gone(EPIPE);
  tools::Io io{gone, err, false, stop};
  EXPECT_EQ(tools::cframe_main({"cat", golden_cframe("large/lz4.b2frame")}, io), tools::done);
  EXPECT_EQ(err.text, "");
}

TEST(CframeCat, AFullDiskIsTheSystemsFault) {
  const std::atomic<bool> stop = false;
  tools::StringOutput err;
  BrokenOutput full(ENOSPC);
  tools::Io io{full, err, false, stop};
  EXPECT_EQ(tools::cframe_main({"cat", golden_cframe("large/lz4.b2frame")}, io), tools::kSystemError);
  EXPECT_NE(err.text.find("standard output"), std::string::npos) << err.text;
}

TEST(CframeCat, StopsWhenTold) {
  const std::atomic<bool> stop = true;
  tools::StringOutput out;
  tools::StringOutput err;
  tools::Io io{out, err, false, stop};
  EXPECT_EQ(tools::cframe_main({"cat", golden_cframe("huge/zeros-1TiB.b2frame")}, io), tools::interrupted);
}

}  // namespace
}  // namespace cframefs::test
