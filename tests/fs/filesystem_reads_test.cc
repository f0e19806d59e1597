// What the mount shows of odd files: read through the filesystem object, without a mount.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "codec/chunk_encoder.h"
#include "codec/stream/encode_context.h"
#include "codec/stream/stream_encoders.h"
#include "frame/cframe/frame_layout.h"
#include "tests/fs/written_filesystem.h"
#include "tests/support/frame_builder.h"

namespace cframefs::fs {
namespace {

using test::Bytes;

class FilesystemReads : public WrittenFilesystem {
 protected:
  std::string link_of(const std::string& name) {
    auto found = filesystem_->names().lookup(kRootNode, name);
    EXPECT_TRUE(found) << found.error().reason;
    auto target = filesystem_->links().read_link(found->node);
    EXPECT_TRUE(target) << target.error().reason;
    EXPECT_EQ(static_cast<std::size_t>(found->status.st_size), target->size());
    return *target;
  }
  void link_on_disk(const std::string& target, const std::string& name) {
    std::filesystem::create_symlink(target, directory_.path() / name);
  }
  void frame_on_disk(const std::string& name, const std::string& text) {
    directory_.write(name, test::plain_frame(Bytes(text.begin(), text.end()), 4096).build());
  }
};

void append(Bytes& to, std::int32_t value) {
  std::array<std::uint8_t, 4> bytes{};
  codec::store_le(bytes.data(), value);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// A frame of one chunk of variable-length blocks: `count` of one byte, and a huge one of zeros.
Bytes frame_of_many_short_blocks(std::int32_t count, std::size_t huge) {
  codec::EncodeContext context;
  const Bytes zeros(huge);
  Bytes packed(huge / 200 + 100);
  const codec::StreamEncoder encoder{codec::kLz4, 5, nullptr};
  const auto length = codec::encode_stream(context.states(), encoder, zeros, packed);
  EXPECT_TRUE(length && *length > 0);
  packed.resize(*length);

  Bytes starts;
  Bytes blocks;
  const std::int32_t first = 32 + 4 * (count + 1);
  for (std::int32_t i = 0; i <= count; ++i) {
    append(starts, first + static_cast<std::int32_t>(blocks.size()));
    append(blocks, i < count ? 1 : static_cast<std::int32_t>(huge));
    if (i < count) {
      blocks.push_back(static_cast<std::uint8_t>(i));
    } else {
      blocks.insert(blocks.end(), packed.begin(), packed.end());
    }
  }
  const auto nbytes = count + static_cast<std::int32_t>(huge);
  Bytes chunk = {5, 1, 0x35, 1};  // lz4, not split, 32 bytes of header
  append(chunk, nbytes);
  append(chunk, count + 1);
  append(chunk, first + static_cast<std::int32_t>(blocks.size()));
  chunk.resize(32);
  chunk[0x16] = codec::kLz4;
  chunk[0x1e] = 1;  // blocks of variable length
  chunk.insert(chunk.end(), starts.begin(), starts.end());
  chunk.insert(chunk.end(), blocks.begin(), blocks.end());

  test::FrameBuilder frame;
  frame.chunksize = nbytes;
  frame.nbytes = nbytes;
  frame.general_flags |= 0x80;
  frame.chunk_section = chunk;
  frame.index = test::plain_index({0});
  return frame.build();
}

// The kernel takes no answer of more than 1024 pieces: such a read was never answered.
TEST_F(FilesystemReads, BlocksOfOneByteMakeNoReplyOfTooManyPieces) {
  constexpr std::int32_t kBlocks = 1200;
  directory_.write("x.b2frame", frame_of_many_short_blocks(kBlocks, std::size_t{kBlocks} * 65536));
  auto handle = open("x", O_RDONLY);
  ASSERT_TRUE(handle);
  Reply reply;
  ASSERT_TRUE(filesystem_->files().read(*handle, 0, kBlocks, reply));
  EXPECT_EQ(reply.size(), std::size_t{kBlocks});
  EXPECT_LT(reply.parts().size(), 1000U);
  Bytes bytes(reply.size());
  reply.copy_to(bytes.data());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    ASSERT_EQ(bytes[i], static_cast<std::uint8_t>(i)) << i;
  reply.clear();
  filesystem_->files().release(std::move(handle));
}

/// `size` bytes of numbers that grow, which every codec packs.
std::string counting(std::size_t size) {
  std::string text(size, '\0');
  for (std::uint32_t i = 0; i < size / 4; ++i) {
    const std::uint32_t value = i * 3;
    std::memcpy(&text[std::size_t{i} * 4], &value, 4);
  }
  return text;
}

class ReadsAtRandomPlaces : public FilesystemReads, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    FilesystemReads::SetUp();
    options_.new_frames.chunksize = 1 << 20;
    options_.new_frames.blocksize = 128 << 10;
    options_.new_frames.typesize = 4;
    options_.new_frames.filter = "shuffle";  // with bytedelta no part of a block can be decoded alone
    options_.new_frames.codec = GetParam();
    remount();
  }
};

// A jump to a block that was not wanted before does not fill the cache with blocks that no reader asked for; one to a
// block that is wanted again and again does.
// semantics: T3
TEST_P(ReadsAtRandomPlaces, DecodeNoMoreThanIsAskedForUntilTheyComeBack) {
  constexpr std::size_t kStep = 3 << 20;  // farther than what counts as going on
  constexpr std::size_t kSize = 8 * kStep;
  const std::string text = counting(kSize);
  {
    auto handle = create("x");
    ASSERT_TRUE(handle);
    for (std::size_t at = 0; at < kSize; at += 1 << 20)
      ASSERT_TRUE(write(*handle, at, text.substr(at, 1 << 20)));
    ASSERT_TRUE(close(std::move(handle)));
  }
  let_settle("x");
  remount();
  auto handle = open("x", O_RDONLY);
  ASSERT_TRUE(handle);
  const Statistics& statistics = filesystem_->statistics();
  constexpr std::size_t kLength = 4096;
  for (int round = 1; round <= 5; ++round) {
    const std::uint64_t before = statistics.decoding.bytes_decoded;
    for (std::size_t i = 0; i < 8; ++i) {
      const std::size_t at = (7 - i) * kStep + i * 997 + static_cast<std::size_t>(round);
      ASSERT_EQ(read(*handle, at, kLength), text.substr(at, kLength)) << at;
    }
    const std::uint64_t decoded = statistics.decoding.bytes_decoded - before;
    const std::size_t of_each = round <= 3 ? kLength : round == 4 ? std::size_t{128} << 10 : 0;
    EXPECT_EQ(decoded, 8 * of_each) << "round " << round;
  }
  filesystem_->files().release(std::move(handle));
}

class SequentialReads : public FilesystemReads {
 protected:
  static constexpr std::size_t kSize = 8 << 20;

