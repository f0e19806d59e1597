// cframe compact, repair, get-meta and set-meta: what they change is changed, what cannot be saved is named.
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/frame_builder.h"
#include "tests/support/frame_model.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/cframe/run_cframe.h"

namespace cframefs::test {
namespace {

constexpr std::int32_t kChunk = 600;

class CframeChange : public ::testing::Test {
 protected:
  /// A frame of 5 chunks and a short one, with metalayers of both kinds.
  CframeChange() {
    builder_ = plain_frame(plain_, kChunk);
    builder_.metalayers = {{"units", {'m', '/', 's'}}};
    const Bytes notes = {'h', 'i'};
    builder_.vlmetalayers = {{"notes", plain_chunk(notes)}};
    bytes_ = builder_.build();
    write(bytes_);
  }

  void write(const Bytes& bytes) { temp_.write("x.b2frame", bytes); }
  std::string path(const std::string& name = "x.b2frame") const { return (temp_.path() / name).string(); }

  static Bytes plain_of(const std::string& path) {
    const auto opened = open_frame(path);
    EXPECT_TRUE(opened) << (opened ? "" : codec::describe(opened.error()));
    if (!opened) return {};
    const auto model = read_model(**opened);
    EXPECT_TRUE(model) << (model ? "" : codec::describe(model.error()));
    return model ? model->plain : Bytes();
  }

  /// Where chunk `chunk` begins in bytes_.
  std::size_t place(std::size_t chunk) const { return builder_.header_length() + chunk * (kChunk + 32); }
  std::size_t index_place() const { return builder_.header_length() + builder_.chunk_section.size(); }

  /// Damages a few bytes, saves, and returns what was printed.
  Ran save_after_damage(std::size_t at, std::size_t length) {
    Bytes damaged = bytes_;
    for (std::size_t i = at; i < at + length; ++i)
      damaged[i] ^= 0x5a;
    write(damaged);
    return run_cframe({"repair", path(), path("saved.b2frame")});
  }

