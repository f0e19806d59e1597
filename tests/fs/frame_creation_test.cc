// What creating a frame takes of system calls, and how the new file gets its name.
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "tests/fs/written_filesystem.h"
#include "tests/support/frame_builder.h"

namespace cframefs::fs {
namespace {

/// Counts what the test's own thread asks; the watcher's thread asks, too.
class CountedFiles final : public test::ForwardingFiles {
 public:
  codec::Result<frame::OpenFile> open_at(frame::OpenFile dir, const std::string& path, int flags) override {
    count(opens);
    return ForwardingFiles::open_at(dir, path, flags);
  }
  codec::Result<frame::OpenFile> create_at(frame::OpenFile dir, const std::string& path, int flags,
                                           mode_t mode) override {
    const bool is_unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    if (is_unnamed) ++unnamed;
    if (is_unnamed && !has_unnamed) return codec::io_error(EOPNOTSUPP, "create");
    if (is_unnamed && lacks_descriptors) return codec::io_error(EMFILE, "create");
    count(opens);
    return ForwardingFiles::create_at(dir, path, flags, mode);
  }
  codec::Result<frame::OpenFile> reopen(frame::OpenFile file, int flags) override {
    count(opens);
    return ForwardingFiles::reopen(file, flags);
  }
  codec::Result<struct stat> status_at(frame::OpenFile dir, const std::string& path) override {
    count(looks);
    return ForwardingFiles::status_at(dir, path);
  }
  codec::Result<struct stat> status(frame::OpenFile file) override {
    count(statuses);
    return ForwardingFiles::status(file);
  }
  codec::Result<std::size_t> pread(frame::OpenFile file, codec::ByteSpan into, frame::FileOffset at) override {
    count(reads);
    return ForwardingFiles::pread(file, into, at);
  }
  codec::Result<std::string> get_attribute(frame::OpenFile file, const std::string& name) override {
    count(attributes);
    return ForwardingFiles::get_attribute(file, name);
  }
  codec::Result<void> rename_at(frame::OpenFile from_dir, const std::string& from, frame::OpenFile to_dir,
                                const std::string& to, unsigned flags) override {
    auto done = ForwardingFiles::rename_at(from_dir, from, to_dir, to, flags);
    if (after_named) after_named();
    return done;
  }
  codec::Result<void> link_at(frame::OpenFile file, frame::OpenFile to_dir, const std::string& to) override {
    if (before_link) before_link();
    auto done = has_links ? ForwardingFiles::link_at(file, to_dir, to) : codec::io_error(EPERM, "link");
    if (done && after_named) after_named();
    return done;
  }
  void begin() { opens = looks = statuses = reads = attributes = 0; }

  int opens = 0;
  int looks = 0;
  int statuses = 0;
  int reads = 0;
  int attributes = 0;
  int unnamed = 0;  // files without a name that were asked for
  bool has_unnamed = true;
  bool lacks_descriptors = false;  // for a file without a name
  bool has_links = true;
  std::function<void()> before_link;
  std::function<void()> after_named;  // by a rename or a link

 private:
  void count(int& calls) const {
    if (std::this_thread::get_id() == asking_) ++calls;
  }
  const std::thread::id asking_ = std::this_thread::get_id();
};

/// The entries of a directory whose content changes.
class ChangedNames {
 public:
  explicit ChangedNames(const std::filesystem::path& directory) {
    EXPECT_GE(::inotify_add_watch(inotify_, directory.c_str(), IN_MODIFY), 0);
  }
  ChangedNames(const ChangedNames&) = delete;
  ChangedNames& operator=(const ChangedNames&) = delete;
  ~ChangedNames() { ::close(inotify_); }

  /// Since the last call.
  std::set<std::string> take() const {
    std::set<std::string> names;
    std::array<char, 65536> events{};
    const ssize_t length = ::read(inotify_, events.data(), events.size());
    for (std::size_t at = 0; static_cast<ssize_t>(at) < length;) {
      inotify_event event{};
      std::memcpy(&event, &events[at], sizeof event);
      names.insert(&events[at + sizeof event]);
      at += sizeof event + event.len;
    }
    return names;
  }

