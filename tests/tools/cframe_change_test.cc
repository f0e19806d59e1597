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
#include "tests/tools/run_cframe.h"

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
  const Ran ran = run_cframe({"compact", path()});
  EXPECT_EQ(ran.status, tools::done) << ran.err;
  EXPECT_NE(ran.out.find(" became "), std::string::npos) << ran.out;
  EXPECT_LT(file_bytes(path()).size(), bytes_.size() + 100);
  EXPECT_EQ(plain_of(path()), plain_);
  EXPECT_EQ(run_cframe({"get-meta", path(), "notes"}).out, "hi");
  EXPECT_EQ(run_cframe({"compact", "--quiet", path()}).out, "");
}

TEST_F(CframeChange, CompactNamesWhatItCannotDo) {
  const Ran ran = run_cframe({"compact", path("missing"), path()});
  EXPECT_EQ(ran.status, tools::call_at_fault);
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
  EXPECT_EQ(ran.status, tools::data_at_fault);
  EXPECT_NE(ran.err.find("repair FILE OUT"), std::string::npos) << ran.err;
  EXPECT_EQ(file_bytes(path()), cut);
}

TEST_F(CframeChange, RepairCopiesAGoodFrame) {
  const Ran ran = run_cframe({"repair", path(), path("saved.b2frame")});
  EXPECT_EQ(ran.status, tools::done) << ran.err;
  EXPECT_EQ(plain_of(path("saved.b2frame")), plain_);
  EXPECT_EQ(run_cframe({"get-meta", path("saved.b2frame"), "notes"}).out, "hi");
  EXPECT_EQ(run_cframe({"get-meta", "--fixed", path("saved.b2frame"), "units"}).out, "m/s");
  EXPECT_EQ(run_cframe({"repair", path(), path("saved.b2frame")}).status, tools::call_at_fault) << "it exists";
}

TEST_F(CframeChange, RepairNamesTheChunkThatIsLost) {
  const Ran ran = save_after_damage(place(2), 4);
  EXPECT_EQ(ran.status, tools::data_at_fault);
  EXPECT_NE(ran.err.find("chunk 2 at file offset"), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find("6 chunks, 1 lost"), std::string::npos) << ran.out;
  Bytes expected = plain_;
  std::fill_n(expected.begin() + 2 * kChunk, kChunk, 0);
  EXPECT_EQ(plain_of(path("saved.b2frame")), expected);
}

TEST_F(CframeChange, RepairWorksWithoutATrailer) {
  const Ran ran = save_after_damage(bytes_.size() - 30, 30);
  EXPECT_EQ(ran.status, tools::data_at_fault);
  EXPECT_NE(ran.err.find("metalayers are lost"), std::string::npos) << ran.err;
  EXPECT_EQ(plain_of(path("saved.b2frame")), plain_);
  EXPECT_EQ(run_cframe({"get-meta", "--fixed", path("saved.b2frame"), "units"}).out, "m/s");
}

TEST_F(CframeChange, RepairWorksWithoutAnIndex) {
  const Ran ran = save_after_damage(index_place(), bytes_.size() - index_place());
  EXPECT_EQ(ran.status, tools::data_at_fault);
  EXPECT_NE(ran.err.find("in the order of the file"), std::string::npos) << ran.err;
  EXPECT_EQ(plain_of(path("saved.b2frame")), plain_);
}

TEST_F(CframeChange, RepairWorksOnAFileThatWasCutShort) {
  write(Bytes(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(place(3) + 100)));
  const Ran ran = run_cframe({"repair", path(), path("saved.b2frame")});
  EXPECT_EQ(ran.status, tools::data_at_fault);
  EXPECT_EQ(plain_of(path("saved.b2frame")), Bytes(plain_.begin(), plain_.begin() + 3 * kChunk));
}

TEST_F(CframeChange, RepairWorksWithoutAHeader) {
  const Ran ran = save_after_damage(0, 60);
  EXPECT_EQ(ran.status, tools::data_at_fault);
  EXPECT_NE(ran.err.find("header is lost"), std::string::npos) << ran.err;
  EXPECT_EQ(plain_of(path("saved.b2frame")), plain_);
}

TEST_F(CframeChange, RepairTakesTheOrderOfAnOlderIndex) {
  // Chunks were replaced behind the first index; the second, which says so, is damaged.
  const auto fd = frame::system_files().open_named(temp_.path().string(), O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(fd);
  const frame::Descriptor dir(frame::system_files(), *fd);
  auto writer = frame::FrameWriter::open(frame::system_files(), dir.fd(), "x.b2frame", nullptr);
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->store(frame::ChunkNumber{1}, encoded(pattern(kChunk, 99))));
  ASSERT_TRUE((*writer)->commit(frame::Durability::durable));
  bytes_ = file_bytes(path());
  const Ran ran = save_after_damage(bytes_.size() - 140, 140);
  EXPECT_EQ(ran.status, tools::data_at_fault);
  EXPECT_NE(ran.err.find("perhaps of an older state"), std::string::npos) << ran.err;
  EXPECT_EQ(plain_of(path("saved.b2frame")), plain_);
}

TEST_F(CframeChange, RepairSaysWhenNothingIsLeft) {
  write(Bytes(5000, 0x77));
  const Ran ran = run_cframe({"repair", path(), path("saved.b2frame")});
  EXPECT_EQ(ran.status, tools::data_at_fault);
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
  EXPECT_EQ(run_cframe({"get-meta", path(), "gone"}).status, tools::call_at_fault);
  EXPECT_EQ(run_cframe({"set-meta", path(), "notes"}).status, tools::call_at_fault);
  EXPECT_EQ(run_cframe({"set-meta", path(), "notes", "{", "--type", "json"}).status, tools::call_at_fault);
  EXPECT_EQ(run_cframe({"set-meta", path(), "notes", "\xff"}).status, tools::call_at_fault);
  EXPECT_EQ(run_cframe({"get-meta", path(), "notes", "--raw", "--json"}).status, tools::call_at_fault);
  EXPECT_EQ(run_cframe({"set-meta", path(), "notes", "x", "--remove"}).status, tools::call_at_fault);
  EXPECT_EQ(run_cframe({"set-meta", path(), "units", "--fixed", "--remove"}).status, tools::call_at_fault);
  EXPECT_EQ(run_cframe({"set-meta", path(), std::string(40, 'n'), "x"}).status, tools::call_at_fault);
  EXPECT_EQ(run_cframe({"set-meta", path(), "notes", "--from", path("missing")}).status, tools::call_at_fault);
  EXPECT_EQ(file_bytes(path()), bytes_);
}

}  // namespace
}  // namespace cframefs::test
