// Reads that go on while one writer of a frame closes it and the next one opens it, or while another program writes.
#include <limits>

#include "tests/fs/written_filesystem.h"

namespace cframefs::fs {
namespace {

class ReadsBesideWriters : public WrittenFilesystem {
 protected:
  static constexpr std::size_t kSize = 4000;
  // Far more than the states that a read tries.
  static constexpr int kChanges = 300;

  void SetUp() override {
    options_.cache_size = 0;  // what is read comes from the disk
    WrittenFilesystem::SetUp();
  }
  void TearDown() override {
    disk_.before_read = nullptr;
    if (writer_) filesystem_->files().release(std::move(writer_));
    if (reader_) filesystem_->files().release(std::move(reader_));
    WrittenFilesystem::TearDown();
  }

  /// Makes the frame, and opens it for reading.
  void make(const std::string& name) {
    name_ = name;
    writer_ = create(name);
    ASSERT_TRUE(writer_);
    fill('a');
    reader_ = open(name, O_RDONLY);
    ASSERT_TRUE(reader_);
  }
  void fill(char letter) {
    EXPECT_TRUE(write(*writer_, 0, std::string(kSize, letter)));
    EXPECT_TRUE(filesystem_->files().sync(*writer_, false));
  }
  /// Runs `change` before each of the first kChanges reads from the disk, but for those that it makes itself.
  void before_reads(const std::function<void(char letter)>& change) {
    disk_.before_read = [this, change] {
      if (is_changing_ || changes_ == kChanges) return;
      is_changing_ = true;
      ++changes_;
      change(static_cast<char>('a' + changes_ % 26));
      is_changing_ = false;
    };
  }
  void expect_one_state() {
    const std::string text = read(*reader_);
    EXPECT_GT(changes_, 0);
    ASSERT_EQ(text.size(), kSize);
    EXPECT_EQ(text, std::string(kSize, text[0]));
  }

  std::string name_;
  std::unique_ptr<FileHandle> writer_;
  std::unique_ptr<FileHandle> reader_;
  int changes_ = 0;
  bool is_changing_ = false;
};

TEST_F(ReadsBesideWriters, AReadThatBeganBesideOneWriterGoesOnBesideTheNext) {
  make("x");
  before_reads([this](char letter) {
    filesystem_->files().release(std::move(writer_));
    writer_ = open(name_);
    fill(letter);
  });
  expect_one_state();
}

TEST_F(ReadsBesideWriters, AReadThatBeganWithoutAWriterOutlastsManyThatComeAndGo) {
  make("x");
  filesystem_->files().release(std::move(writer_));
  before_reads([this](char letter) {
    writer_ = open(name_);
    fill(letter);
    filesystem_->files().release(std::move(writer_));
  });
  expect_one_state();
}

/// One thread changes times while another one opens, writes and closes again and again.
TEST_F(ReadsBesideWriters, AChangeOfTimesThatFoundAFormerWriterIsNoChangeByAnotherProgramForTheNext) {
  make("x");
  std::atomic<bool> is_over{false};
  const NodeId node = reader_->node->id;
  std::thread times([&] {
    AttributeChanges changes;
    for (std::int64_t second = 1; !is_over; ++second) {
      const timespec time{static_cast<time_t>(second), 0};
      changes.times = {time, time};
      EXPECT_TRUE(filesystem_->attributes().change(node, nullptr, changes));
    }
  });
  for (int i = 0; i < 2000; ++i) {
    filesystem_->files().release(std::move(writer_));
    writer_ = open(name_);
    const auto written = write(*writer_, 0, std::to_string(i) + " ");
    EXPECT_TRUE(written) << i << ": " << written.error().reason;
    const auto synced = filesystem_->files().sync(*writer_, false);
    EXPECT_TRUE(synced) << i << ": " << synced.error().reason;
    if (HasFailure()) break;
  }
  is_over = true;
  times.join();
}

/// What the mount itself makes shorter, the kernel knows to be shorter: no read of its end may fail.
class ReadsBesideTruncations : public ReadsBesideWriters {
 protected:
  /// Makes the frame, and leaves it without a writer.
  void make_closed(const std::string& name) {
    make(name);
    EXPECT_TRUE(filesystem_->attributes().of(reader_->node->id, nullptr));
    filesystem_->files().release(std::move(writer_));
  }
  /// Reads as for the kernel's pages.
  codec::Result<void> read_pages(std::uint64_t at, std::size_t length) {
    Reply reply;
    return filesystem_->files().read(*reader_, at, length, reply, true);
  }
};

TEST_F(ReadsBesideTruncations, NoReadFailsWhileAnOpenTruncates) {
  make_closed("x");
  std::atomic<bool> is_over{false};
  std::thread reads([&] {
    while (!is_over) {
      const auto done = read_pages(0, kSize);
      EXPECT_TRUE(done) << done.error().reason;
      if (!done) break;
    }
  });
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    writer_ = open(name_, O_RDWR | O_TRUNC);
    if (!writer_) break;  // open() has failed the test
    EXPECT_TRUE(write(*writer_, 0, std::string(kSize, 'b')));
    // The kernel asks for the size.
    EXPECT_TRUE(filesystem_->attributes().of(reader_->node->id, nullptr));
    filesystem_->files().release(std::move(writer_));
  }
  is_over = true;
  reads.join();
}

TEST_F(ReadsBesideTruncations, ALookThatATruncationOvertakesTellsNoSize) {
  make_closed("x");
  const NodeId node = reader_->node->id;
  // From here on the look takes the size from the one before, and not from a header that is truncated by then.
  let_settle(name_);
  EXPECT_TRUE(filesystem_->attributes().of(node, nullptr));
  bool is_truncated = false;
  disk_.after_status = [&] {
    if (std::exchange(is_truncated, true)) return;
    AttributeChanges changes;
    changes.size = 100;
    EXPECT_TRUE(filesystem_->attributes().change(node, nullptr, changes));
  };
  const auto late = filesystem_->attributes().of(node, nullptr);
  disk_.after_status = nullptr;
  ASSERT_TRUE(late);
  EXPECT_TRUE(is_truncated);
  EXPECT_EQ(late->status.st_size, static_cast<off_t>(kSize));
  EXPECT_TRUE(read_pages(0, kSize));
}

TEST_F(ReadsBesideTruncations, ATruncationThatFailsTellsNoSize) {
  make_closed("x");
  AttributeChanges changes;
  changes.size = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(filesystem_->attributes().change(reader_->node->id, nullptr, changes));
  EXPECT_TRUE(read_pages(0, kSize + 100));
}

/// Damages what the next read fetches from behind the start of a file and, unless the damage stays, cures it after that
/// read, as a program that writes a chunk in two steps.
class TearingFiles final : public test::ForwardingFiles {
 public:
  codec::Result<std::size_t> pread(frame::OpenFile file, codec::ByteSpan into, frame::FileOffset at) override {
    if (!tears || at.value == 0) return ForwardingFiles::pread(file, into, at);
    tears = false;
    ++torn_reads;
    const auto whole = test::file_bytes(path);
    auto torn = whole;
    std::fill_n(torn.begin() + static_cast<std::ptrdiff_t>(at.value), 64, 0x7f);
    overwrite(torn);
    auto got = ForwardingFiles::pread(file, into, at);
    if (!stays) overwrite(whole);
    return got;
  }

