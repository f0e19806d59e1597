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
  std::shared_ptr<Node> enter(const std::string& name, std::uint64_t inode, EntryKind kind = EntryKind::frame) {
    EntryStat probe;
    probe.kind = kind;
    probe.status.st_dev = kDevice;
    probe.entry_inode = inode;
    return table_.enter(kRootNode, name, NodeRole::stored, probe);
  }
  NodeTable table_;
};

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
  EXPECT_TRUE(table_.forget(replaced->id, 1));
  EXPECT_EQ(table_.number_for(kDevice, 5), 5U);
  EXPECT_EQ(enter("again", 11)->shown_inode, 11U);
}

}  // namespace
}  // namespace cframefs::fs
