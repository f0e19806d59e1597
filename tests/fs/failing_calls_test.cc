// Each call that changes a file fails once, or for good, while programs write a frame through the mount: what was
// accepted is read as long as the mount lives, and the disk holds an old state or the new one, whole.
#include <algorithm>
#include <filesystem>
#include <tuple>

#include <gtest/gtest.h>

#include "frame/cframe/sparse_frame.h"
#include "fs/filesystem.h"
#include "tests/fs/silent_kernel.h"
#include "tests/support/failing_files.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/frame_builder.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"

namespace cframefs::fs {
namespace {

using test::Bytes;
using test::FailingFiles;

/// No power is cut here: what a sync does to a disk is not waited for.
class QuickFiles final : public test::ForwardingFiles {
 public:
  codec::Result<void> sync(frame::OpenFile /*file*/, bool /*data_only*/) override { return {}; }
};

Bytes pattern(std::size_t size, unsigned seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 256 * seed + seed);
  return bytes;
}

/// A mount of one frame, over file operations that fail.
class FailingMount {
 public:
  FailingMount(const std::string& source, FailingFiles& files) : files_(files) {
    MountOptions options;
    options.source = source;
    options.new_frames.chunksize = 4096;
    options.commit_interval = 1000;
    options.lock_timeout = 0;
    filesystem_ = std::make_unique<Filesystem>(files_, options);
    EXPECT_TRUE(filesystem_->open_source(false));
    filesystem_->start(kernel_);
  }
  ~FailingMount() { end(); }
  FailingMount(const FailingMount&) = delete;
  FailingMount& operator=(const FailingMount&) = delete;

  void end() {
    if (filesystem_) filesystem_->stop();
    filesystem_.reset();
  }
  Filesystem& filesystem() { return *filesystem_; }

  std::unique_ptr<FileHandle> open(int flags) {
    auto found = filesystem_->names().lookup(kRootNode, "x");
    if (!found) return nullptr;
    auto handle = filesystem_->files().open(found->node, flags);
    return handle ? std::move(*handle) : nullptr;
  }
  std::optional<Bytes> read(FileHandle& handle) {
    Reply reply;
    if (!filesystem_->files().read(handle, 0, 1 << 20, reply)) return std::nullopt;
    Bytes bytes(reply.size());
    reply.copy_to(bytes.data());
    return bytes;
  }
  std::uint64_t size(FileHandle& handle) {
    const auto attributes = filesystem_->attributes().of(handle.node->id, &handle);
    return attributes ? static_cast<std::uint64_t>(attributes->status.st_size) : ~std::uint64_t{0};
  }

 private:
  FailingFiles& files_;
  SilentKernel kernel_;
  std::unique_ptr<Filesystem> filesystem_;
};

class FailingCalls : public ::testing::TestWithParam<std::tuple<FailingFiles::How, bool>> {
 protected:
  static constexpr std::size_t kSize = 20'000;
  static constexpr std::size_t kChunkBytes = 4096;

  Bytes on_disk() const {
    const auto opened = frame::open_path(frame::system_files(), directory_.path() / "x.b2frame", nullptr);
    EXPECT_TRUE(opened) << opened.error().reason;
    if (!opened) return {};
    const auto view = frame::make_view(*opened, frame::ArrayForm::flat, false);
    EXPECT_TRUE(view);
    const auto bytes = test::read_range(**view, 0, (*view)->size());
    EXPECT_TRUE(bytes) << bytes.error().reason;
    return bytes.value_or(Bytes());
  }

  void make_frame(bool sparse) const {
    std::filesystem::remove_all(directory_.path() / "x.b2frame");
    if (sparse) std::filesystem::create_directory(directory_.path() / "x.b2frame");
    const Bytes content = pattern(kSize, 1);
    if (!sparse) {
      directory_.write("x.b2frame", test::plain_frame(content, static_cast<std::int32_t>(kChunkBytes)).build());
      return;
    }
    for (const auto& [name, bytes] : test::sparse_frame(content, static_cast<std::int32_t>(kChunkBytes)))
      directory_.write("x.b2frame/" + name, bytes);
  }

