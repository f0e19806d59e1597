// What programs do with files of a mount whose source lacks something: it works, or the answer is the source's own
// error, and nothing is lost.
#include "tests/fs/source_kinds.h"

#include <cerrno>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "frame/cframe/sparse_frame.h"
#include "tests/fs/written_filesystem.h"
#include "tests/support/array_builder.h"
#include "tests/support/frame_builder.h"
#include "tests/support/limited_files.h"
#include "tests/support/reading.h"

namespace cframefs::fs {
namespace {

using test::Bytes;
using test::LimitedFiles;
using test::Limits;

/// A filesystem object over a source of some kind.
class OddSource : public WrittenFilesystem {
 protected:
  /// The names in the mount's root.
  std::set<std::string> shown() {
    std::set<std::string> names;
    auto handle = filesystem_->directories().open(kRootNode);
    EXPECT_TRUE(handle);
    codec::MutexLock lock((*handle)->mutex);
    EXPECT_TRUE(filesystem_->directories().list(**handle));
    for (const ShownEntry& entry : (*handle)->entries)
      names.insert(entry.shown);
    return names;
  }
  void start_with(const Limits& limits) {
    limits_ = limits;
    odd_.set(limits);
    files_ = &odd_;
    WrittenFilesystem::SetUp();
  }
  void make(const std::string& name, const std::string& text) {
    auto handle = create(name);
    ASSERT_TRUE(handle);
    ASSERT_TRUE(write(*handle, 0, text));
    const auto done = close(std::move(handle));
    ASSERT_TRUE(done) << done.error().reason;
  }
  codec::Result<void> rename(const std::string& from, const std::string& to, unsigned flags = 0) {
    return filesystem_->names().rename(kRootNode, from, kRootNode, to, flags);
  }
  /// What the mount shows, and what is on disk without it.
  void expect_content(const std::string& name, const std::string& text) {
    EXPECT_EQ(content(name), text);
    const auto file = stored(name + ".b2frame");
    ASSERT_TRUE(file);
    EXPECT_EQ(static_cast<std::size_t>(file->parameters().nbytes), text.size());
    remount();
    EXPECT_EQ(content(name), text);
  }
  static std::string text(std::size_t size, char first) {
    std::string all(size, '\0');
    for (std::size_t i = 0; i < size; ++i)
      all[i] = static_cast<char>(first + static_cast<char>(i * i % 61 % 50));
    return all;
  }

  /// Of a state of the frame that another program changes: words, so that they are compressed.
  static std::string plain_of(std::size_t number) {
    std::string plain;
    for (int i = 0; i < 1000; ++i)
      plain += "state" + std::to_string(number) + (i % 7 == 0 ? "!" : " ");
    return plain;
  }
  static std::vector<Bytes> states_of_one_size() {
    std::vector<Bytes> states;
    for (std::size_t number = 0; number < 9; ++number) {
      const test::TempDir directory;
      MountOptions options;
      options.source = directory.path();
      options.new_frames.chunksize = 4096;
      Filesystem filesystem(frame::system_files(), options);
      CountingKernel kernel;
      EXPECT_TRUE(filesystem.open_source(false));
      filesystem.start(kernel);
      auto made = filesystem.names().create(kRootNode, "x", O_RDWR | O_CREAT, 0644, {});
      const std::string plain = plain_of(number);
      EXPECT_TRUE(made && filesystem.files().write(*made->handle, 0, Bytes(plain.begin(), plain.end()), false));
      EXPECT_TRUE(filesystem.files().flush(*made->handle));
      filesystem.files().release(std::move(made->handle));
      filesystem.stop();
      states.push_back(test::file_bytes(directory.path() / "x.b2frame"));
      EXPECT_EQ(states.back().size(), states.front().size());
    }
    return states;
  }

