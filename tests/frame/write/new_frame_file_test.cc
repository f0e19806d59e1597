// NewFrameFile: frames are read back, and a failed write leaves no valid frame.
#include "frame/write/new_frame_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "frame/open/open.h"
#include "frame/write/auto_params.h"
#include "tests/support/digest_frame.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/frame_builder.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"

namespace cframefs::test {
namespace {

using frame::NewFrame;
using frame::NewFrameFile;

NewFrame small_chunks() {
  NewFrame frame;
  frame.encode.typesize = 4;
  frame.encode.filters[5] = static_cast<std::uint8_t>(codec::FilterId::shuffle);
  frame.chunksize = 4000;
  return frame;
}

/// Returns rising numbers, with each fifth chunk of zeros.
std::vector<std::uint8_t> plain_bytes(std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::uint8_t>(i / 4000 % 5 == 2 ? 0 : i / 4 >> 8 * (i % 4));
  return bytes;
}

codec::Result<void> write(frame::FileOps& files, frame::OpenFile out, const NewFrame& frame,
                          const std::vector<std::uint8_t>& plain,
                          const std::vector<frame::Metalayer>& vlmetalayers = {}) {
  codec::EncodeContext context;
  frame::FileTarget target(files, out);
  NewFrameFile file(target, frame);
  const auto chunksize = static_cast<std::size_t>(frame.chunksize);
  for (std::size_t at = 0; at < plain.size(); at += chunksize) {
    const codec::ByteView piece = codec::ByteView(plain).subspan(at, std::min(chunksize, plain.size() - at));
    auto chunk = codec::encode_chunk(context, frame.encode, piece);
    if (!chunk) return codec::Failure(chunk.error());
    if (auto put = file.append(*chunk); !put) return put;
    EXPECT_EQ(file.nbytes(), at + piece.size());
  }
  return file.finish(vlmetalayers);
}

class NewFrameFileTest : public testing::Test {
 protected:
  frame::Descriptor empty_file(const std::string& name) const {
    const int fd = ::open((dir_.path() / name).c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    EXPECT_GE(fd, 0);
    return {frame::system_files(), frame::system_file(fd)};
  }
  auto open(const std::string& name) const {
    return frame::open_path(frame::system_files(), (dir_.path() / name).string(),
                            std::make_shared<frame::IndexCache>());
  }
  TempDir dir_;
};

TEST_F(NewFrameFileTest, ReadsBack) {
  for (const std::size_t size : {0, 1, 3999, 4000, 4001, 40'000, 123'456}) {
    const auto plain = plain_bytes(size);
    NewFrame frame = small_chunks();
    frame.metalayers = {{"first", {1, 2, 3}}, {"second", {}}};
    {
      const auto file = empty_file("x");
      const auto written =
          write(frame::system_files(), file.handle(), frame, plain, {{"notes", {9, 8, 7}}, {"more", {}}});
      ASSERT_TRUE(written) << written.error().reason;
    }
    const auto opened = open("x");
    ASSERT_TRUE(opened) << opened.error().reason;
    const frame::Container& container = **opened;
    EXPECT_EQ(container.parameters().nbytes, size);
    EXPECT_EQ(container.parameters().chunksize, 4000);
    EXPECT_EQ(container.parameters().typesize, 4);
    ASSERT_EQ(container.metalayer_places().size(), 2U);
    EXPECT_EQ(container.metalayers()->at(0).content, (std::vector<std::uint8_t>{1, 2, 3}));
    EXPECT_EQ(container.vlmetalayer_names(), (std::vector<std::string>{"notes", "more"}));
    EXPECT_EQ(*container.vlmetalayer("notes"), (std::vector<std::uint8_t>{9, 8, 7}));
    EXPECT_EQ(container.parameters().frame_length, std::filesystem::file_size(dir_.path() / "x"));
    std::vector<std::uint8_t> read;
    for (std::int64_t chunk = 0; chunk < container.chunk_count(); ++chunk) {
      const auto bytes = read_chunk(container, chunk);
      ASSERT_TRUE(bytes) << bytes.error().reason;
      read.insert(read.end(), bytes->begin(), bytes->end());
    }
    EXPECT_EQ(read, plain);
  }
}

TEST_F(NewFrameFileTest, CopiesEncodedMetalayers) {
  const std::vector<frame::Metalayer> stored = {{"first", frame::metalayer_chunk(plain_bytes(300'000))},
                                                {"second", frame::metalayer_chunk(plain_bytes(7))}};
  std::vector<frame::MetalayerLength> lengths;
  for (const frame::Metalayer& layer : stored)
    lengths.push_back({layer.name, layer.content.size()});
  NewFrame frame = small_chunks();
  {
    const auto file = empty_file("x");
    frame::FileTarget target(frame::system_files(), file.handle());
    NewFrameFile out(target, frame);
    const auto done = out.finish(lengths, [&](std::size_t number) { return stored[number].content; });
    ASSERT_TRUE(done) << done.error().reason;
  }
  const auto opened = open("x");
  ASSERT_TRUE(opened) << opened.error().reason;
  EXPECT_EQ(*(*opened)->vlmetalayer("first"), plain_bytes(300'000));
  EXPECT_EQ(*(*opened)->vlmetalayer("second"), plain_bytes(7));
  frame.vlmetalayers = stored;
  EXPECT_EQ(std::filesystem::file_size(dir_.path() / "x"), frame::empty_frame(frame).size());
}

TEST_F(NewFrameFileTest, AMetalayerOfAnotherLengthIsRefused) {
  const auto file = empty_file("x");
  frame::FileTarget target(frame::system_files(), file.handle());
  NewFrameFile out(target, small_chunks());
  const auto done = out.finish({{"first", 40}}, [](std::size_t) { return std::vector<std::uint8_t>(41); });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, codec::ErrorKind::stale);
  EXPECT_FALSE(open("x"));
}

TEST_F(NewFrameFileTest, OnlyTheLastChunkMayBeShort) {
  const auto file = empty_file("x");
  codec::EncodeContext context;
  const NewFrame frame = small_chunks();
  frame::FileTarget target(frame::system_files(), file.handle());
  NewFrameFile out(target, frame);
  const auto encode = [&](std::size_t size) { return *codec::encode_chunk(context, frame.encode, plain_bytes(size)); };
  EXPECT_FALSE(out.append(encode(4001)));
  EXPECT_FALSE(out.append(encode(0)));
  EXPECT_TRUE(out.append(encode(4000)));
  EXPECT_TRUE(out.append(encode(100)));
  EXPECT_FALSE(out.append(encode(100)));
  EXPECT_FALSE(out.append(encode(4000)));
}

/// Fails write number `failing`, counted from 0.
class FailingFiles final : public ForwardingFiles {
 public:
  explicit FailingFiles(int failing) : left_(failing) {}
  codec::Result<void> pwrite(frame::OpenFile file, codec::ByteView from, frame::FileOffset at) override {
    if (left_-- == 0) return codec::io_error(ENOSPC, "pwrite");
    return ForwardingFiles::pwrite(file, from, at);
  }
  bool has_failed() const { return left_ < 0; }

 private:
  int left_;
};

TEST_F(NewFrameFileTest, IsNotAFrameBeforeFinish) {
  NewFrame frame = small_chunks();
  frame.encode.clevel = 0;  // not compressed, so that many bytes are written
  const auto plain = plain_bytes(20'000'000);
  int writes = 0;
  for (bool failed = true; failed; ++writes) {
    FailingFiles files(writes);
    const auto file = empty_file("x");
    const auto written = write(files, file.handle(), frame, plain);
    failed = files.has_failed();
    EXPECT_EQ(written.has_value(), !failed);
    EXPECT_EQ(open("x").has_value(), !failed);
    if (failed) {
      EXPECT_EQ(written.error().sys, ENOSPC);
    }
  }
  EXPECT_GT(writes, 3);
  EXPECT_LT(writes, 100) << "writes are not combined";
}

TEST_F(NewFrameFileTest, AChunkWhoseDigestDiffersIsNotCopied) {
  FrameBuilder builder = plain_frame(plain_bytes(12000), 4000);
  const auto from = digest_frame(builder.build(), std::make_shared<const RefusingVerifier>(1));
  ASSERT_TRUE(from);
  const auto file = empty_file("x");
  frame::FileTarget target(frame::system_files(), file.handle());
  NewFrameFile copy(target, small_chunks());
  for (const std::int64_t chunk : {0, 2}) {
    const auto reader = frame::ChunkReader::open(*from, frame::ChunkNumber{chunk});
    ASSERT_TRUE(reader);
    EXPECT_TRUE(copy.append_stored(**reader));
  }
  const auto damaged = frame::ChunkReader::open(*from, frame::ChunkNumber{1});
  ASSERT_TRUE(damaged);
  const auto refused = copy.append_stored(**damaged);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, codec::ErrorKind::corruption);
}

}  // namespace
}  // namespace cframefs::test
