// Making, renaming and removing entries through the filesystem object, without a mount.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "tests/fs/written_filesystem.h"
#include "tests/support/frame_builder.h"

namespace cframefs::fs {
namespace {

class NamespaceTest : public WrittenFilesystem {
 protected:
  void make(const std::string& name, const std::string& text) {
    auto handle = create(name);
    ASSERT_TRUE(write(*handle, 0, text));
    ASSERT_TRUE(close(std::move(handle)));
  }
  codec::Result<void> rename(const std::string& from, const std::string& to, unsigned flags = 0) {
    return filesystem_->names().rename(kRootNode, from, kRootNode, to, flags);
  }
  using Listing = std::vector<std::string>;
};

TEST_F(NamespaceTest, ANameThatIsTakenIsRefused) {
  make("x", "text");
  EXPECT_EQ(errno_of(filesystem_->names().create(kRootNode, "x", O_RDWR | O_CREAT | O_EXCL, 0644, {})), EEXIST);
  EXPECT_EQ(errno_of(filesystem_->names().make_directory(kRootNode, "x", 0755, {})), EEXIST);
  // Hidden behind its short name, and in the way all the same.
  EXPECT_EQ(errno_of(filesystem_->names().make_directory(kRootNode, "x.b2frame", 0755, {})), EEXIST);
}

TEST_F(NamespaceTest, ACreatedFileShowsTheAttributesOfTheNextStat) {
  struct Case {
    Names names;
    bool npy_as_array;
    const char* name;
  };
  for (const Case& is : {Case{Names::strip, false, "x"}, Case{Names::strip, true, "y.npy"},
                         Case{Names::keep, false, "z.b2frame"}, Case{Names::keep, false, "plain"}}) {
    stop();
    options_.names = is.names;
    options_.new_frames.npy_as_array = is.npy_as_array;
    start();
    auto made = filesystem_->names().create(kRootNode, is.name, O_WRONLY | O_CREAT, 0640, {});
    ASSERT_TRUE(made) << is.name;
    EXPECT_EQ(made->attributes.attr_timeout, kCreatedTimeout) << "programs ask for them at once";
    const auto next = filesystem_->attributes().of(made->attributes.node, nullptr);
    const auto found = filesystem_->names().lookup(kRootNode, is.name);
    for (const auto* other : {&next, &found}) {
      ASSERT_TRUE(*other) << is.name;
      EXPECT_EQ((*other)->node, made->attributes.node) << is.name;
      const struct stat& one = made->attributes.status;
      const struct stat& two = (*other)->status;
      EXPECT_EQ(one.st_ino, two.st_ino) << is.name;
      EXPECT_EQ(one.st_mode, two.st_mode) << is.name;
      EXPECT_EQ(one.st_size, two.st_size) << is.name;
      EXPECT_EQ(one.st_blksize, two.st_blksize) << is.name;
      EXPECT_EQ(one.st_nlink, two.st_nlink) << is.name;
    }
    filesystem_->files().release(std::move(made->handle));
  }
}

// NFS makes files by mknod(2). The handle that the daemon made the file with was never closed: each later write of it
// made the kernel drop its pages.
TEST_F(NamespaceTest, AFileThatMknodHasMadeIsNotOpen) {
  ASSERT_TRUE(filesystem_->names().make_node(kRootNode, "x", S_IFREG | 0644, 0, {}));
  auto handle = open("x");
  ASSERT_NE(handle, nullptr);
  ASSERT_TRUE(write(*handle, 0, "text"));
  EXPECT_FALSE(handle->node->pages.must_drop_after_write(false));
  ASSERT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content("x"), "text");
}

// semantics: M1
TEST_F(NamespaceTest, ARenameOverReplacesInOneStepWhateverTheNamesOnDisk) {
  make("a", "new");
  directory_.write("b", {});  // a plain file
  const NodeId moved = node_of("a");
  ASSERT_TRUE(rename("a", "b"));
  EXPECT_EQ(on_disk(), Listing{"b.b2frame"});
  EXPECT_EQ(node_of("b"), moved);
  EXPECT_EQ(content("b"), "new");
  EXPECT_EQ(node_of("a"), 0U);
}

// A sparse frame is a directory: rename(2) fails if one of the two entries is a directory and the other a file.
TEST_F(NamespaceTest, ARenameOverASparseFrameNeverFreesTheName) {
  for (const bool is_moved : {false, true}) {
    SCOPED_TRACE(is_moved);
    make("a", "new");
    std::filesystem::create_directory(directory_.path() / "s.b2frame");
    for (const auto& [part, bytes] : test::sparse_frame(test::Bytes(100, 's'), 100))
      directory_.write("s.b2frame/" + part, bytes);
    const std::string from = is_moved ? "s" : "a";
    const std::string to = is_moved ? "a" : "s";
    const NodeId moved = node_of(from);
    disk_.after_rename = [&] { EXPECT_TRUE(std::filesystem::exists(directory_.path() / (to + ".b2frame"))); };
    EXPECT_TRUE(rename(from, to));
    disk_.after_rename = nullptr;
    EXPECT_EQ(on_disk(), Listing{to + ".b2frame"});
    EXPECT_EQ(node_of(to), moved);
    EXPECT_EQ(content(to), is_moved ? std::string(100, 's') : "new");
    EXPECT_TRUE(filesystem_->names().remove(kRootNode, to, false));
  }
}

// A sparse frame has any number of chunk files, so that there may be no memory to list them for a long time. The thread
// that closed the frame last waited as long.
TEST_F(NamespaceTest, WithoutMemoryForTheirListTheFilesOfARemovedSparseFrameStayHidden) {
  for (const bool lacks_memory : {false, true}) {
    SCOPED_TRACE(lacks_memory);
    std::filesystem::create_directory(directory_.path() / "s.b2frame");
    for (const auto& [part, bytes] : test::sparse_frame(test::Bytes(100, 's'), 100))
      directory_.write("s.b2frame/" + part, bytes);
    auto handle = open("s");
    ASSERT_NE(handle, nullptr);
    ASSERT_TRUE(filesystem_->names().remove(kRootNode, "s", false));
    disk_.lists_lack_memory = lacks_memory;
    EXPECT_EQ(read(*handle), std::string(100, 's'));
    EXPECT_TRUE(close(std::move(handle)));
    disk_.lists_lack_memory = false;
    EXPECT_EQ(on_disk().size(), lacks_memory ? 1 : 0);
    EXPECT_EQ(node_of("s"), 0U);
  }
}

// A look-up had seen the file under its old name, and put its node back there when it had another one already: the next
// rename then took the node's place from it, and the name led to a second writer of the same frame.
TEST_F(NamespaceTest, ALookUpDuringARenameDoesNotTakeTheNodeBack) {
  // After each of the look-up's looks at the disk.
  for (int look = 1, looks = look; looks >= look; ++look) {
    auto handle = create("a");
    ASSERT_TRUE(write(*handle, 0, "one"));
    std::thread renaming;
    std::atomic<bool> renamed{false};
    looks = 0;
    disk_.after_status = [&] {
      if (++looks != look) return;
      renaming = std::thread([&] {
        EXPECT_TRUE(rename("a", "b"));
        renamed = true;
      });
      // It may have to wait for this look-up; if it has not, it is done long before.
      for (int i = 0; i < 100 && !renamed; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    static_cast<void>(filesystem_->names().lookup(kRootNode, "a"));
    disk_.after_status = nullptr;
    if (renaming.joinable()) {
      renaming.join();
      ASSERT_TRUE(rename("b", "a"));
    }
    EXPECT_EQ(node_of("a"), handle->node->id);
    ASSERT_TRUE(write(*handle, 3, " two"));
    EXPECT_EQ(size_of("a"), 7U);
    ASSERT_TRUE(close(std::move(handle)));
    EXPECT_EQ(content("a"), "one two");
    ASSERT_TRUE(filesystem_->names().remove(kRootNode, "a", false));
  }
}

// Pages were dropped when a frame was opened that had been renamed or whose mode had been changed while it was written.
// One that a program was writing to at that moment could be read again before the write had arrived, and stayed old.
TEST_F(NamespaceTest, NoPageIsDroppedForWhatTheMountItselfDoesToAFileThatIsWritten) {
  auto handle = create("a");
  ASSERT_TRUE(write(*handle, 0, "one"));
  const auto keeps_pages = [&] {
    auto reader = open("a", O_RDONLY);
    const bool kept = reader->keep_pages;
    filesystem_->files().release(std::move(reader));
    return kept && size_of("a") == 3;
  };
  EXPECT_TRUE(keeps_pages());
  ASSERT_TRUE(rename("a", "b"));
  ASSERT_TRUE(rename("b", "a"));
  EXPECT_TRUE(keeps_pages());
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_TRUE(keeps_pages());
  AttributeChanges changes;
  changes.mode = 0600;
  ASSERT_TRUE(filesystem_->attributes().change(handle->node->id, handle.get(), changes));
  EXPECT_TRUE(keeps_pages());
  ASSERT_TRUE(write(*handle, 0, "two"));
  disk_.write_error = ENOSPC;
  EXPECT_FALSE(filesystem_->files().sync(*handle, false));
  disk_.write_error = 0;
  EXPECT_TRUE(keeps_pages());
  ASSERT_TRUE(close(std::move(handle)));
  EXPECT_TRUE(keeps_pages());
  EXPECT_EQ(kernel_.files, 0);
}

TEST_F(NamespaceTest, NoPageIsDroppedOfAPlainFileThatIsWritten) {
  directory_.write("plain", {});
  auto handle = open("plain", O_RDWR);
  ASSERT_TRUE(write(*handle, 0, "one"));
  auto reader = open("plain", O_RDONLY);
  EXPECT_TRUE(reader->keep_pages);
  filesystem_->files().release(std::move(reader));
  filesystem_->files().release(std::move(handle));
}

TEST_F(NamespaceTest, AWriterFollowsTheNameOfItsFrame) {
  auto handle = create("a");
  ASSERT_TRUE(write(*handle, 0, "one"));
  ASSERT_TRUE(rename("a", "b"));
  ASSERT_TRUE(write(*handle, 3, " two"));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_EQ(on_disk(), Listing{"b.b2frame"});
  ASSERT_TRUE(filesystem_->names().make_directory(kRootNode, "d", 0755, {}));
  const NodeId directory = node_of("d");
  ASSERT_TRUE(filesystem_->names().rename(kRootNode, "b", directory, "c", 0));
  ASSERT_TRUE(rename("d", "e"));
  ASSERT_TRUE(write(*handle, 7, " three"));
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(on_disk(), Listing{"e"});
  auto found = filesystem_->names().lookup(directory, "c");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->status.st_size, 13);
}

TEST_F(NamespaceTest, AFileThatIsRemovedWhileItIsDirtyIsWrittenAndNeverComesBack) {
  auto handle = create("x");
  ASSERT_TRUE(write(*handle, 0, "before"));
  ASSERT_TRUE(filesystem_->names().remove(kRootNode, "x", false));
  ASSERT_TRUE(write(*handle, 6, std::string(20'000, 'x')));
  EXPECT_TRUE(filesystem_->files().sync(*handle, false));
  ASSERT_TRUE(resize(*handle, 0));  // a commit by a new file
  EXPECT_TRUE(filesystem_->files().sync(*handle, false));
  ASSERT_TRUE(write(*handle, 0, "again"));
  EXPECT_EQ(read(*handle), "again");
  auto attributes = filesystem_->attributes().of(handle->node->id, handle.get());
  ASSERT_TRUE(attributes);
  EXPECT_EQ(attributes->status.st_nlink, 0U);
  make("x", "another");
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(on_disk(), Listing{"x.b2frame"});
  EXPECT_EQ(content("x"), "another");
}

// semantics: S3
TEST_F(NamespaceTest, ANodeOutlivesTheInodesOfItsFile) {
  make("x", "text");
  const auto before = filesystem_->names().lookup(kRootNode, "x");
  ASSERT_TRUE(before);
  auto reader = open("x", O_RDONLY);
  auto handle = open("x", O_RDWR | O_TRUNC);  // commits by a new file
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_EQ(read(*reader), "");
  ASSERT_TRUE(write(*handle, 0, "more"));
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(read(*reader), "more");
  filesystem_->files().release(std::move(reader));
  const auto after = filesystem_->names().lookup(kRootNode, "x");
  ASSERT_TRUE(after);
  EXPECT_EQ(after->node, before->node);
  EXPECT_EQ(after->status.st_ino, before->status.st_ino);
}

TEST_F(NamespaceTest, TheKernelIsNotToldOfWhatTheMountItselfDoes) {
  make("x", std::string(30'000, 'x'));
  ASSERT_TRUE(filesystem_->names().make_directory(kRootNode, "d", 0755, {}));
  // Known to the kernel, all of them.
  ASSERT_NE(node_of("x"), 0U);
  ASSERT_NE(node_of("d"), 0U);
  ASSERT_TRUE(rename("x", "y"));
  ASSERT_TRUE(rename("d", "e"));
  ASSERT_TRUE(filesystem_->names().remove(kRootNode, "e", true));
  // A change by another program comes last: once it is reported, all are. (A late look reports it twice: the
  // directory's making is an event, too, and by then the directory is gone.)
  ASSERT_TRUE(filesystem_->names().make_directory(kRootNode, "theirs", 0755, {}));
  ASSERT_NE(node_of("theirs"), 0U);
  std::filesystem::rename(directory_.path() / "theirs", directory_.path() / "moved");
  for (int i = 0; i < 3000 && kernel_.names().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(kernel_.names(), std::set<std::string>{"theirs"});
}

TEST_F(NamespaceTest, AReadOnlyFilesystemRefusesEverything) {
  make("x", "text");
  options_.read_only = true;
  remount();
  const NodeId node = node_of("x");
  EXPECT_EQ(errno_of(filesystem_->files().open(node, O_RDWR)), EROFS);
  EXPECT_EQ(errno_of(filesystem_->names().create(kRootNode, "y", O_RDWR | O_CREAT, 0644, {})), EROFS);
  EXPECT_EQ(errno_of(filesystem_->names().remove(kRootNode, "x", false)), EROFS);
  EXPECT_EQ(errno_of(rename("x", "y")), EROFS);
  EXPECT_EQ(errno_of(filesystem_->extended_attributes().set(node, "user.a", "b", 0)), EROFS);
  AttributeChanges changes;
  changes.size = 0;
  EXPECT_EQ(errno_of(filesystem_->attributes().change(node, nullptr, changes)), EROFS);
}

TEST_F(NamespaceTest, ALinkShowsTheTargetThatItWasGiven) {
  for (const char* target : {"x", "x.b2frame", "/abs/x.b2frame", "../y.b2nd"}) {
    auto made = filesystem_->names().make_symlink(kRootNode, "link", target, {});
    ASSERT_TRUE(made);
    auto shown = filesystem_->links().read_link(made->node);
    ASSERT_TRUE(shown);
    EXPECT_EQ(*shown, target);
    ASSERT_TRUE(filesystem_->names().remove(kRootNode, "link", false));
  }
}

}  // namespace
}  // namespace cframefs::fs
