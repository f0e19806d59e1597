// Nodes and the inode numbers that are shown for them.
#include "fs/tree/node_table.h"

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

constexpr dev_t kDevice = 7;

class NodeTableTest : public testing::Test {
 protected:
  NodeTableTest() {
    table_.numbers().set_home(kDevice);
    table_.set_root(std::make_shared<Node>(kRootNode, NodeRole::stored, EntryKind::directory));
  }
  static EntryStat status_of(std::uint64_t inode, EntryKind kind = EntryKind::frame) {
    EntryStat probe;
    probe.kind = kind;
    probe.status.st_dev = kDevice;
    probe.status.st_ino = inode;
    probe.entry_inode = inode;
    return probe;
  }
  std::shared_ptr<Node> enter(const std::string& name, std::uint64_t inode, EntryKind kind = EntryKind::frame) {
    return table_.enter(kRootNode, name, NodeRole::stored, status_of(inode, kind));
  }
  NodeTable table_;
};

TEST_F(NodeTableTest, ACreatedFileIsNotTheGoneFileWhoseInodeItHas) {
  const auto gone = enter("gone", 5);
  const auto other = enter("other", 6);
  table_.retire(status_of(5));
  const auto created = enter("created", 5);
  EXPECT_NE(created, gone);
  EXPECT_FALSE(table_.place_of(gone->id).has_value());
  EXPECT_TRUE(table_.at_place(kRootNode, "gone").empty());
  EXPECT_FALSE(gone->is_at(status_of(5).status));
  EXPECT_EQ(table_.place_of(created->id)->name, "created");
  EXPECT_EQ(enter("other", 6), other);
  // Forgetting the gone file leaves the created one in the table.
  EXPECT_TRUE(table_.forget(gone->id, 1).is_gone);
  EXPECT_EQ(enter("created", 5), created);
}

TEST_F(NodeTableTest, ANumberThatIsShownIsNotGivenToTheNextFileWithTheInode) {
  const auto replaced = enter("replaced", 5);
  EXPECT_EQ(replaced->shown_inode, 5U);
  table_.change_inode(*replaced, 9);
  EXPECT_EQ(replaced->shown_inode, 5U);
  EXPECT_NE(table_.number_for(kDevice, 5), 5U);
  const auto next = enter("next", 5);
  EXPECT_NE(next, replaced);
  EXPECT_NE(next->shown_inode, 5U);
  EXPECT_EQ(table_.number_for(kDevice, 5), next->shown_inode);
  // And again: a commit replaces that file, too.
  table_.change_inode(*next, 10);
  const auto third = enter("third", 5);
  EXPECT_NE(third->shown_inode, 5U);
  EXPECT_NE(third->shown_inode, next->shown_inode);
  EXPECT_EQ(enter("tenth", 10), next);
}

TEST_F(NodeTableTest, ANumberIsFreeAgainWhenItsNodeIsForgotten) {
  const auto replaced = enter("replaced", 5);
  table_.change_inode(*replaced, 9);
  table_.change_inode(*replaced, 11);
  EXPECT_NE(table_.number_for(kDevice, 5), 5U);
  EXPECT_TRUE(table_.forget(replaced->id, 1).is_gone);
  EXPECT_EQ(table_.number_for(kDevice, 5), 5U);
  EXPECT_EQ(enter("again", 11)->shown_inode, 11U);
}

}  // namespace
}  // namespace cframefs::fs