  std::string path;
  bool tears = false;
  bool stays = false;
  int torn_reads = 0;

 private:
  void overwrite(const std::vector<std::uint8_t>& bytes) const {
    const int fd = ::open(path.c_str(), O_WRONLY);
    EXPECT_EQ(::pwrite(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    ::close(fd);
  }
};

TEST_F(WrittenFilesystem, OnlyDamageThatStaysIsLogged) {
  TearingFiles tearing;
  files_ = &tearing;
  remount();
  std::string text;
  for (int i = 0; text.size() < 4096; ++i)
    text += std::to_string(i) + " ";
  text.resize(4096);
  auto written = create("x");
  ASSERT_TRUE(write(*written, 0, text));
  ASSERT_TRUE(close(std::move(written)));
  options_.cache_size = 0;  // each read decodes again
  remount();
  let_settle("x");
  tearing.path = (directory_.path() / "x.b2frame").string();
  auto handle = open("x", O_RDONLY);
  EXPECT_EQ(read(*handle), text);  // keeps the reader of the chunk: the next read fetches the block alone

  tearing.tears = true;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(read(*handle), text);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(tearing.torn_reads, 1);
  EXPECT_EQ(filesystem_->statistics().backing_changes, 1U);

  let_settle("x");
  EXPECT_EQ(read(*handle), text);
  tearing.tears = true;
  tearing.stays = true;
  ::testing::internal::CaptureStderr();
  // The first read finds that the file has changed, and then the damage; the second one the damage.
  for (int i = 0; i < 2; ++i) {
    Reply reply;
    EXPECT_EQ(errno_of(filesystem_->files().read(*handle, 0, text.size(), reply)), EIO);
  }
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("x.b2frame"), std::string::npos);
  EXPECT_EQ(tearing.torn_reads, 2);
  filesystem_->files().release(std::move(handle));
  stop();
}

// semantics: F6
TEST_F(WrittenFilesystem, AFrameThatKeepsChangingIsStale) {
  for (const char* name : {"x", "y"}) {
    auto handle = create(name);
    ASSERT_TRUE(write(*handle, 0, std::string(5'000, name[0])));
    ASSERT_TRUE(close(std::move(handle)));
  }
  auto reader = open("x", O_RDONLY);
  EXPECT_EQ(read(*reader), std::string(5'000, 'x'));
  disk_.keeps_changing = true;
  Reply reply;
  EXPECT_EQ(errno_of(filesystem_->files().read(*reader, 0, 4'096, reply)), ESTALE);
  EXPECT_EQ(reply.size(), 0U);
  disk_.keeps_changing = false;
  EXPECT_EQ(read(*reader), std::string(5'000, 'x'));
  filesystem_->files().release(std::move(reader));
  // Another file takes the name between the kernel's look-up and its request.
  remount();
  const auto found = filesystem_->names().lookup(kRootNode, "x");
  ASSERT_TRUE(found);
  std::filesystem::rename(directory_.path() / "y.b2frame", directory_.path() / "x.b2frame");
  EXPECT_EQ(errno_of(filesystem_->files().open(found->node, O_RDONLY)), ESTALE);
  EXPECT_EQ(content("x"), std::string(5'000, 'y'));
}

}  // namespace
}  // namespace cframefs::fs
