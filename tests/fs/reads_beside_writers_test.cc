// Reads that go on while one writer of a frame closes it and the next one opens it.
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
      changes.times = {timespec{second, 0}, timespec{second, 0}};
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

}  // namespace
}  // namespace cframefs::fs