 private:
  const int inotify_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
};

class FrameCreation : public WrittenFilesystem {
 protected:
  using Listing = std::vector<std::string>;

  void SetUp() override {
    files_ = &counted_;
    WrittenFilesystem::SetUp();
  }
  void make(const std::string& name, const std::string& text) {
    auto handle = create(name);
    ASSERT_TRUE(write(*handle, 0, text));
    ASSERT_TRUE(close(std::move(handle)));
  }
  /// Looks for missing names until the root directory is listed.
  void list_root() {
    make("x", "text");
    for (int i = 0; i < 100; ++i)
      EXPECT_EQ(node_of("absent" + std::to_string(i)), 0U);
  }
  CountedFiles counted_;
};

TEST_F(FrameCreation, AFrameIsMadeAndOpenedByItsNameOnce) {
  make("before", "text");
  counted_.begin();
  auto made = filesystem_->names().create(kRootNode, "x", O_WRONLY | O_CREAT, 0644, {});
  ASSERT_TRUE(made);
  EXPECT_EQ(counted_.opens, 2);
  // The names on disk that would show as "x", and the new name once it is written.
  EXPECT_EQ(counted_.looks, 9 + 1);
  ASSERT_TRUE(write(*made->handle, 0, "text"));
  ASSERT_TRUE(close(std::move(made->handle)));
  EXPECT_EQ(counted_.opens, 3);  // looks for a lock file
  EXPECT_EQ(content("x"), "text");
}

TEST_F(FrameCreation, NamesThatAWatchedDirectoryLacksAreNotLookedFor) {
  list_root();
  counted_.looks = 0;
  EXPECT_EQ(node_of("absent"), 0U);
  EXPECT_EQ(counted_.looks, 0);
  // A frame is found at once among the names that it could have.
  EXPECT_NE(node_of("x"), 0U);
  EXPECT_EQ(counted_.looks, 2);
  // Another program makes the file: it is there for the next look-up.
  directory_.write("absent.b2frame", {});
  EXPECT_NE(node_of("absent"), 0U);
  ASSERT_EQ(::unlink((directory_.path() / "absent.b2frame").c_str()), 0);
  EXPECT_EQ(node_of("absent"), 0U);
}

TEST_F(FrameCreation, AFrameThatTheMountHasWrittenIsNotReadAgain) {
  list_root();
  counted_.begin();
  auto made = filesystem_->names().create(kRootNode, "y", O_WRONLY | O_CREAT, 0666, {::getuid(), ::getgid(), 0, 022});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->attributes.status.st_mode & 07777U, 0644U);
  EXPECT_EQ(counted_.reads, 0);
  EXPECT_EQ(counted_.attributes, 0) << "the system applies the umask, or a default ACL";
  // The file before it has its name, as its name shows it, and as what the writer takes over.
  EXPECT_EQ(counted_.statuses, 4);
  ASSERT_TRUE(write(*made->handle, 0, "text"));
  counted_.begin();
  ASSERT_TRUE(filesystem_->files().flush(*made->handle));
  // The header before the commit, before the switch, and once the new version is known; the new state as a reader finds
  // it.
  EXPECT_EQ(counted_.reads, 4);
  EXPECT_EQ(counted_.looks, 2) << "whether the name still is that of the file";
  EXPECT_EQ(counted_.opens, 0) << "the directory is known to have no lock file";
  filesystem_->files().release(std::move(made->handle));
  EXPECT_EQ(content("y"), "text");
}

TEST_F(FrameCreation, AFrameThatAnotherProgramChangesOnceItHasItsNameIsReadAgain) {
  make("theirs", "their text");
  const auto theirs = test::file_bytes(directory_.path() / "theirs.b2frame");
  for (const std::string name : {"unnamed", "temporary"}) {
    SCOPED_TRACE(name);
    counted_.has_unnamed = name == "unnamed";
    counted_.after_named = [&] { directory_.write(name + ".b2frame", theirs); };
    auto handle = create(name);
    counted_.after_named = nullptr;
    ASSERT_NE(handle, nullptr);
    EXPECT_EQ(read(*handle), "their text");
    ASSERT_TRUE(write(*handle, 0, "YOUR"));
    ASSERT_TRUE(close(std::move(handle)));
    EXPECT_EQ(content(name), "YOURr text");
  }
}

// A program that is killed in between leaves nothing.
TEST_F(FrameCreation, ANewFrameHasNoNameUntilItIsComplete) {
  const int probe = ::open(directory_.path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (probe < 0 && errno == EOPNOTSUPP) GTEST_SKIP() << "no files without names on this filesystem";
  ::close(probe);
  int links = 0;
  counted_.before_link = [&] {
    ++links;
    EXPECT_EQ(on_disk(), Listing());
  };
  auto handle = create("x");
  counted_.before_link = nullptr;
  ASSERT_NE(handle, nullptr);
  EXPECT_EQ(links, 1);
  EXPECT_EQ(counted_.unnamed, 1);
  EXPECT_EQ(on_disk(), Listing{"x.b2frame"});
  ASSERT_TRUE(close(std::move(handle)));
}

// A second mount of the source goes by these names, as each program does that watches a directory.
TEST_F(FrameCreation, TheSystemReportsWritesToANewFrameByItsName) {
  for (const mode_t mode : {0644U, 0444U, 0200U}) {
    SCOPED_TRACE(mode);
    const std::string name = "x" + std::to_string(mode);
    auto made = filesystem_->names().create(kRootNode, name, O_WRONLY | O_CREAT, mode, {});
    ASSERT_TRUE(made);
    EXPECT_EQ(made->attributes.status.st_mode & 07777U, mode);
    const ChangedNames changed(directory_.path());
    ASSERT_TRUE(write(*made->handle, 0, "text"));
    ASSERT_TRUE(close(std::move(made->handle)));
    EXPECT_EQ(changed.take(), std::set<std::string>{name + ".b2frame"});
  }
}

// Among them are NFS, exFAT and most FUSE filesystems; others make no links, or none to a file of another user.
TEST_F(FrameCreation, FilesystemsWithoutUnnamedFilesOrLinksAreAskedOnce) {
  for (const std::string name : {"no unnamed file", "no link"}) {
    SCOPED_TRACE(name);
    remount();
    counted_.has_unnamed = name != "no unnamed file";
    counted_.has_links = name != "no link";
    counted_.unnamed = 0;
    for (const std::string number : {" 1", " 2", " 3"}) {
      make(name + number, "text");
      EXPECT_EQ(content(name + number), "text");
    }
    EXPECT_EQ(counted_.unnamed, 1);
    EXPECT_EQ(errno_of(filesystem_->names().create(kRootNode, name + " 1", O_RDWR | O_CREAT | O_EXCL, 0644, {})),
              EEXIST);
  }
  EXPECT_EQ(on_disk().size(), 6U) << "no temporary file is left";
}

TEST_F(FrameCreation, AnUnnamedFileIsAskedForAgainOnceThereAreDescriptors) {
  counted_.lacks_descriptors = true;
  make("x", "text");
  counted_.lacks_descriptors = false;
  make("y", "text");
  EXPECT_EQ(counted_.unnamed, 2);
  EXPECT_EQ(content("x") + content("y"), "texttext");
}

TEST_F(FrameCreation, ALockFileThatAnotherProgramMakesInAListedDirectoryIsFound) {
  options_.lock_timeout = 0.01;
  remount();
  list_root();
  auto handle = create("y");
  ASSERT_TRUE(write(*handle, 0, "text"));
  directory_.write("y.b2frame.b2lock", std::vector<std::uint8_t>(16));
  {
    const int other = ::open((directory_.path() / "y.b2frame.b2lock").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::flock(other, LOCK_EX | LOCK_NB), 0);
    EXPECT_EQ(errno_of(filesystem_->files().flush(*handle)), EBUSY);
    ::close(other);
  }
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(test::file_bytes(directory_.path() / "y.b2frame.b2lock")[8], 1) << "its counter of changes";
}

}  // namespace
}  // namespace cframefs::fs