  void SetUp() override {
    FilesystemReads::SetUp();
    options_.new_frames.chunksize = 1 << 20;
    options_.new_frames.blocksize = 256 << 10;
    options_.new_frames.typesize = 4;
    options_.new_frames.codec = "lz4";
    options_.workers = 2;
  }
  /// Writes a frame and opens it in a new mount.
  std::unique_ptr<FileHandle> reader(int flags = O_RDONLY) {
    remount();
    auto handle = create("x");
    for (std::size_t at = 0; at < kSize; at += 1 << 20)
      EXPECT_TRUE(write(*handle, at, text_.substr(at, 1 << 20)));
    EXPECT_TRUE(close(std::move(handle)));
    let_settle("x");
    remount();
    return open("x", flags);
  }
  void read_on(FileHandle& handle, std::size_t end) {
    constexpr std::size_t kRequest = 128 << 10;
    for (std::size_t at = 0; at < end; at += kRequest)
      ASSERT_EQ(read(handle, at, kRequest), text_.substr(at, kRequest)) << at;
  }
  std::uint64_t prefetched_blocks() { return filesystem_->statistics().decoding.prefetched_blocks; }
  /// Reads a little, and waits until more than that is decoded.
  void check_is_decoded_ahead(std::unique_ptr<FileHandle> handle) {
    read_on(*handle, 1 << 20);
    for (int i = 0; i < 5000 && prefetched_blocks() == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_GT(prefetched_blocks(), 0U);
    filesystem_->files().release(std::move(handle));
  }

  const std::string text_ = counting(kSize);
};

TEST_F(SequentialReads, AreDecodedAheadOf) {
  check_is_decoded_ahead(reader());
}

TEST_F(SequentialReads, AreDecodedOnceAndNotAheadWhereTheUserTurnsItOff) {
  options_.readahead = 0;
  auto handle = reader();
  read_on(*handle, kSize);
  filesystem_->stop();
  EXPECT_EQ(prefetched_blocks(), 0U);
  EXPECT_EQ(filesystem_->statistics().decoding.bytes_decoded, kSize);
  filesystem_->files().release(std::move(handle));
}

TEST_F(SequentialReads, HaveTheDiskReadWhatComesNext) {
  auto handle = reader();
  const std::uint64_t stored = std::filesystem::file_size(directory_.path() / "x.b2frame");
  read_on(*handle, 1 << 20);
  // All of it: the reader is near enough to the end.
  for (int i = 0; i < 5000 && disk_.asked_to_read < stored / 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_GE(disk_.asked_to_read, stored / 2);
  EXPECT_LE(disk_.asked_to_read, stored * 3 / 2);
  filesystem_->files().release(std::move(handle));
}

TEST_F(SequentialReads, AskNothingOfTheDiskWhereTheyAreNone) {
  auto handle = reader();
  for (std::size_t i = 0; i < 100; ++i) {
    const std::size_t at = (i * 5 + 3) % 8 << 20;
    ASSERT_EQ(read(*handle, at, 4096), text_.substr(at, 4096));
  }
  filesystem_->files().release(std::move(handle));
  options_.readahead = 0;
  handle = reader();
  read_on(*handle, kSize);
  filesystem_->files().release(std::move(handle));
  filesystem_->stop();
  EXPECT_EQ(disk_.asked_to_read, 0U);
}

TEST_F(SequentialReads, AreDecodedAheadOfWithoutTheKernelsPages) {
  check_is_decoded_ahead(reader(O_RDONLY | O_DIRECT));
}

TEST_F(SequentialReads, AreDecodedAheadOfWhereTheUserSaysHowFar) {
  options_.readahead = 2 << 20;
  check_is_decoded_ahead(reader());
}

// semantics: T3
TEST_F(SequentialReads, AreDecodedAheadOfByMoreThreads) {
  options_.workers = 3;
  check_is_decoded_ahead(reader());
}

TEST_F(SequentialReads, AreDecodedAheadOfWhereBlocksAreLarge) {
  options_.new_frames.blocksize = 1 << 20;
  check_is_decoded_ahead(reader());
}

INSTANTIATE_TEST_SUITE_P(Codecs, ReadsAtRandomPlaces, ::testing::Values("lz4", "zstd", "blosclz", "zlib"));

TEST_F(FilesystemReads, WhatLooksDamagedIsLoggedOnceItsStateHasLasted) {
  directory_.write("x.b2frame", Bytes(200, 0x55));
  const auto said = [this] {
    ::testing::internal::CaptureStderr();
    auto found = filesystem_->names().lookup(kRootNode, "x");
    EXPECT_TRUE(found && found->damage);
    if (found) {
      EXPECT_EQ(errno_of(filesystem_->files().open(found->node, O_RDONLY)), EIO);
    }
    return ::testing::internal::GetCapturedStderr();
  };
  // As between two writes of a program that appends to it.
  disk_.keeps_changing = true;
  EXPECT_EQ(said(), "");
  EXPECT_EQ(said(), "");
  disk_.keeps_changing = false;
  let_settle("x");
  EXPECT_NE(said().find("x.b2frame"), std::string::npos);
}

TEST_F(FilesystemReads, WhatIsDamagedHasANodeOnlyIfItCanBeRemoved) {
  directory_.write("x.b2frame", Bytes(200, 0x55));
  let_settle("x");
  const auto writable = filesystem_->names().lookup(kRootNode, "x");
  ASSERT_TRUE(writable);
  EXPECT_TRUE(writable->damage);
  options_.read_only = true;
  remount();
  // As between two writes of a program that appends to it.
  disk_.keeps_changing = true;
  const auto changing = filesystem_->names().lookup(kRootNode, "x");
  ASSERT_TRUE(changing);
  EXPECT_TRUE(changing->damage);
  disk_.keeps_changing = false;
  let_settle("x");
  const auto found = filesystem_->names().lookup(kRootNode, "x");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, codec::ErrorKind::corruption);
}

/// Counts how often the beginning of a frame is read to open it. Looks at the fixed header alone do not count.
class OpenCountingFiles final : public test::ForwardingFiles {
 public:
  codec::Result<std::size_t> pread(frame::OpenFile file, codec::ByteSpan into, frame::FileOffset at) override {
    if (at.value == 0 && into.size() > frame::layout::kFixedHeaderLength) ++opens;
    return ForwardingFiles::pread(file, into, at);
  }
  std::atomic<int> opens{0};
};

TEST_F(FilesystemReads, ADamagedFileThatChangedJustNowIsOpenedAtMostTwentyTimes) {
  OpenCountingFiles counting;
  files_ = &counting;
  remount();
  const test::FrameBuilder builder = test::plain_frame(Bytes(3000, 1), 100);
  Bytes torn = builder.build();
  std::fill_n(torn.begin() + static_cast<std::ptrdiff_t>(97 + builder.chunk_section.size()), 100, 0);
  directory_.write("x.b2frame", torn);
  auto found = filesystem_->names().lookup(kRootNode, "x");
  ASSERT_TRUE(found);
  counting.opens = 0;
  EXPECT_FALSE(filesystem_->files().open(found->node, O_RDONLY));
  EXPECT_GT(counting.opens, 1);
  EXPECT_LE(counting.opens, frame::kOpenAttempts);
  stop();
}

class ReadsOfAFileThatIsTouched : public FilesystemReads {
 protected:
  static constexpr std::size_t kBytes = std::size_t{1} << 20;

