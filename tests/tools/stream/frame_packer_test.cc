// Packing on many threads: what comes out, and how it ends, must not depend on how many there were.
#include "tools/stream/frame_packer.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <numeric>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/forwarding_files.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"

namespace cframefs::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kPackedChunk = 4096;

Bytes plain_bytes(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::uint8_t>(i % 97 * (i / kPackedChunk) + i / 7);
  return bytes;
}

/// Bytes in memory, to be had by place or not. From `fails_at` on nothing can be read.
class BytesInput final : public tools::Input {
 public:
  BytesInput(const Bytes& bytes, bool places) : bytes_(bytes), places_(places) {}

  codec::Result<std::size_t> read(codec::ByteSpan into) override {
    auto got = copy(into, at_);
    if (got) at_ += *got;
    return got;
  }
  tools::ReadAt read_at() const {
    if (!places_) return nullptr;
    return [this](codec::ByteSpan into, std::uint64_t at) { return copy(into, at); };
  }

  std::size_t fails_at = SIZE_MAX;

 private:
  codec::Result<std::size_t> copy(codec::ByteSpan into, std::size_t at) const {
    const std::size_t known = std::min(into.size(), bytes_.size() - std::min(at, bytes_.size()));
    // The later the place, the later it is that the error would be seen first.
    if (at + known > fails_at) return codec::io_error(at <= fails_at ? EIO : ENXIO, "read");
    std::copy_n(bytes_.data() + std::min(at, bytes_.size()), known, into.begin());
    return known;
  }

  const Bytes& bytes_;
  const bool places_;
  std::size_t at_ = 0;
};

class FramePacker : public testing::Test {
 protected:
  FramePacker() { frame_.chunksize = kPackedChunk; }

  codec::Result<tools::Packed> pack(BytesInput& input, unsigned workers) {
    file_ =
        frame::Descriptor(frame::system_files(),
                          frame::system_file(::open((dir_.path() / "x").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600)));
    last_progress_ = {};
    frame::FileTarget target(frame::system_files(), file_.handle());
    return tools::pack_frame(
        input, frame_, target, workers,
        [this](const tools::Packed& packed) {
          EXPECT_EQ(std::this_thread::get_id(), owner_);
          EXPECT_GE(packed.nbytes, last_progress_.nbytes);
          last_progress_ = packed;
        },
        stop_, {}, input.read_at());
  }
  Bytes packed_bytes() const { return file_bytes(dir_.path() / "x"); }

  TempDir dir_;
  frame::NewFrame frame_;
  frame::Descriptor file_;
  std::atomic<bool> stop_{false};
  const std::thread::id owner_ = std::this_thread::get_id();
  tools::Packed last_progress_;
};

TEST_F(FramePacker, TheSameFrameWhateverReadsIt) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, kPackedChunk, 7 * kPackedChunk, 300 * kPackedChunk + 5}) {
    const Bytes plain = plain_bytes(size);
    BytesInput first(plain, false);
    ASSERT_TRUE(pack(first, 1));
    const Bytes expected = packed_bytes();
    for (const unsigned workers : {1U, 2U, 7U}) {
      for (const bool places : {false, true}) {
        BytesInput input(plain, places);
        const auto packed = pack(input, workers);
        ASSERT_TRUE(packed) << packed.error().reason;
        EXPECT_EQ(packed->nbytes, size);
        EXPECT_EQ(last_progress_.nbytes, size);
        EXPECT_EQ(packed->stored, packed_bytes().size());
        EXPECT_TRUE(packed_bytes() == expected) << size << " bytes, " << workers << " workers, places " << places;
      }
    }
  }
}

TEST_F(FramePacker, TheFirstErrorInTheOrderOfTheData) {
  const Bytes plain = plain_bytes(200 * kPackedChunk);
  for (const unsigned workers : {1U, 2U, 7U}) {
    for (const bool places : {false, true}) {
      for (const std::size_t chunk : {0, 1, 100, 199}) {
        BytesInput input(plain, places);
        input.fails_at = chunk * kPackedChunk + 10;
        const auto packed = pack(input, workers);
        ASSERT_FALSE(packed);
        EXPECT_EQ(packed.error().sys, EIO) << chunk << ", " << workers << " workers, places " << places;
        EXPECT_LE(last_progress_.nbytes, chunk * kPackedChunk);
      }
    }
  }
}

TEST_F(FramePacker, StopsWhenTold) {
  const Bytes plain = plain_bytes(200 * kPackedChunk);
  stop_ = true;
  for (const unsigned workers : {1U, 7U}) {
    for (const bool places : {false, true}) {
      BytesInput input(plain, places);
      const auto packed = pack(input, workers);
      ASSERT_FALSE(packed);
      EXPECT_EQ(packed.error().sys, EINTR);
    }
  }
}

TEST_F(FramePacker, AFullDiskEndsAllThreads) {
  class FullDisk final : public ForwardingFiles {
   public:
    codec::Result<void> pwrite(frame::OpenFile /*file*/, codec::ByteView /*from*/, frame::FileOffset /*at*/) override {
      return codec::io_error(ENOSPC, "pwrite");
    }
  };
  FullDisk full;
  const Bytes plain = plain_bytes(2000 * kPackedChunk);
  frame_.encode.clevel = 0;
  BytesInput input(plain, true);
  frame::FileTarget target(full, frame::OpenFile{});
  const auto packed = tools::pack_frame(
      input, frame_, target, 7, [](const tools::Packed&) {}, stop_, {}, input.read_at());
  ASSERT_FALSE(packed);
  EXPECT_EQ(packed.error().sys, ENOSPC);
}

}  // namespace
}  // namespace cframefs::test