  const Bytes plain_ = pattern(5 * kChunk + 123, 3);
  FrameBuilder builder_;
  Bytes bytes_;
  TempDir temp_;
};

TEST_F(CframeChange, CompactShortensAFrameAndSaysSo) {
  builder_.chunk_section.insert(builder_.chunk_section.end(), 50'000, 0xee);
  write(builder_.build());
  const Ran ran = run_cframe({"compact", "--checksums=keep", path()});
  EXPECT_EQ(ran.status, tools::done) << ran.err;
  EXPECT_NE(ran.out.find(" became "), std::string::npos) << ran.out;
  EXPECT_LT(file_bytes(path()).size(), bytes_.size() + 100);
  EXPECT_EQ(plain_of(path()), plain_);
  EXPECT_EQ(run_cframe({"get-meta", path(), "notes"}).out, "hi");
  EXPECT_EQ(run_cframe({"compact", "--quiet", path()}).out, "");
}

TEST_F(CframeChange, CompactRemovesChunkFilesThatNoStateUsesAndSaysSo) {
  std::filesystem::create_directory(temp_.path() / "s.b2frame");
  for (const auto& [name, bytes] : sparse_frame(plain_, kChunk))
    temp_.write("s.b2frame/" + name, bytes);
  const std::filesystem::path unused = temp_.path() / "s.b2frame" / "000000FF.chunk";
  std::ofstream(unused) << std::string(std::size_t{1} << 20, 'u');
  const Ran ran = run_cframe({"compact", path("s.b2frame")});
  EXPECT_EQ(ran.status, tools::done) << ran.err;
  EXPECT_NE(ran.out.find("s.b2frame: 1.0 MiB became "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find(" KiB\n"), std::string::npos) << ran.out;
  EXPECT_FALSE(std::filesystem::exists(unused));
  EXPECT_EQ(plain_of(path("s.b2frame")), plain_);
}

TEST_F(CframeChange, CompactNamesWhatItCannotDo) {
  const Ran ran = run_cframe({"compact", path("missing"), path()});
  EXPECT_EQ(ran.status, tools::kUsageError);
  EXPECT_NE(ran.err.find("missing: "), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find(" became "), std::string::npos) << "the others are done all the same";
}

TEST_F(CframeChange, RepairCutsAnUnfinishedCommitOff) {
  EXPECT_NE(run_cframe({"repair", path()}).out.find("nothing to repair"), std::string::npos);
  Bytes longer = bytes_;
  longer.resize(longer.size() + 3000, 0xaa);
  write(longer);
  const Ran ran = run_cframe({"repair", path()});
  EXPECT_EQ(ran.status, tools::done) << ran.err;
  EXPECT_NE(ran.out.find("cut off 2.9 KiB"), std::string::npos) << ran.out;
  EXPECT_EQ(file_bytes(path()), bytes_);
}

TEST_F(CframeChange, RepairInPlaceTouchesNothingThatIsDamaged) {
  Bytes cut(bytes_.begin(), bytes_.end() - 40);
  write(cut);
  const Ran ran = run_cframe({"repair", path()});
  EXPECT_EQ(ran.status, tools::kDataError);
  EXPECT_NE(ran.err.find("repair FILE OUT"), std::string::npos) << ran.err;
  EXPECT_EQ(file_bytes(path()), cut);
}

TEST_F(CframeChange, RepairCopiesAGoodFrame) {
  const Ran ran = run_cframe({"repair", path(), path("saved.b2frame")});
  EXPECT_EQ(ran.status, tools::done) << ran.err;
  EXPECT_EQ(plain_of(path("saved.b2frame")), plain_);
  EXPECT_EQ(run_cframe({"get-meta", path("saved.b2frame"), "notes"}).out, "hi");
  EXPECT_EQ(run_cframe({"get-meta", "--fixed", path("saved.b2frame"), "units"}).out, "m/s");
  EXPECT_EQ(run_cframe({"repair", path(), path("saved.b2frame")}).status, tools::kUsageError) << "it exists";
}

TEST_F(CframeChange, RepairNamesTheChunkThatIsLost) {
  const Ran ran = save_after_damage(place(2), 4);
  EXPECT_EQ(ran.status, tools::kDataError);
  EXPECT_NE(ran.err.find("chunk 2 at file offset"), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find("6 chunks, 1 lost"), std::string::npos) << ran.out;
  Bytes expected = plain_;
  std::fill_n(expected.begin() + 2 * kChunk, kChunk, 0);
  EXPECT_EQ(plain_of(path("saved.b2frame")), expected);
}

TEST_F(CframeChange, RepairWorksWithoutATrailer) {
  const Ran ran = save_after_damage(bytes_.size() - 30, 30);
  EXPECT_EQ(ran.status, tools::kDataError);
  EXPECT_NE(ran.err.find("metalayers are lost"), std::string::npos) << ran.err;
  EXPECT_EQ(plain_of(path("saved.b2frame")), plain_);
  EXPECT_EQ(run_cframe({"get-meta", "--fixed", path("saved.b2frame"), "units"}).out, "m/s");
}

TEST_F(CframeChange, RepairWorksWithoutAnIndex) {
  const Ran ran = save_after_damage(index_place(), bytes_.size() - index_place());
  EXPECT_EQ(ran.status, tools::kDataError);
  EXPECT_NE(ran.err.find("in the order of the file"), std::string::npos) << ran.err;
  EXPECT_EQ(plain_of(path("saved.b2frame")), plain_);
}

TEST_F(CframeChange, RepairWorksOnAFileThatWasCutShort) {
  write(Bytes(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(place(3) + 100)));
  const Ran ran = run_cframe({"repair", path(), path("saved.b2frame")});
  EXPECT_EQ(ran.status, tools::kDataError);
  EXPECT_NE(ran.out.find("3 of 6 chunks, 3 lost"), std::string::npos) << ran.out;
  EXPECT_EQ(plain_of(path("saved.b2frame")), Bytes(plain_.begin(), plain_.begin() + 3 * kChunk));
}

TEST_F(CframeChange, RepairKeepsChunksThatTheIndexNamesForEver) {
  constexpr std::int64_t kMany = (INT32_MAX - 32) / 8;
  for (const std::int64_t value : {frame::layout::kZerosEntry, frame::layout::kUninitialisedEntry, std::int64_t{0}}) {
    SCOPED_TRACE(value);
    Bytes entry(8);
    codec::store_le(entry.data(), value);
    builder_.index = repeated_chunk(entry, 8 * kMany);
    builder_.nbytes = kMany * kChunk;
    write(builder_.build());
    std::filesystem::remove(path("saved.b2frame"));
    const Ran ran = run_cframe({"repair", path(), path("saved.b2frame")});
    EXPECT_EQ(ran.status, tools::done) << ran.err;
    EXPECT_LT(std::filesystem::file_size(path("saved.b2frame")), 2000U);
    const auto saved = open_frame(path("saved.b2frame"));
    ASSERT_TRUE(saved);
    EXPECT_EQ((*saved)->chunk_count(), kMany);
    const auto location = (*saved)->locate_chunk(frame::ChunkNumber{kMany - 1});
    ASSERT_TRUE(location);
    EXPECT_EQ(location->special != codec::SpecialValue::none, value < 0);
    EXPECT_EQ(run_cframe({"verify", path("saved.b2frame")}).status, tools::done);
  }
}

TEST_F(CframeChange, RepairKeepsMetalayersOfAnySizeAsTheyAreStored) {
  // 3 GiB of them, in 33 bytes each.
  const Bytes letter = {'A'};
  builder_.vlmetalayers.clear();
  for (int i = 0; i < 3000; ++i)
    builder_.vlmetalayers.emplace_back(std::to_string(i), repeated_chunk(letter, 1 << 20, 1));
  write(builder_.build());
  const Ran ran = run_cframe({"repair", path(), path("saved.b2frame")});
  EXPECT_EQ(ran.status, tools::done) << ran.err;
  constexpr std::uint64_t kDigests = 500;  // of six chunks
  EXPECT_LE(std::filesystem::file_size(path("saved.b2frame")), std::filesystem::file_size(path()) + kDigests);
  const auto saved = open_frame(path("saved.b2frame"));
  ASSERT_TRUE(saved);
  ASSERT_EQ((*saved)->vlmetalayer_names().size(), 3000U);
  EXPECT_EQ((*saved)->vlmetalayer("2999").value(), Bytes(1 << 20, 'A'));
  EXPECT_EQ(plain_of(path("saved.b2frame")), plain_);
}

TEST_F(CframeChange, RepairDoesNotCopyForEachMetalayerWhatTheyShare) {
  constexpr std::size_t kLayers = 1000;
  const Bytes content = pattern(1 << 20, 5);
  builder_.vlmetalayers.clear();
  for (std::size_t i = 0; i < kLayers; ++i)
    builder_.vlmetalayers.emplace_back(std::to_string(1000 + i), i == 0 ? plain_chunk(content) : Bytes());
  Bytes bytes = builder_.build();
  const std::size_t first = bytes.size() - builder_.trailer().size() + 2 + 7 + 1 + 4 + 1;
  for (std::size_t i = 1; i < kLayers; ++i)
    std::copy_n(&bytes[first], 4, &bytes[first + i * 10]);
  write(bytes);
  const Ran ran = run_cframe({"repair", path(), path("saved.b2frame")});
  EXPECT_EQ(ran.status, tools::kDataError);
  EXPECT_NE(ran.err.find("'1999' of a frame whose metalayers share bytes"), std::string::npos)
      << ran.err.substr(0, 500);
  EXPECT_LT(std::filesystem::file_size(path("saved.b2frame")), std::uintmax_t{64} << 20);
  const auto saved = open_frame(path("saved.b2frame"));
  ASSERT_TRUE(saved);
  EXPECT_EQ((*saved)->vlmetalayer("1000").value(), content);
  EXPECT_EQ((*saved)->vlmetalayer("1001").value(), content);
}

TEST_F(CframeChange, RepairGivesUpOnWhatOnlyLooksLikeChunks) {
  // A megabyte of chunks of 16 MiB that all but decode, one every 150 bytes.
  Bytes body;
  for (int i = 0; i < 7000; ++i) {
    Bytes chunk = plain_chunk(Bytes());
    chunk.resize(32 + 64 + 5 + 8);
    chunk[2] = 0x15 | 1 << 5;
    codec::store_le<std::int32_t>(&chunk[4], 16 << 20);
    codec::store_le<std::int32_t>(&chunk[8], 1 << 20);
    codec::store_le<std::int32_t>(&chunk[12], 4096);
    for (std::size_t block = 0; block < 16; ++block)
      codec::store_le<std::int32_t>(&chunk[32 + 4 * block], block < 15 ? 96 : 101);
    codec::store_le<std::int32_t>(&chunk[96], -7);
    chunk[100] = 1;
    codec::store_le<std::int32_t>(&chunk[101], 4);
    codec::store_le<std::uint32_t>(&chunk[105], 0xffffffffU);
    codec::append(body, chunk);
  }
  builder_.chunksize = 16 << 20;
  builder_.nbytes = 16 << 20;
  builder_.chunk_section = body;
  Bytes bytes = builder_.build();
  std::fill(bytes.end() - 300, bytes.end(), 0);
  write(bytes);
  const Ran ran = run_cframe({"repair", path(), path("saved.b2frame")});
  EXPECT_EQ(ran.status, tools::kDataError);
  EXPECT_NE(ran.err.find("given up"), std::string::npos) << ran.err;
}

TEST_F(CframeChange, RepairWorksWithoutAHeader) {
  const Ran ran = save_after_damage(0, 60);
  EXPECT_EQ(ran.status, tools::kDataError);
  EXPECT_NE(ran.err.find("the header and its metalayers are lost"), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find("the original number is not known"), std::string::npos) << ran.out;
  EXPECT_EQ(plain_of(path("saved.b2frame")), plain_);
}

TEST_F(CframeChange, RepairTakesTheOrderOfAnOlderIndex) {
  // Chunks were replaced behind the first index; the second, which says so, is damaged.
  const auto fd = frame::system_files().open_named(temp_.path().string(), O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(fd);
  const frame::Descriptor dir(frame::system_files(), *fd);
  auto writer = frame::FrameWriter::open(frame::system_files(), dir.handle(), "x.b2frame", nullptr);
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->store(frame::ChunkNumber{1}, encoded(pattern(kChunk, 99))));
  ASSERT_TRUE((*writer)->commit(frame::Durability::durable));
  bytes_ = file_bytes(path());
  const Ran ran = save_after_damage(bytes_.size() - 140, 140);
  EXPECT_EQ(ran.status, tools::kDataError);
  EXPECT_NE(ran.err.find("may be of an older state"), std::string::npos) << ran.err;
  EXPECT_EQ(plain_of(path("saved.b2frame")), plain_);
}

TEST_F(CframeChange, RepairSaysWhenNothingIsLeft) {
  write(Bytes(5000, 0x77));
  const Ran ran = run_cframe({"repair", path(), path("saved.b2frame")});
  EXPECT_EQ(ran.status, tools::kDataError);
  EXPECT_FALSE(std::filesystem::exists(path("saved.b2frame")));
}

TEST_F(CframeChange, MetalayersAreListedReadSetAndRemoved) {
  EXPECT_EQ(run_cframe({"get-meta", path()}).out, "notes\n");
  EXPECT_EQ(run_cframe({"get-meta", "--fixed", path()}).out, "units\n");
  EXPECT_EQ(run_cframe({"set-meta", path(), "notes", "changed"}).status, tools::done);
  EXPECT_EQ(run_cframe({"get-meta", path(), "notes"}).out, "changed\n");
  EXPECT_EQ(run_cframe({"get-meta", "--raw", path(), "notes"}).out, std::string("\xa7") + "changed");
  EXPECT_EQ(run_cframe({"set-meta", "--fixed", "--type", "raw", path(), "units", "km"}).status, tools::done);
  EXPECT_EQ(run_cframe({"get-meta", "--fixed", path(), "units"}).out, "km");
  EXPECT_EQ(nlohmann::json::parse(run_cframe({"get-meta", "--json", "--fixed", path(), "units"}).out)["value"], "km");
  temp_.write("content", pattern(5000, 1));
  EXPECT_EQ(run_cframe({"set-meta", path(), "big", "--from", path("content")}).status, tools::done);
  const std::string out = run_cframe({"get-meta", path(), "big"}).out;
  EXPECT_EQ(Bytes(out.begin(), out.end()), pattern(5000, 1));
  EXPECT_EQ(nlohmann::json::parse(run_cframe({"get-meta", "--json", path()}).out), (nlohmann::json{"notes", "big"}));
  EXPECT_EQ(run_cframe({"set-meta", path(), "notes", "--remove"}).status, tools::done);
  EXPECT_EQ(run_cframe({"get-meta", path()}).out, "big\n");
  EXPECT_EQ(plain_of(path()), plain_);
}

TEST_F(CframeChange, MetalayerCallsThatMakeNoSenseAreRefused) {
  EXPECT_EQ(run_cframe({"get-meta", path(), "gone"}).status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"set-meta", path(), "notes"}).status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"set-meta", path(), "notes", "{", "--type", "json"}).status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"set-meta", path(), "notes", "\xff"}).status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"get-meta", path(), "notes", "--raw", "--json"}).status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"set-meta", path(), "notes", "x", "--remove"}).status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"set-meta", path(), "units", "--fixed", "--remove"}).status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"set-meta", path(), std::string(40, 'n'), "x"}).status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"set-meta", path(), "notes", "--from", path("missing")}).status, tools::kUsageError);
  EXPECT_EQ(file_bytes(path()), bytes_);
}

}  // namespace
}  // namespace cframefs::test