  /// What is decoded for a read of the only block, in the middle of which `change` is made, and for two later ones.
  std::uint64_t decoded_for(const std::function<void(const char* path)>& change) {
    remount();
    let_settle("x");
    auto handle = open("x", O_RDONLY);
    Gate gate;
    std::string got;
    disk_.read_gate = &gate;
    std::thread reading([&] { got = read(*handle, 0, kBytes); });
    {
      const OpensAtEnd opens(gate);
      gate.wait_for(1);
      disk_.read_gate = nullptr;
      change((directory_.path() / "x.b2frame").c_str());
    }
    reading.join();
    EXPECT_TRUE(got == text_);
    EXPECT_TRUE(read(*handle, 0, kBytes) == text_);
    let_settle("x");
    EXPECT_TRUE(read(*handle, 0, kBytes) == text_);
    filesystem_->files().release(std::move(handle));
    return filesystem_->statistics().decoding.blocks_decoded;
  }

  std::string text_;
};

TEST_F(ReadsOfAFileThatIsTouched, DecodeWhatIsTheSameOnce) {
  options_.new_frames.chunksize = kBytes;
  options_.new_frames.blocksize = kBytes;
  remount();
  for (int i = 0; text_.size() < kBytes; ++i)
    text_ += std::to_string(i) + " ";
  text_.resize(kBytes);
  auto handle = create("x");
  ASSERT_TRUE(write(*handle, 0, text_));
  ASSERT_TRUE(close(std::move(handle)));
  const std::uint64_t once = decoded_for([](const char*) {});
  EXPECT_GT(once, 0U);
  EXPECT_EQ(decoded_for([](const char* path) { utimensat(AT_FDCWD, path, nullptr, 0); }), once);
  EXPECT_EQ(decoded_for([](const char* path) { chmod(path, 0640); }), once);
  const std::string other = (directory_.path() / "other").string();
  EXPECT_EQ(decoded_for([&other](const char* path) { EXPECT_EQ(link(path, other.c_str()), 0); }), once);
}

TEST_F(FilesystemReads, ChangesInPlaceAreSeenWhateverTheTimesAndTheHeaderAre) {
  const std::string before(3 * 4096, 'a');
  frame_on_disk("x.b2frame", before);
  const std::string path = (directory_.path() / "x.b2frame").string();
  const struct timespec old[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), old, 0), 0);
  let_settle("x");
  auto handle = open("x", O_RDONLY);
  EXPECT_EQ(read(*handle), before);
  const Bytes bytes = test::file_bytes(path);
  const auto chunk = std::search_n(bytes.begin(), bytes.end(), 4096, 'a') - bytes.begin();
  // As a program does that keeps the times of what it writes to.
  const int fd = ::open(path.c_str(), O_WRONLY);
  ASSERT_EQ(pwrite(fd, "b", 1, chunk + 100), 1);
  ::close(fd);
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), old, 0), 0);
  std::string after = before;
  after[100] = 'b';
  EXPECT_EQ(read(*handle), after);
  filesystem_->files().release(std::move(handle));
}