  /// Overwrites in two places, appends and cuts; `model` follows what was accepted. Returns what the disk may hold: the
  /// states at which programs have it committed.
  static std::vector<Bytes> change(FailingMount& mount, FileHandle& handle, Bytes& model) {
    std::vector<Bytes> states = {model};
    const auto put = [&](std::uint64_t at, const Bytes& bytes) {
      if (!mount.filesystem().files().write(handle, at, bytes, false)) return;
      model.resize(std::max<std::size_t>(model.size(), at + bytes.size()));
      std::copy(bytes.begin(), bytes.end(), model.begin() + static_cast<std::ptrdiff_t>(at));
    };
    put(100, pattern(50, 2));
    put(4096, pattern(4096, 3));
    states.push_back(model);
    static_cast<void>(mount.filesystem().files().flush(handle));
    put(kSize, pattern(9'000, 4));
    states.push_back(model);
    static_cast<void>(mount.filesystem().files().sync(handle, false));
    AttributeChanges cut;
    cut.size = 15'000;
    if (mount.filesystem().attributes().change(handle.node->id, &handle, cut)) model.resize(15'000);
    states.push_back(model);
    static_cast<void>(mount.filesystem().files().flush(handle));
    return states;
  }

  test::TempDir directory_;
};

TEST_P(FailingCalls, WhatWasAcceptedIsReadAndReachesTheDiskWholeOrNotAtAll) {
  const auto [how, sparse] = GetParam();
  const bool goes_on = how == FailingFiles::for_good || how == FailingFiles::cut_short_for_good;
  int faults = 0;
  for (std::int64_t number = 1;; ++number) {
    SCOPED_TRACE("call " + std::to_string(number));
    make_frame(sparse);
    Bytes model = pattern(kSize, 1);
    QuickFiles quick;
    FailingFiles files(quick);
    files.count(FailingFiles::changes);
    FailingMount mount(directory_.path(), files);
    auto handle = mount.open(O_RDWR);
    ASSERT_TRUE(handle);
    files.fail(number, how == FailingFiles::once ? EIO : ENOSPC, how);
    const std::vector<Bytes> states = change(mount, *handle, model);
    // The mount shows what it has accepted: to the handle, to stat, and to a program that opens the file now.
    EXPECT_TRUE(mount.read(*handle) == model);
    EXPECT_EQ(mount.size(*handle), model.size());
    mount.filesystem().files().release(std::move(handle));
    if (auto reader = mount.open(O_RDONLY)) {
      EXPECT_TRUE(mount.read(*reader) == model);
      EXPECT_EQ(mount.size(*reader), model.size());
      mount.filesystem().files().release(std::move(reader));
    } else {
      ADD_FAILURE() << "it does not open";
    }
    const auto failed = files.failed();
    if (!goes_on) files.stop();
    mount.end();
    files.stop();
    const Bytes stored = on_disk();
    if (!goes_on) {
      EXPECT_TRUE(stored == model) << "what was accepted is not on the disk";
    } else {
      EXPECT_NE(std::find(states.begin(), states.end(), stored), states.end())
          << "neither an old state nor the new one";
    }
    if (HasFailure()) {
      ADD_FAILURE() << (failed ? static_cast<int>(failed->kind) : -1) << " " << (failed ? failed->path : "");
      return;
    }
    if (!failed) break;
    ++faults;
  }
  EXPECT_GT(faults, 10);
}

INSTANTIATE_TEST_SUITE_P(Faults, FailingCalls,
                         ::testing::Combine(::testing::Values(FailingFiles::once, FailingFiles::for_good,
                                                              FailingFiles::cut_short,
                                                              FailingFiles::cut_short_for_good),
                                            ::testing::Bool()));

}  // namespace
}  // namespace cframefs::fs
