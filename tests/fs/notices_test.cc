// Requests and changes of other files while the kernel keeps a notification of one file waiting.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "frame/io/system_version.h"
#include "tests/fs/gate.h"
#include "tests/fs/written_filesystem.h"

namespace cframefs::fs {
namespace {

/// Keeps notifications of one file waiting at a gate, those that could wait in the kernel, and counts them all.
class GatedKernel final : public KernelInvalidator {
 public:
  struct Told {
    int nodes = 0;
    int attributes = 0;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  };

  void invalidate_inode(NodeId node) override {
    note(node, [](Told& told) { ++told.nodes; });
    if (node == held_) gate.pass();
  }
  void forget_range(NodeId node, std::uint64_t at, std::uint64_t length) override {
    note(node, [&](Told& told) { told.ranges.emplace_back(at, length); });
    if (node == held_ && at < held_pages_.second && held_pages_.first < at + length) gate.pass();
  }
  void invalidate_entry(NodeId parent, const std::string& /*name*/) override {
    note(parent, [](Told& /*told*/) {});
  }
  bool forget_attributes(NodeId node) override {
    note(node, [](Told& told) { ++told.attributes; });
    return true;
  }
  /// Of the pages of a file that hold these bytes.
  void hold(NodeId node, std::uint64_t begin = 0, std::uint64_t end = UINT64_MAX) {
    held_pages_ = {begin, end};
    held_ = node;
  }
  Told told(NodeId node) {
    codec::MutexLock lock(mutex_);
    return told_[node];
  }
  /// Until a notification of the node has come that satisfies `is_it`.
  template <class Is>
  void wait_until(NodeId node, const Is& is_it) {
    codec::MutexLock lock(mutex_);
    while (!is_it(told_[node]))
      changed_.wait(mutex_);
  }

  Gate gate;

 private:
  void note(NodeId node, const std::function<void(Told&)>& change) {
    codec::MutexLock lock(mutex_);
    change(told_[node]);
    changed_.notify_all();
  }

  std::atomic<NodeId> held_{0};
  std::pair<std::uint64_t, std::uint64_t> held_pages_;  // set before held_
  codec::Mutex mutex_;
  codec::CondVar changed_;
  std::map<NodeId, Told> told_ GUARDED_BY(mutex_);
};

/// Keeps reads of one file waiting at a gate.
class GatedReads final : public test::ForwardingFiles {
 public:
  codec::Result<std::size_t> pread(frame::OpenFile file, codec::ByteSpan into, frame::FileOffset at) override {
    if (holds_reads && std::this_thread::get_id() == reader) gate.pass();
    return ForwardingFiles::pread(file, into, at);
  }
  std::atomic<bool> holds_reads{false};
  std::atomic<std::thread::id> reader{};
  Gate gate;
};

class Notices : public testing::Test {
 protected:
  void SetUp() override {
    options_.source = directory_.path();
    options_.names = Names::keep;
    filesystem_ = std::make_unique<Filesystem>(files_, options_);
    ASSERT_TRUE(filesystem_->open_source(false));
    filesystem_->start(kernel_);
  }
  void TearDown() override {
    kernel_.gate.open();
    files_.gate.open();
    open_.clear();
    filesystem_->stop();
  }

  /// A file that is passed through, whose pages and attributes the kernel knows.
  NodeId make(const std::string& name) {
    overwrite(name, 'a', std::ios::trunc);
    return enter(name);
  }
  /// A frame of two chunks.
  NodeId make_frame(const std::string& name) {
    auto created = filesystem_->names().create(kRootNode, name, O_RDWR | O_CREAT, 0644, {});
    EXPECT_TRUE(created) << created.error().reason;
    const std::vector<std::uint8_t> bytes(std::size_t{2} << 20, 'f');
    EXPECT_TRUE(filesystem_->files().write(*created->handle, 0, bytes, false));
    EXPECT_TRUE(filesystem_->files().flush(*created->handle));
    filesystem_->files().release(std::move(created->handle));
    return enter(name);
  }
  NodeId enter(const std::string& name) {
    const auto found = filesystem_->names().lookup(kRootNode, name);
    EXPECT_TRUE(found);
    auto handle = filesystem_->files().open(found->node);
    EXPECT_TRUE(handle);
    open_[found->node] = std::move(*handle);
    EXPECT_TRUE(filesystem_->attributes().of(found->node, nullptr));
    return found->node;
  }
  /// Behind the mount, with as many bytes as before.
  void overwrite(const std::string& name, char with, std::ios::openmode mode = std::ios::in) const {
    std::ofstream(directory_.path() / name, std::ios::out | mode) << std::string(5000, with);
  }
  /// Until what is seen of the file from now on is known to be its last state.
  void let_settle(const std::string& name) const {
    struct stat status {};
    do {
      ASSERT_EQ(::stat((directory_.path() / name).c_str(), &status), 0);
    } while (frame::version_of(status).racy);
  }
  /// The watcher has seen one change of the file and a stat a later one, and the kernel keeps all waiting that follows.
  void hold_after_changes(NodeId node, const std::string& name) {
    kernel_.hold(node);
    overwrite(name, 'b');
    kernel_.gate.wait_for(1);
    overwrite(name, 'c');
    let_settle(name);
    EXPECT_TRUE(filesystem_->attributes().of(node, nullptr));
  }
  /// Looks until it is so; false after 10 s.
  template <class Is>
  static bool becomes(const Is& is_it) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!is_it()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  bool opens_with_pages(NodeId node) {
    auto handle = filesystem_->files().open(node);
    EXPECT_TRUE(handle);
    const bool keeps = (*handle)->keep_pages;
    filesystem_->files().release(std::move(*handle));
    return keeps;
  }