TEST_F(FilesystemReads, ALinkLeadsToWhatItLedToOnDisk) {
  frame_on_disk("alone.b2frame", "the frame");
  link_on_disk("alone.b2frame", "to-alone");
  EXPECT_EQ(link_of("to-alone"), "alone");

  // The short name belongs to another file.
  frame_on_disk("both.b2frame", "the frame");
  directory_.write("both", Bytes{'p', 'l', 'a', 'i', 'n'});
  link_on_disk("both.b2frame", "to-both");
  EXPECT_EQ(link_of("to-both"), "both.b2frame");
  EXPECT_EQ(content(link_of("to-both")), "the frame");

  // A directory is no frame, whatever its name.
  std::filesystem::create_directory(directory_.path() / "directory.b2frame");
  link_on_disk("directory.b2frame", "to-directory");
  EXPECT_EQ(link_of("to-directory"), "directory.b2frame");

  std::filesystem::create_directory(directory_.path() / "d");
  frame_on_disk("d/both.b2frame", "in d");
  link_on_disk("d/both.b2frame", "into-d");
  EXPECT_EQ(link_of("into-d"), "d/both");

  // One that leads nowhere yet will lead to the frame that is made there.
  link_on_disk("later.b2frame", "to-later");
  EXPECT_EQ(link_of("to-later"), "later");
  link_on_disk(".b2frame", "to-suffix");
  EXPECT_EQ(link_of("to-suffix"), ".b2frame");
}

