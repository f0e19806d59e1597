// Legal and illegal transitions of the states of a write-back and of a frame's writer.
#include "fs/write/write_back_state.h"

#include <vector>

#include <gtest/gtest.h>

#include "frame/write/writer_state.h"
#include "fs/write/array_head.h"

namespace cframefs::fs {
namespace {

TEST(WriteBackStateTest, OneChangeAtATime) {
  using enum Progress;
  const std::vector<Progress> changes = {preparing, own_change,   writing,          writing_over,
                                         copying,   copy_writing, copy_writing_over};
  EXPECT_FALSE(is_legal(idle, idle));
  for (const Progress change : changes) {
    EXPECT_TRUE(is_legal(change, idle));
    EXPECT_FALSE(is_legal(change, own_change));
    EXPECT_FALSE(is_legal(change, copying));
  }
  for (const Progress begun : {writing, writing_over, copy_writing, copy_writing_over})
    EXPECT_FALSE(is_legal(idle, begun));
  EXPECT_FALSE(is_legal(copying, writing));
  EXPECT_FALSE(is_legal(own_change, writing));
  EXPECT_FALSE(is_legal(copying, preparing));
  EXPECT_FALSE(is_legal(preparing, copy_writing));
  EXPECT_TRUE(is_legal(writing, preparing));
}

TEST(WriteBackStateTest, AClosedWriteBackStaysClosed) {
  WriteBackState state;
  EXPECT_TRUE(state.is_usable());
  state.enter(Standing::closed);
  state.lose_track();
  EXPECT_FALSE(state.is_usable());
  EXPECT_FALSE(is_legal(Standing::closed, Standing::stale));
  EXPECT_FALSE(is_legal(Standing::closed, Standing::current));
  EXPECT_FALSE(is_legal(Standing::stale, Standing::current));
}

TEST(WriteBackStateTest, ACopyWritesAsACopy) {
  WriteBackState state;
  state.enter(Progress::copying);
  EXPECT_TRUE(state.may_change_file());
  state.begin_writing(true);
  EXPECT_TRUE(state.is_copying() && state.writes_known_file());
  state.enter(Progress::idle);
  state.enter(Progress::preparing);
  EXPECT_FALSE(state.may_change_file());
  state.begin_writing(false);
  EXPECT_TRUE(!state.is_copying() && state.writes_over_other());
}

TEST(WriteBackStateTest, AChangedHeadIsReportedOnceForEachRead) {
  ArrayHead head;
  head.changed();
  EXPECT_TRUE(head.take_change());
  head.changed();  // no program has read it since
  EXPECT_FALSE(head.take_change());
  head.read();
  head.changed();
  head.read();
  EXPECT_TRUE(head.take_change());
  EXPECT_FALSE(head.take_change());
  head.changed();
  EXPECT_TRUE(head.take_change());
}

TEST(WriteBackStateTest, AnEmptiedArrayAwaitsItsHeader) {
  ArrayHead head;
  head.truncated(true);
  head.require_array();
  EXPECT_TRUE(head.delays_pages());
  EXPECT_TRUE(head.stop_waiting());
  EXPECT_FALSE(head.stop_waiting());
  EXPECT_TRUE(head.awaits_array());
  head.array_came();
  EXPECT_FALSE(head.awaits_array());
  head.truncated(true);
  EXPECT_FALSE(head.awaits_array());
  head.truncated(false);
  EXPECT_FALSE(head.delays_pages());
}

TEST(WriterStateTest, AFailedWriterStaysFailed) {
  using enum frame::WriterState;
  for (const auto next : {fresh, synced, unsynced}) {
    EXPECT_FALSE(frame::is_legal(failed, next));
    EXPECT_FALSE(frame::is_legal(fresh_failed, next));
  }
  EXPECT_FALSE(frame::is_legal(fresh, failed));
  EXPECT_FALSE(frame::is_legal(synced, fresh_failed));
  EXPECT_FALSE(frame::is_legal(fresh, unsynced));
  EXPECT_FALSE(frame::is_legal(unsynced, fresh));
  EXPECT_TRUE(frame::is_legal(unsynced, synced));
}

}  // namespace
}  // namespace cframefs::fs
