// What the filesystem object has the kernel drop and keep, and what it tells of files that it cannot look into.
#include <filesystem>
#include <fstream>
#include <future>
#include <tuple>

#include "tests/fs/written_filesystem.h"

namespace cframefs::fs {
namespace {

/// Runs a hook inside the next write, after the bytes are in the file and before the caller knows; refuses opens.
class HookedFiles final : public test::ForwardingFiles {
 public:
  codec::Result<void> pwrite(frame::OpenFile file, codec::ByteView from, frame::FileOffset at) override {
    auto done = ForwardingFiles::pwrite(file, from, at);
    if (auto hook = std::exchange(in_write, nullptr)) hook();
    return done;
  }
  codec::Result<frame::OpenFile> open_at(frame::OpenFile dir, const std::string& path, int flags) override {
    if (open_error != 0 && path != ".") return codec::io_error(open_error, "open");
    return ForwardingFiles::open_at(dir, path, flags);
  }
  codec::Result<std::size_t> pread(frame::OpenFile file, codec::ByteSpan into, frame::FileOffset at) override {
    if (read_error != 0) return codec::io_error(read_error, "pread");
    return ForwardingFiles::pread(file, into, at);
  }

  std::function<void()> in_write;
  std::atomic<int> open_error{0};
  std::atomic<int> read_error{0};
};

class PageCoherence : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.source = directory_.path();
    options_.names = Names::keep;
    options_.commit_interval = 1000;
    start();
  }
  void TearDown() override {
    if (filesystem_) filesystem_->stop();
  }
  void start() {
    filesystem_ = std::make_unique<Filesystem>(files_, options_);
    ASSERT_TRUE(filesystem_->open_source(false));
    filesystem_->start(kernel_);
  }
  std::unique_ptr<FileHandle> make(const std::string& name) {
    auto created = filesystem_->names().create(kRootNode, name, O_RDWR | O_CREAT, 0644, {});
    EXPECT_TRUE(created) << created.error().reason;
    return created ? std::move(created->handle) : nullptr;
  }
  codec::Result<void> write(FileHandle& handle, std::uint64_t at, const std::string& text) {
    return filesystem_->files().write(handle, at, std::vector<std::uint8_t>(text.begin(), text.end()), false);
  }
  codec::Result<Attributes> stat(const std::string& name) {
    auto found = filesystem_->names().lookup(kRootNode, name);
    if (!found) return found;
    auto attributes = filesystem_->attributes().of(found->node, nullptr);
    filesystem_->names().forget(found->node, 1);
    return attributes;
  }
  /// The watcher's events of what was done until now have been dealt with.
  void let_watcher_report() {
    const int before = kernel_.nodes;
    const std::string name = "mark" + std::to_string(marks_++);
    EXPECT_TRUE(filesystem_->names().lookup(kRootNode, "plain"));
    std::ofstream(directory_.path() / name) << "x";
    for (int i = 0; i < 2000 && kernel_.nodes == before; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_GT(kernel_.nodes, before);
  }

  test::TempDir directory_;
  HookedFiles files_;
  CountingKernel kernel_;
  MountOptions options_;
  std::unique_ptr<Filesystem> filesystem_;
  int marks_ = 0;
};

TEST_F(PageCoherence, AStatInTheMiddleOfAnOwnWriteDropsNoPages) {
  auto writer = make("plain");
  ASSERT_TRUE(write(*writer, 0, std::string(4096, 'a')));
  ASSERT_TRUE(stat("plain"));
  const NodeId node = writer->node->id;
  files_.in_write = [&] { EXPECT_TRUE(filesystem_->attributes().of(node, nullptr)); };
  ASSERT_TRUE(write(*writer, 0, std::string(4096, 'b')));
  ASSERT_TRUE(stat("plain"));
  EXPECT_EQ(kernel_.files, 0);
  EXPECT_EQ(writer->node->pages.pages(), PageCacheState::Pages::held);
  filesystem_->files().release(std::move(writer));
}

TEST_F(PageCoherence, AnOpenInTheMiddleOfAnOwnWriteKeepsPages) {
  auto writer = make("plain");
  ASSERT_TRUE(write(*writer, 0, std::string(4096, 'a')));
  const NodeId node = writer->node->id;
  std::future<bool> kept;
  files_.in_write = [&] {
    kept = std::async(std::launch::async, [&] {
      auto reader = filesystem_->files().open(node, O_RDONLY);
      const bool keeps = reader && (*reader)->keep_pages;
      if (reader) filesystem_->files().release(std::move(*reader));
      return keeps;
    });
    // Enough for an open that does not wait for the write to take the state that the write is about to leave.
    kept.wait_for(std::chrono::milliseconds(50));
  };
  ASSERT_TRUE(write(*writer, 0, std::string(4096, 'b')));
  EXPECT_TRUE(kept.get());
  auto reader = filesystem_->files().open(node, O_RDONLY);
  ASSERT_TRUE(reader);
  EXPECT_TRUE((*reader)->keep_pages);
  filesystem_->files().release(std::move(*reader));
  filesystem_->files().release(std::move(writer));
}

TEST_F(PageCoherence, TheWatcherKnowsOwnWritesOfPassedThroughFiles) {
  auto writer = make("plain");
  ASSERT_TRUE(stat("plain"));
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(write(*writer, 0, std::string(4096, 'a')));
  let_watcher_report();
  EXPECT_EQ(writer->node->pages.pages(), PageCacheState::Pages::held);
  filesystem_->files().release(std::move(writer));
}

TEST_F(PageCoherence, AChangeBehindAWriterIsFollowedByADropAfterItsWrites) {
  auto writer = make("plain");
  ASSERT_TRUE(write(*writer, 0, std::string(4096, 'a')));
  ASSERT_TRUE(stat("plain"));
  std::ofstream(directory_.path() / "plain", std::ios::in | std::ios::out) << "behind";
  let_watcher_report();
  const int before = kernel_.files;
  EXPECT_GT(before, 0);
  ASSERT_TRUE(write(*writer, 100, "x"));
  for (int i = 0; i < 2000 && kernel_.files == before; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GT(kernel_.files, before);
  filesystem_->files().release(std::move(writer));
}

// ---- what cannot be looked into ----

class Unreadable : public PageCoherence, public ::testing::WithParamInterface<std::tuple<int, Detect>> {
 protected:
  void SetUp() override {
    options_.detect = std::get<1>(GetParam());
    PageCoherence::SetUp();
    auto file = make("x.b2frame");
    ASSERT_TRUE(write(*file, 0, std::string(5000, 'f')));
    ASSERT_TRUE(filesystem_->files().flush(*file));
    filesystem_->files().release(std::move(file));
    filesystem_->stop();
    start();  // so that nothing of the file is known
  }
};

// semantics: S7
TEST_P(Unreadable, IsTheAnswerToOneCall) {
  const int why = std::get<0>(GetParam());
  files_.open_error = why;
  EXPECT_EQ(errno_of(stat("x.b2frame")), why);
  files_.open_error = 0;
  files_.read_error = why;
  EXPECT_EQ(errno_of(stat("x.b2frame")), why);
  files_.read_error = 0;
  auto right = stat("x.b2frame");
  ASSERT_TRUE(right) << right.error().reason;
  EXPECT_EQ(right->status.st_size, 5000);
}

INSTANTIATE_TEST_SUITE_P(Errors, Unreadable,
                         ::testing::Combine(::testing::Values(EMFILE, ENFILE, ENOMEM, EIO),
                                            ::testing::Values(Detect::suffix, Detect::content)));

TEST_F(PageCoherence, AFrameThatCannotBeOpenedHasANameAndNoSize) {
  for (const std::string& content : {std::string("no frame at all"), std::string(200, '\0')}) {
    std::ofstream(directory_.path() / "x.b2frame", std::ios::trunc) << content;
    auto found = filesystem_->names().lookup(kRootNode, "x.b2frame");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->status.st_size, static_cast<off_t>(content.size()));
    EXPECT_EQ(errno_of(filesystem_->attributes().of(found->node, nullptr)), EIO);
    EXPECT_EQ(errno_of(filesystem_->files().open(found->node)), EIO);
    EXPECT_TRUE(filesystem_->names().remove(kRootNode, "x.b2frame", false));
  }
}

TEST_F(PageCoherence, AFrameThatIsEmptyByItsHeaderMustOpen) {
  auto file = make("x.b2frame");
  ASSERT_TRUE(file);
  filesystem_->files().release(std::move(file));
  EXPECT_TRUE(stat("x.b2frame"));
  // The trailer is gone: the header says 0 bytes, and the frame cannot be opened.
  const auto length = std::filesystem::file_size(directory_.path() / "x.b2frame");
  std::filesystem::resize_file(directory_.path() / "x.b2frame", length - 10);
  EXPECT_EQ(errno_of(stat("x.b2frame")), EIO);
}

TEST_F(PageCoherence, TheModeOfADamagedFrameCanBeChanged) {
  std::ofstream(directory_.path() / "x.b2frame") << "no frame at all";
  auto found = filesystem_->names().lookup(kRootNode, "x.b2frame");
  ASSERT_TRUE(found);
  AttributeChanges changes;
  changes.mode = 0600;
  EXPECT_TRUE(filesystem_->attributes().change(found->node, nullptr, changes));
}

}  // namespace
}  // namespace cframefs::fs