  Limits limits_;
  LimitedFiles odd_;
};

class SourceKinds : public OddSource, public ::testing::WithParamInterface<Limits> {
 protected:
  void SetUp() override { start_with(GetParam()); }
};

TEST_P(SourceKinds, FilesAreMadeWrittenAndCommitted) {
  std::string model = text(30000, 'a');
  make("x", model);
  expect_content("x", model);
  auto handle = open("x");
  for (const std::size_t at : {std::size_t{0}, std::size_t{5000}, std::size_t{29990}}) {
    ASSERT_TRUE(write(*handle, at, "0123456789abcdef"));
    model.resize(std::max(model.size(), at + 16));
    model.replace(at, 16, "0123456789abcdef");
    const auto done = filesystem_->files().sync(*handle, false);
    ASSERT_TRUE(done) << done.error().reason;
    EXPECT_EQ(read(*handle), model);
  }
  ASSERT_TRUE(close(std::move(handle)));
  expect_content("x", model);
  EXPECT_EQ(on_disk(), std::vector<std::string>{"x.b2frame"});
}

TEST_P(SourceKinds, AnExclusiveCreateOpensTheFileThatItMade) {
  // Without the second attempt of create(), which the kernel makes for no exclusive one.
  auto made = filesystem_->names().create(kRootNode, "x", O_RDWR | O_CREAT | O_EXCL, 0644, {});
  ASSERT_TRUE(made) << codec::describe(made.error());
  const auto shown = filesystem_->names().lookup(kRootNode, "x");
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->node, made->attributes.node);
  EXPECT_TRUE(write(*made->handle, 0, "text"));
  EXPECT_TRUE(close(std::move(made->handle)));
  expect_content("x", "text");
  EXPECT_EQ(on_disk(), std::vector<std::string>{"x.b2frame"});
}

// semantics: P3
TEST_P(SourceKinds, ACommitThatPutsANewFileInPlaceKeepsItsMode) {
  make("x", text(30000, 'a'));
  const auto before = filesystem_->names().lookup(kRootNode, "x");
  ASSERT_TRUE(before);
  auto handle = open("x");
  ASSERT_TRUE(resize(*handle, 0));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  ASSERT_TRUE(write(*handle, 0, "short"));
  const auto done = close(std::move(handle));
  ASSERT_TRUE(done) << done.error().reason;
  expect_content("x", "short");
  const auto after = filesystem_->names().lookup(kRootNode, "x");
  ASSERT_TRUE(after);
  EXPECT_EQ(after->status.st_mode, before->status.st_mode);
  EXPECT_EQ(on_disk(), std::vector<std::string>{"x.b2frame"});
}

// semantics: M2, M4, P1
TEST_P(SourceKinds, NamesAreMovedTakenAndExchanged) {
  make("a", "one");
  make("b", "two");
  EXPECT_EQ(errno_of(rename("a", "b", RENAME_NOREPLACE)), EEXIST);
  EXPECT_TRUE(rename("a", "c", RENAME_NOREPLACE));
  EXPECT_TRUE(rename("c", "a"));
  const auto exchanged = rename("a", "b", RENAME_EXCHANGE);
  EXPECT_EQ(errno_of(exchanged), limits_.no_rename_flags ? EINVAL : 0);
  EXPECT_EQ(content("a"), exchanged ? "two" : "one");
  EXPECT_EQ(content("b"), exchanged ? "one" : "two");
  // As editors do it.
  make("a.new", "three");
  EXPECT_TRUE(rename("a.new", "a"));
  expect_content("a", "three");
  const auto directory = filesystem_->names().make_directory(kRootNode, "d", 0755, {});
  ASSERT_TRUE(directory) << codec::describe(directory.error());
  EXPECT_TRUE(rename("d", "e"));
  // Two kinds of names on disk cannot change places in one step, whatever the source.
  EXPECT_EQ(errno_of(rename("a", "e", RENAME_EXCHANGE)), EINVAL);
  EXPECT_EQ(on_disk(), (std::vector<std::string>{"a.b2frame", "b.b2frame", "e"}));
}

TEST_P(SourceKinds, AFileThatIsRemovedOrReplacedGoesOnForThoseThatHaveItOpen) {
  make("x", "old");
  auto handle = open("x");
  ASSERT_TRUE(filesystem_->names().remove(kRootNode, "x", false));
  make("x", "new");
  EXPECT_TRUE(write(*handle, 3, "er"));
  EXPECT_EQ(read(*handle), "older");
  EXPECT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_TRUE(resize(*handle, 2));
  EXPECT_EQ(read(*handle), "ol");
  EXPECT_TRUE(close(std::move(handle)));
  expect_content("x", "new");
  EXPECT_EQ(on_disk(), std::vector<std::string>{"x.b2frame"});
}

TEST_P(SourceKinds, WhatTheSourceLacksIsToldAndTheRestWorks) {
  make("x", "text");
  const auto x = filesystem_->names().lookup(kRootNode, "x");
  ASSERT_TRUE(x);
  const auto set = filesystem_->extended_attributes().set(x->node, "user.a", "1", 0, {});
  EXPECT_EQ(errno_of(set), limits_.no_xattr ? EOPNOTSUPP : 0);
  EXPECT_TRUE(filesystem_->extended_attributes().set(x->node, "user.blosc2.vlmeta.a", "1", 0, {}));
  const auto link = filesystem_->names().make_symlink(kRootNode, "l", "x", {});
  EXPECT_EQ(errno_of(link), limits_.no_symlinks ? EPERM : 0);
  AttributeChanges changes;
  changes.mode = 0600;
  EXPECT_EQ(errno_of(filesystem_->attributes().change(x->node, nullptr, changes)), limits_.no_chmod ? EPERM : 0);
  directory_.write("plain", Bytes(20000, 7));
  const auto plain = filesystem_->names().lookup(kRootNode, "plain");
  ASSERT_TRUE(plain);
  EXPECT_EQ(errno_of(filesystem_->names().link(plain->node, kRootNode, "second")), limits_.no_links ? EPERM : 0);
  auto handle = open("plain");
  const auto hole = filesystem_->files().allocate(*handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096);
  EXPECT_EQ(errno_of(hole), limits_.no_holes ? EOPNOTSUPP : 0);
  filesystem_->files().release(std::move(handle));
  // A hole in a frame is chunks of zeros.
  handle = open("x");
  EXPECT_TRUE(filesystem_->files().allocate(*handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2));
  EXPECT_TRUE(close(std::move(handle)));
  expect_content("x", std::string("\0\0xt", 4));
  const auto x_again = filesystem_->names().lookup(kRootNode, "x");
  const auto layer = filesystem_->extended_attributes().get(x_again->node, "user.blosc2.vlmeta.a");
  ASSERT_TRUE(layer);
  EXPECT_EQ(*layer, "1");
}

TEST_P(SourceKinds, SparseFramesAreWritten) {
  std::string model = text(3000, 'a');
  std::filesystem::create_directory(directory_.path() / "s.b2frame");
  for (const auto& [name, bytes] : test::sparse_frame(Bytes(model.begin(), model.end()), 1000))
    directory_.write("s.b2frame/" + name, bytes);
  auto handle = open("s");
  ASSERT_TRUE(write(*handle, 1500, "XYZ"));
  model.replace(1500, 3, "XYZ");
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  ASSERT_TRUE(resize(*handle, 2500));
  model.resize(2500);
  const auto done = close(std::move(handle));
  ASSERT_TRUE(done) << done.error().reason;
  expect_content("s", model);
  EXPECT_TRUE(rename("s", "t"));
  expect_content("t", model);
  EXPECT_TRUE(filesystem_->names().remove(kRootNode, "t", false));
  EXPECT_TRUE(on_disk().empty());
}

TEST_P(SourceKinds, ArraysAreWritten) {
  const test::ArraySpec spec{{7, 6}, {3, 4}, {2, 3}, 4, "<i4"};
  Bytes items = test::varied_items(spec.nbytes());
  directory_.write("x.b2nd", test::array_frame(spec, items).build());
  auto handle = open("x.npy");
  const std::size_t head = read(*handle).size() - items.size();
  ASSERT_TRUE(write(*handle, head + 8, "ITEM"));
  std::copy_n("ITEM", 4, items.begin() + 8);
  const auto done = close(std::move(handle));
  ASSERT_TRUE(done) << done.error().reason;
  remount();
  EXPECT_EQ(content("x.npy").substr(head), std::string(items.begin(), items.end()));
}

// semantics: P5
TEST_P(SourceKinds, DirectoriesThatAreNotHeldAnyMoreAreFoundAgain) {
  // More than are held.
  std::vector<NodeId> directories;
  for (int i = 0; i < 5000; i += 50) {
    const auto made = filesystem_->names().make_directory(kRootNode, "d" + std::to_string(i), 0755, {});
    ASSERT_TRUE(made);
    directories.push_back(made->node);
  }
  for (const NodeId directory : directories)
    EXPECT_TRUE(filesystem_->names().make_directory(directory, "in", 0755, {}));
}

// semantics: P7
TEST_P(SourceKinds, AChangeBehindTheMountIsSeen) {
  // Within one stamp, of one size.
  const std::vector<Bytes> states = states_of_one_size();
  const auto put = [&](std::size_t number) {
    const int fd = ::open((directory_.path() / "x.b2frame").c_str(), O_WRONLY | O_CREAT, 0644);
    const Bytes& frame = states[number];
    ASSERT_EQ(::pwrite(fd, frame.data(), frame.size(), 0), static_cast<ssize_t>(frame.size()));
    ::close(fd);
  };
  put(0);
  auto held = open("x", O_RDONLY);
  for (std::size_t number = 1; number < states.size(); ++number) {
    put(number);
    EXPECT_TRUE(content("x") == plain_of(number)) << number;
    // Often enough for it to be kept in memory.
    for (int i = 0; i < 4; ++i)
      EXPECT_TRUE(read(*held) == plain_of(number)) << number;
    // Stamps of the system move on; it is those of whole seconds that do not.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  filesystem_->files().release(std::move(held));
}

class LikeNfs : public OddSource {
 protected:
  void SetUp() override {
    Limits limits;
    limits.no_rename_flags = limits.renames_open_files = limits.gone_is_stale = true;
    limits.stamp_seconds = 1;
    start_with(limits);
  }
};

// semantics: P11
TEST_F(LikeNfs, AnOpenFileThatIsRemovedIsListedUntilItIsClosed) {
  std::filesystem::create_directory(directory_.path() / "d");
  directory_.write("d/plain", Bytes(20000, 7));
  const auto directory = filesystem_->names().lookup(kRootNode, "d");
  ASSERT_TRUE(directory);
  const auto plain = filesystem_->names().lookup(directory->node, "plain");
  ASSERT_TRUE(plain);
  auto handle = filesystem_->files().open(plain->node, O_RDWR);
  ASSERT_TRUE(handle);
  ASSERT_TRUE(filesystem_->names().remove(directory->node, "plain", false));
  EXPECT_EQ(odd_.renames, 1);
  EXPECT_EQ(read(**handle), std::string(20000, 7));
  EXPECT_TRUE(write(**handle, 3, "written"));
  EXPECT_EQ(errno_of(filesystem_->names().remove(kRootNode, "d", true)), ENOTEMPTY);
  EXPECT_EQ(errno_of(filesystem_->names().lookup(directory->node, "plain")), ENOENT);
  EXPECT_TRUE(close(std::move(*handle)));
  EXPECT_TRUE(filesystem_->names().remove(kRootNode, "d", true));
}

// semantics: P10
TEST_F(LikeNfs, AFrameThatIsRemovedOnTheServerIsStaleToThoseThatHaveItOpen) {
  make("x", text(30000, 'a'));
  remount();
  auto reader = open("x", O_RDONLY);
  auto writer = open("x");
  ASSERT_TRUE(write(*writer, 5, "not stored"));
  std::filesystem::remove(directory_.path() / "x.b2frame");
  EXPECT_EQ(errno_of(filesystem_->files().sync(*writer, false)), ESTALE);
  EXPECT_EQ(errno_of(close(std::move(writer))), ESTALE);
  filesystem_->files().release(std::move(reader));
  EXPECT_EQ(errno_of(filesystem_->names().lookup(kRootNode, "x")), ENOENT);
  make("x", "new");
  expect_content("x", "new");
  EXPECT_EQ(on_disk(), std::vector<std::string>{"x.b2frame"});
}

TEST_F(LikeNfs, AFrameThatIsReplacedOnTheServerIsSeenByTheNextOpen) {
  make("x", text(30000, 'a'));
  make("y", text(20000, 'b'));
  remount();
  auto reader = open("x", O_RDONLY);
  std::filesystem::rename(directory_.path() / "y.b2frame", directory_.path() / "x.b2frame");
  EXPECT_EQ(content("x"), text(20000, 'b'));
  filesystem_->files().release(std::move(reader));
  expect_content("x", text(20000, 'b'));
}

class Spellings : public OddSource, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    Limits limits;
    limits.folds_case = true;
    limits.inodes_by_spelling = GetParam();
    start_with(limits);
  }
};

