// Held directories: at most their number is open, closed ones are opened again, and never another one in their place.
#include "fs/tree/held_directories.h"

#include <filesystem>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/limited_files.h"
#include "tests/support/temp_dir.h"

namespace cframefs::fs {
namespace {

class HeldDirectoriesTest : public ::testing::Test {
 protected:
  void start(std::size_t most) {
    frame::FileOps& files = files_;
    const auto fd = files.open_named(temp_.path().string(), O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(fd);
    root_ = std::make_shared<const frame::Descriptor>(files, *fd);
    auto node = std::make_shared<Node>(kRootNode, NodeRole::stored, EntryKind::directory);
    nodes_.set_root(std::move(node));
    held_.start(root_, most);
  }
  std::filesystem::path path(const std::string& name) const { return temp_.path() / name; }
  /// Enters a node as a look-up does.
  NodeId enter(NodeId parent, const std::string& name, const std::filesystem::path& at) {
    EntryStat probe;
    probe.kind = EntryKind::directory;
    EXPECT_EQ(::stat(at.c_str(), &probe.status), 0);
    probe.entry_inode = probe.status.st_ino;
    return nodes_.enter(parent, name, NodeRole::stored, probe)->id;
  }
  NodeId make(const std::string& name) {
    std::filesystem::create_directory(path(name));
    return enter(kRootNode, name, path(name));
  }
  ino_t inode_of(NodeId node) {
    const auto directory = held_.open(node);
    if (!directory) return 0;
    return frame::system_files().status((*directory)->handle())->st_ino;
  }
  /// With two directories, "one" and "other", and room for one: returns the first, which was closed for the second.
  NodeId closed_one(ino_t& inode) {
    start(1);
    const NodeId one = make("one");
    const NodeId other = make("other");
    inode = inode_of(one);
    EXPECT_NE(inode_of(other), inode);
    return one;
  }
  codec::ErrorKind error_of(NodeId node) { return held_.open(node).error().kind; }

  test::TempDir temp_;
  test::LimitedFiles files_;
  NodeTable nodes_;
  std::shared_ptr<const frame::Descriptor> root_;
  HeldDirectories held_{files_, nodes_};
};

TEST_F(HeldDirectoriesTest, AHeldDirectoryIsFoundWhereverItIsMovedTo) {
  start(2);
  const NodeId one = make("one");
  const ino_t inode = inode_of(one);
  std::filesystem::rename(path("one"), path("moved"));
  std::filesystem::create_directory(path("one"));
  EXPECT_EQ(inode_of(one), inode);
  held_.forget(one);
  EXPECT_EQ(error_of(one), codec::ErrorKind::stale) << "another directory has its name";
}

TEST_F(HeldDirectoriesTest, AClosedDirectoryIsOpenedByItsHandleOrByItsNames) {
  ino_t inode = 0;
  const NodeId one = closed_one(inode);
  EXPECT_EQ(inode_of(one), inode);
  EXPECT_NE(inode_of(make("another")), inode);
  std::filesystem::rename(path("one"), path("moved"));
  if (::geteuid() == 0) {
    EXPECT_EQ(inode_of(one), inode) << "root may open handles";
  } else {
    EXPECT_EQ(error_of(one), codec::ErrorKind::stale);
  }
}

TEST_F(HeldDirectoriesTest, ARemovedDirectoryIsStaleAndNotItsReplacement) {
  ino_t inode = 0;
  const NodeId one = closed_one(inode);
  std::filesystem::rename(path("one"), path("old"));
  std::filesystem::create_directory(path("one"));
  std::filesystem::remove(path("old"));
  EXPECT_EQ(error_of(one), codec::ErrorKind::stale);
}

// A FUSE filesystem returns ESTALE for the handle of a directory that the kernel has evicted.
TEST_F(HeldDirectoriesTest, ADirectoryWithAStaleHandleIsOpenedByItsNames) {
  test::Limits limits;
  limits.gone_handles = true;
  files_.set(limits);
  ino_t inode = 0;
  const NodeId one = closed_one(inode);
  EXPECT_EQ(inode_of(one), inode);
  EXPECT_NE(inode_of(make("another")), inode);
  std::filesystem::rename(path("one"), path("moved"));
  EXPECT_EQ(error_of(one), codec::ErrorKind::stale);
}

TEST_F(HeldDirectoriesTest, ALinkIsNoDirectory) {
  start(4);
  const NodeId one = make("one");
  std::filesystem::rename(path("one"), path("moved"));
  std::filesystem::create_directory_symlink(path("moved"), path("one"));
  EXPECT_EQ(error_of(one), codec::ErrorKind::stale);
}

TEST_F(HeldDirectoriesTest, DeepDirectoriesAreReachedFromTheNearestHeldOne) {
  start(3);
  NodeId at = kRootNode;
  std::filesystem::path where = temp_.path();
  std::vector<std::pair<NodeId, ino_t>> way;
  for (int depth = 0; depth < 30; ++depth) {
    where /= "d";
    std::filesystem::create_directory(where);
    at = enter(at, "d", where);
    struct stat status {};
    ASSERT_EQ(::stat(where.c_str(), &status), 0);
    way.emplace_back(at, status.st_ino);
  }
  for (const auto& [node, inode] : way)
    EXPECT_EQ(inode_of(node), inode);
  for (auto step = way.rbegin(); step != way.rend(); ++step)
    EXPECT_EQ(inode_of(step->first), step->second);
}

TEST_F(HeldDirectoriesTest, ADirectoryWithoutANameIsStaleUnlessItIsHeld) {
  start(4);
  const NodeId one = make("one");
  const NodeId other = make("other");
  EXPECT_NE(inode_of(one), 0U);
  nodes_.remove({kRootNode, "one"}, false);
  nodes_.remove({kRootNode, "other"}, false);
  EXPECT_NE(inode_of(one), 0U);
  EXPECT_EQ(error_of(other), codec::ErrorKind::stale);
}

TEST_F(HeldDirectoriesTest, UnusedDirectoriesAreClosedOnRequest) {
  start(4);
  const NodeId one = make("one");
  const NodeId other = make("other");
  const HeldDirectory used = *held_.open(one);
  const std::weak_ptr<const frame::Descriptor> unused = *held_.open(other);
  held_.release_unused();
  EXPECT_TRUE(unused.expired());
  EXPECT_EQ(*held_.open(one), used);
  EXPECT_NE(inode_of(other), 0U);
}

}  // namespace
}  // namespace cframefs::fs
