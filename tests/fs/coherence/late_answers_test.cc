#include "fs/coherence/late_answers.h"

#include <string>

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

/// Does not know a node until it has been told of it a number of times.
class LateKernel final : public KernelInvalidator {
 public:
  void invalidate_inode(NodeId /*node*/) override {}
  void invalidate_entry(NodeId /*parent*/, const std::string& /*name*/) override {}
  bool forget_attributes(NodeId /*node*/) override {
    codec::MutexLock lock(mutex_);
    ++told_;
    changed_.notify_all();
    return told_ > unknown_;
  }
  void know_after(int times) {
    codec::MutexLock lock(mutex_);
    unknown_ = times;
  }
  void wait_for(int times) {
    codec::MutexLock lock(mutex_);
    while (told_ < times)
      changed_.wait(mutex_);
  }
  int told() {
    codec::MutexLock lock(mutex_);
    return told_;
  }

 private:
  codec::Mutex mutex_;
  codec::CondVar changed_;
  int told_ GUARDED_BY(mutex_) = 0;
  int unknown_ GUARDED_BY(mutex_) = 0;
};

class LateAnswersTest : public testing::Test {
 protected:
  LateAnswersTest() {
    EntryStat probe;
    probe.kind = EntryKind::plain;
    probe.entry_inode = 9;
    node_ = nodes_.enter(kRootNode, "x", NodeRole::stored, probe)->id;
    late_.start(kernel_);
  }

  NodeTable nodes_;
  LateKernel kernel_;
  NodeId node_ = 0;
  LateAnswers late_{nodes_};
};

TEST_F(LateAnswersTest, AKernelThatKnowsTheNodeIsToldOnce) {
  late_.forget(node_);
  EXPECT_EQ(kernel_.told(), 1);
}

TEST_F(LateAnswersTest, AKernelThatDoesNotKnowTheNodeYetIsToldAgain) {
  kernel_.know_after(3);
  late_.forget(node_);
  kernel_.wait_for(4);
  late_.stop();
  EXPECT_EQ(kernel_.told(), 4);
}

TEST_F(LateAnswersTest, ANodeThatTheKernelHasForgottenIsNotRepeated) {
  kernel_.know_after(1000);
  nodes_.forget(node_, 1);
  late_.forget(node_);
  EXPECT_EQ(kernel_.told(), 1);
}

TEST_F(LateAnswersTest, ANodeThatIsForgottenMeanwhileEndsTheRepetition) {
  kernel_.know_after(1'000'000);
  late_.forget(node_);
  kernel_.wait_for(2);
  nodes_.forget(node_, 1);
  const int told = kernel_.told();
  kernel_.know_after(0);
  late_.stop();
  EXPECT_LE(kernel_.told(), told + 1);
}

}  // namespace
}  // namespace cframefs::fs