// semantics: P8
TEST_P(Spellings, AFileIsOneWhateverItIsAskedForAs) {
  make("Notes", "0123456789");
  const auto one = filesystem_->names().lookup(kRootNode, "Notes");
  const auto other = filesystem_->names().lookup(kRootNode, "nOTES");
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->node, other->node);
  EXPECT_EQ(errno_of(filesystem_->names().create(kRootNode, "NOTES", O_RDWR | O_CREAT | O_EXCL, 0644, {})), EEXIST);
  auto first = open("Notes");
  auto second = open("NOTES");
  ASSERT_TRUE(write(*first, 0, "AA"));
  ASSERT_TRUE(write(*second, 4, "BB"));
  EXPECT_TRUE(close(std::move(first)));
  EXPECT_TRUE(close(std::move(second)));
  expect_content("Notes", "AA23BB6789");
  // A commit keeps the spelling that the file was made with.
  EXPECT_EQ(on_disk(), std::vector<std::string>{"Notes.b2frame"});
}

// semantics: N3, P8
TEST_P(Spellings, TheSuffixOfAContainerMayBeSpelledInAnyWay) {
  make("x", "text");
  std::filesystem::rename(directory_.path() / "x.b2frame", directory_.path() / "X.B2FRAME");
  remount();
  EXPECT_EQ(shown(), std::set<std::string>{"X"});
  EXPECT_EQ(content("x"), "text");
  EXPECT_EQ(errno_of(filesystem_->names().lookup(kRootNode, "X.B2FRAME")), ENOENT);
  EXPECT_EQ(errno_of(filesystem_->names().lookup(kRootNode, "x.b2frame")), ENOENT);
}