  test::TempDir directory_;
  GatedReads files_;
  GatedKernel kernel_;
  MountOptions options_;
  std::unique_ptr<Filesystem> filesystem_;
  std::map<NodeId, std::unique_ptr<FileHandle>> open_;
};

TEST_F(Notices, AStatOfAFileWaitsForThePagesOfNoOther) {
  const NodeId held = make("held");
  const NodeId other = make("other");
  hold_after_changes(held, "held");
  overwrite("other", 'b');
  EXPECT_TRUE(filesystem_->attributes().of(other, nullptr));
  EXPECT_GE(kernel_.told(other).nodes, 1) << "its pages were dropped before the answer";
  kernel_.gate.open();
}

TEST_F(Notices, AChangeThatTheWatcherSeesWaitsForThePagesOfNoOther) {
  const NodeId held = make("held");
  const NodeId other = make("other");
  kernel_.hold(held);
  overwrite("held", 'b');
  kernel_.gate.wait_for(1);
  overwrite("other", 'b');
  kernel_.wait_until(other, [](const GatedKernel::Told& told) { return told.nodes > 0; });
  kernel_.gate.open();
}

TEST_F(Notices, AnOpenKeepsNoPagesThatAreStillToBeDropped) {
  const NodeId held = make("held");
  hold_after_changes(held, "held");
  EXPECT_FALSE(opens_with_pages(held)) << "the kernel is to drop them itself";
  kernel_.gate.open();
}

TEST_F(Notices, AttributesAreToldWhilePagesAreWaitedFor) {
  const NodeId held = make("held");
  hold_after_changes(held, "held");
  const int before = kernel_.told(held).attributes;
  overwrite("held", 'd');
  EXPECT_TRUE(filesystem_->attributes().of(held, nullptr));
  kernel_.wait_until(held, [before](const GatedKernel::Told& told) { return told.attributes > before; });
  kernel_.gate.open();
}

TEST_F(Notices, AStatOfAFileWhosePagesStayIsAnsweredAllTheSame) {
  const NodeId held = make("held");
  hold_after_changes(held, "held");
  EXPECT_TRUE(filesystem_->nodes().find(held)->pages.drops().are_pending());
}

TEST_F(Notices, TheMountEndsOnceTheKernelLetsGo) {
  const NodeId held = make("held");
  hold_after_changes(held, "held");
  auto stopped = std::async(std::launch::async, [this] { filesystem_->stop(); });
  kernel_.gate.open();
  stopped.get();
}

TEST_F(Notices, PagesOfAReadUnderWayAreNotWaitedFor) {
  const NodeId node = make_frame("x.b2frame");
  constexpr std::uint64_t kAt = std::uint64_t{1} << 20;
  constexpr std::uint64_t kLength = 8192;
  kernel_.hold(node, kAt, kAt + kLength);
  files_.holds_reads = true;
  auto answer = std::async(std::launch::async, [&] {
    files_.reader = std::this_thread::get_id();
    Reply reply;
    EXPECT_TRUE(filesystem_->files().read(*open_.at(node), kAt, kLength, reply, true));
    EXPECT_EQ(reply.size(), kLength);
    // As after the answer.
    kernel_.gate.open();
  });
  const OpensAtEnd lets_read(files_.gate);
  files_.gate.wait_for(1);
  const auto before = std::filesystem::last_write_time(directory_.path() / "x.b2frame");
  std::filesystem::last_write_time(directory_.path() / "x.b2frame", before - std::chrono::hours(1));
  EXPECT_TRUE(filesystem_->attributes().of(node, nullptr));
  // The watcher reports the same change, maybe only now, and has all others dropped once more.
  EXPECT_TRUE(becomes([&] { return !filesystem_->nodes().find(node)->pages.drops().are_pending(); }))
      << "a drop waits for the pages of the read";
  const auto ranges = kernel_.told(node).ranges;
  ASSERT_GE(ranges.size(), 2U);
  EXPECT_EQ(ranges[0], (std::pair{std::uint64_t{0}, kAt}));
  EXPECT_EQ(ranges[1].first, kAt + kLength);
  // Those of the read are dropped after it.
  kernel_.wait_until(node, [](const GatedKernel::Told& told) { return told.nodes > 0; });
  files_.gate.open();
  answer.get();
}

TEST_F(Notices, PagesOfAReadThatIsAnsweredAreWaitedFor) {
  const NodeId node = make_frame("x.b2frame");
  Reply reply;
  ASSERT_TRUE(filesystem_->files().read(*open_.at(node), 0, 8192, reply, true));
  EXPECT_TRUE(ReadsUnderWay::is_all(filesystem_->nodes().find(node)->reads.gaps()))
      << "what it holds may be older than the next look at the file";
}

}  // namespace
}  // namespace cframefs::fs