// semantics: O5
TEST_F(FilesystemReads, APipeInThePlaceOfAFileIsNotWaitedFor) {
  directory_.write("x", Bytes{'x'});
  frame_on_disk("y.b2frame", "y");
  const auto x = filesystem_->names().lookup(kRootNode, "x");
  const auto y = filesystem_->names().lookup(kRootNode, "y");
  ASSERT_TRUE(x && y);
  for (const char* name : {"x", "y.b2frame"}) {
    const std::string path = directory_.path() / name;
    std::filesystem::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  }
  EXPECT_FALSE(filesystem_->files().open(x->node, O_RDONLY));
  EXPECT_FALSE(filesystem_->files().open(y->node, O_RDONLY));
  EXPECT_FALSE(filesystem_->extended_attributes().get(x->node, "user.x"));
  EXPECT_FALSE(filesystem_->extended_attributes().get(y->node, "user.blosc2.info"));
}

// semantics: N8
TEST_F(FilesystemReads, NamesMayBeAsLongAsTheDirectoryTakesThem) {
  const std::string longest(255, 'n');
  EXPECT_EQ(errno_of(filesystem_->names().lookup(kRootNode, std::string(247, 'n'))), ENOENT);
  EXPECT_EQ(errno_of(filesystem_->names().lookup(kRootNode, longest)), ENAMETOOLONG) << "statfs says 247";
  ASSERT_TRUE(std::filesystem::create_directory(directory_.path() / longest));
  EXPECT_TRUE(filesystem_->names().lookup(kRootNode, longest)) << "what is there is shown";
  EXPECT_EQ(errno_of(filesystem_->names().lookup(kRootNode, longest + "n")), ENAMETOOLONG);

  // With the suffix that a frame has on disk, no room is left for that of its lock.
  const std::string name(247, 'f');
  auto handle = create(name);
  ASSERT_TRUE(handle);
  ASSERT_TRUE(write(*handle, 0, "text"));
  EXPECT_TRUE(filesystem_->files().sync(*handle, false));
  ASSERT_TRUE(resize(*handle, 0));  // a commit by a new file
  ASSERT_TRUE(write(*handle, 0, "more text"));
  EXPECT_TRUE(close(std::move(handle)));
  remount();
  EXPECT_EQ(content(name), "more text");
  EXPECT_EQ(errno_of(filesystem_->names().create(kRootNode, std::string(248, 'f'), O_RDWR | O_CREAT, 0644, {})),
            ENAMETOOLONG);
}

}  // namespace
}  // namespace cframefs::fs