// The kernel takes two spellings for two names of one file, and leaves both.
TEST_P(Spellings, ARenameByWayOfAnotherNameChangesTheSpelling) {
  make("x", "text");
  auto handle = open("x");
  ASSERT_TRUE(write(*handle, 4, "!"));
  ASSERT_TRUE(rename("x", "X"));
  EXPECT_EQ(on_disk(), std::vector<std::string>{"x.b2frame"});
  ASSERT_TRUE(rename("x", "y"));
  ASSERT_TRUE(rename("y", "X"));
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(on_disk(), std::vector<std::string>{"X.b2frame"});
  expect_content("X", "text!");
  EXPECT_EQ(errno_of(rename("x", "X", RENAME_NOREPLACE)), EEXIST);
  ASSERT_TRUE(filesystem_->names().remove(kRootNode, "x", false));
  EXPECT_TRUE(on_disk().empty());
}

TEST_P(Spellings, ADirectoryIsOneToo) {
  const auto made = filesystem_->names().make_directory(kRootNode, "Dir", 0755, {});
  ASSERT_TRUE(made);
  const auto other = filesystem_->names().lookup(kRootNode, "dIR");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->node, made->node);
}

TEST_P(Spellings, ADirectoryThatStaysIsListedOnce) {
  for (int i = 0; i < 20; ++i)
    make("file" + std::to_string(i), "text");
  static_cast<void>(filesystem_->names().lookup(kRootNode, "file0"));
  std::this_thread::sleep_for(std::chrono::milliseconds(150));  // until the stamp of the directory is not racy any more
  static_cast<void>(filesystem_->names().lookup(kRootNode, "file0"));
  const int lists = odd_.lists;
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(filesystem_->names().lookup(kRootNode, "FILE" + std::to_string(i)));
  EXPECT_EQ(odd_.lists, lists);
}

