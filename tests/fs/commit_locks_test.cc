// Commits beside other programs that change or lock the frame: nothing of theirs is overwritten, and nothing that was
// accepted is lost while the mount lives.
#include <cerrno>
#include <functional>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <sys/file.h>

#include "frame/replacement_file.h"
#include "tests/fs/written_filesystem.h"
#include "tests/support/frame_builder.h"
#include "tests/support/frame_model.h"
#include "tests/support/reading.h"

namespace cframefs::fs {
namespace {

/// Runs `at_create` once, as soon as a commit has made the file that is to take the frame's place.
class InterruptedDisk final : public test::ForwardingFiles {
 public:
  codec::Result<int> create_at(int dir, const std::string& path, int flags, mode_t mode) override {
    auto made = ForwardingFiles::create_at(dir, path, flags, mode);
    if (path.starts_with(frame::kTemporaryPrefix)) run(at_create);
    return made;
  }
  std::function<void()> at_create;

 private:
  static void run(std::function<void()>& what) {
    if (auto once = std::exchange(what, nullptr)) once();
  }
};

template <class Disk>
class WrittenOver : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.source = folder_.path();
    options_.chunksize = 4096;
    options_.commit_interval = 1000;
    filesystem_ = std::make_unique<Filesystem>(disk_, options_);
    ASSERT_TRUE(filesystem_->open_source(false));
    filesystem_->start(kernel_, {});
  }
  void TearDown() override { filesystem_->stop(); }

  std::unique_ptr<FileHandle> create(const std::string& name) {
    auto created = filesystem_->create(kRootNode, name, O_RDWR | O_CREAT, 0644, {});
    EXPECT_TRUE(created) << created.error().reason;
    return created ? std::move(created->handle) : nullptr;
  }
  codec::Result<void> write(FileHandle& handle, std::uint64_t at, const std::string& text) {
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    return filesystem_->write(handle, at, bytes, false);
  }
  /// A frame of one chunk that another program has made.
  static std::vector<std::uint8_t> foreign_frame() { return test::plain_frame(test::pattern(4096, 9), 4096).build(); }

  test::TempDir folder_;
  Disk disk_;
  CountingKernel kernel_;
  MountOptions options_;
  std::unique_ptr<Filesystem> filesystem_;
};

using FirstCommitTest = WrittenOver<InterruptedDisk>;

TEST_F(FirstCommitTest, WhatAnotherProgramAppendsMeanwhileStays) {
  // Items of four bytes: the empty frame is made again with their typesize.
  std::string items;
  for (int i = 0; i < 3000; ++i)
    items += std::string{static_cast<char>(i), static_cast<char>(i / 256), 0, 0};
  auto handle = create("x");
  ASSERT_TRUE(write(*handle, 0, items));
  const auto foreign = foreign_frame();
  bool appended = false;
  disk_.at_create = [&] {
    appended = true;
    folder_.write("x.b2frame", foreign);
  };
  EXPECT_EQ(errno_of(filesystem_->flush(*handle)), ESTALE);
  EXPECT_TRUE(appended) << "the empty frame was not made again";
  EXPECT_TRUE(test::file_bytes(folder_.path() / "x.b2frame") == foreign);
  filesystem_->release(std::move(handle));
}

TEST_F(FirstCommitTest, TheSideCarIsHeldAndItsCounterRaisedBeforeTheFileIsReplaced) {
  std::string items;
  for (int i = 0; i < 3000; ++i)
    items += std::string{static_cast<char>(i), static_cast<char>(i / 256), 0, 0};
  auto handle = create("x");
  folder_.write("x.b2frame.b2lock", std::vector<std::uint8_t>(16));
  ASSERT_TRUE(write(*handle, 0, items));
  bool was_free = true;
  disk_.at_create = [&] {
    const auto side_car = frame::system_files().open_named((folder_.path() / "x.b2frame.b2lock").string(), O_RDWR);
    ASSERT_TRUE(side_car);
    const frame::Descriptor file(frame::system_files(), *side_car);
    const auto taken = frame::system_files().try_lock(file.fd(), LOCK_EX);
    was_free = taken && *taken;
    EXPECT_EQ(test::file_bytes(folder_.path() / "x.b2frame.b2lock")[8], 1);
  };
  EXPECT_TRUE(filesystem_->flush(*handle));
  EXPECT_FALSE(was_free);
  filesystem_->release(std::move(handle));
}

}  // namespace
}  // namespace cframefs::fs