INSTANTIATE_TEST_SUITE_P(InodesBySpelling, Spellings, ::testing::Bool());

/// Where case tells names apart two files stay two.
TEST_F(OddSource, NamesThatDifferByCaseAreTwoWhereTheSourceSaysSo) {
  start_with({});
  make("x", "small");
  make("X", "large");
  EXPECT_EQ(content("x"), "small");
  EXPECT_EQ(content("X"), "large");
  EXPECT_EQ(errno_of(filesystem_->names().lookup(kRootNode, "x.B2FRAME")), ENOENT);
}

/// The source is another mount, with the names of its temporary files.
TEST_F(OddSource, NamesOfTheMountsOwnTemporaryFilesAreFreeToPrograms) {
  start_with({});
  for (const char* name :
       {".cframefs-tmp.1", ".cframefs-tmp+.1", ".cframefs-tmp++.1", ".cframefs-tmp", ".cframefs-tmpx"}) {
    make(name, name);
    EXPECT_EQ(content(name), name);
  }
  directory_.write(".cframefs-tmp.1.b2frame", {});  // left by a commit that was killed
  EXPECT_EQ(content(".cframefs-tmp.1"), ".cframefs-tmp.1");
  ASSERT_TRUE(filesystem_->names().make_directory(kRootNode, ".cframefs-tmp.d", 0755, {}));
  ASSERT_TRUE(rename(".cframefs-tmp.1", "x"));
  EXPECT_EQ(content("x"), ".cframefs-tmp.1");
  ASSERT_TRUE(rename(".cframefs-tmp.d", ".cframefs-tmp.e"));
  EXPECT_EQ(on_disk(), (std::vector<std::string>{".cframefs-tmp+++.1.b2frame", ".cframefs-tmp++.1.b2frame",
                                                 ".cframefs-tmp+.b2frame", ".cframefs-tmp+.e",
                                                 ".cframefs-tmp.1.b2frame", ".cframefs-tmpx.b2frame", "x.b2frame"}));
  EXPECT_EQ(shown(), (std::set<std::string>{".cframefs-tmp+.1", ".cframefs-tmp++.1", ".cframefs-tmp.e", ".cframefs-tmp",
                                            ".cframefs-tmpx", "x"}));
}

INSTANTIATE_TEST_SUITE_P(All, SourceKinds, ::testing::ValuesIn(all_kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace cframefs::fs
