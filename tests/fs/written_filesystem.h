// A filesystem object over a directory of its own, for tests that change things without a mount.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "codec/base/mutex.h"
#include "frame/io/system_version.h"
#include "fs/filesystem.h"
#include "fs/util/errno_table.h"
#include "tests/fs/gate.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/temp_dir.h"

namespace cframefs::fs {

/// Counts what the kernel is told to forget.
class CountingKernel final : public KernelInvalidator {
 public:
  void invalidate_inode(NodeId node) override {
    ++nodes;
    if (node != kRootNode) ++files;
  }
  /// Of a directory, the kernel is told to forget nothing else.
  bool forget_attributes(NodeId node) override {
    if (node == kRootNode) ++nodes;
    return true;
  }
  void invalidate_entry(NodeId /*parent*/, const std::string& name) override {
    codec::MutexLock lock(mutex_);
    names_.insert(name);
  }
  /// Those that it was told to forget.
  std::set<std::string> names() {
    codec::MutexLock lock(mutex_);
    return names_;
  }
  std::atomic<int> nodes{0};
  std::atomic<int> files{0};  // not the root

 private:
  codec::Mutex mutex_;
  std::set<std::string> names_ GUARDED_BY(mutex_);
};

/// Fails writes or syncs while told to, as a full or broken disk does, and remembers renames and syncs in their order.
class FaultyDisk final : public test::ForwardingFiles {
 public:
  enum class Event : std::uint8_t { named, directory_synced, file_synced };

  codec::Result<void> pwrite(frame::OpenFile file, codec::ByteView from, frame::FileOffset at) override {
    if (write_error != 0) return codec::io_error(write_error, "pwrite");
    if (writes_left == 0) return codec::io_error(ENOSPC, "pwrite");
    if (writes_left > 0) --writes_left;
    return ForwardingFiles::pwrite(file, from, at);
  }
  codec::Result<void> sync(frame::OpenFile file, bool data_only) override {
    if (sync_error != 0) return codec::io_error(sync_error, "sync");
    if (syncs_left >= 0 && syncs_left-- == 0) return codec::io_error(EIO, "sync");
    ++syncs;
    const auto synced = status(file);
    note(synced && S_ISDIR(synced->st_mode) ? Event::directory_synced : Event::file_synced);
    return ForwardingFiles::sync(file, data_only);
  }
  codec::Result<void> rename_at(frame::OpenFile from_dir, const std::string& from, frame::OpenFile to_dir,
                                const std::string& to, unsigned flags) override {
    note(Event::named);
    auto renamed = ForwardingFiles::rename_at(from_dir, from, to_dir, to, flags);
    if (after_rename) after_rename();
    return renamed;
  }
  codec::Result<void> link_at(frame::OpenFile file, frame::OpenFile to_dir, const std::string& to) override {
    note(Event::named);
    return ForwardingFiles::link_at(file, to_dir, to);
  }
  /// Since the last call.
  std::vector<Event> take_events() {
    codec::MutexLock lock(mutex_);
    return std::exchange(events_, {});
  }
  void prefetch(frame::OpenFile handle, frame::FileOffset at, std::uint64_t length) override {
    const auto file = status(handle);
    EXPECT_TRUE(file && at.value + length <= static_cast<std::uint64_t>(file->st_size));
    asked_to_read += length;
    ForwardingFiles::prefetch(handle, at, length);
  }
  void start_writeback(frame::OpenFile file, frame::FileOffset at, std::uint64_t length) override {
    asked_to_write += length;
    ForwardingFiles::start_writeback(file, at, length);
  }
  codec::Result<std::size_t> pread(frame::OpenFile file, codec::ByteSpan into, frame::FileOffset at) override {
    if (Gate* gate = read_gate) gate->pass();
    if (asking == std::this_thread::get_id() && before_read) before_read();
    return ForwardingFiles::pread(file, into, at);
  }
  codec::Result<struct stat> status_at(frame::OpenFile dir, const std::string& path) override {
    auto status = changing(ForwardingFiles::status_at(dir, path));
    if (asking == std::this_thread::get_id() && after_status) after_status();
    return status;
  }
  codec::Result<struct stat> status(frame::OpenFile file) override { return changing(ForwardingFiles::status(file)); }
  codec::Result<bool> try_lock(frame::OpenFile file, int operation) override {
    if (operation == LOCK_UN) return ForwardingFiles::try_lock(file, operation);
    ++locks_tried;
    if (refused_locks != 0) {
      if (refused_locks > 0) --refused_locks;
      if (at_refused_lock) at_refused_lock();
      return false;
    }
    return ForwardingFiles::try_lock(file, operation);
  }
  codec::Result<void> flush(frame::OpenFile file) override {
    ++flushes;
    return flush_error != 0 ? codec::io_error(flush_error, "close") : ForwardingFiles::flush(file);
  }
  codec::Result<std::vector<frame::DirectoryEntry>> list(frame::OpenFile directory) override {
    if (lists_lack_memory) throw std::bad_alloc();
    return ForwardingFiles::list(directory);
  }
  std::atomic<bool> lists_lack_memory{false};
  std::atomic<bool> keeps_changing{false};  // every file, as far as its stamps tell
  std::atomic<int> flush_error{0};          // what the filesystem tells at close alone
  std::atomic<Gate*> read_gate{nullptr};
  std::atomic<int> flushes{0};
  std::atomic<int> refused_locks{0};      // as if other programs held them; negative: all
  std::function<void()> at_refused_lock;  // in the thread that asks for it
  std::atomic<int> locks_tried{0};
  std::function<void()> after_status;  // for calls of `asking`, which sets it
  std::function<void()> before_read;   // the same
  std::function<void()> after_rename;  // of any thread
  const std::thread::id asking = std::this_thread::get_id();
  std::atomic<int> write_error{0};
  std::atomic<int> writes_left{-1};  // then the disk is full; negative: it never is
  std::atomic<int> sync_error{0};
  std::atomic<int> syncs_left{-1};  // then one fails; negative: none does
  std::atomic<int> syncs{0};
  std::atomic<std::uint64_t> asked_to_read{0};   // bytes
  std::atomic<std::uint64_t> asked_to_write{0};  // bytes

 private:
  codec::Result<struct stat> changing(codec::Result<struct stat> status) const {
    if (status && keeps_changing) clock_gettime(CLOCK_REALTIME, &status->st_ctim);
    return status;
  }
  void note(Event event) {
    codec::MutexLock lock(mutex_);
    events_.push_back(event);
  }
  codec::Mutex mutex_;
  std::vector<Event> events_ GUARDED_BY(mutex_);
};

class WrittenFilesystem : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.source = directory_.path();
    options_.new_frames.chunksize = 4096;
    options_.commit_interval = 1000;
    start();
  }
  void TearDown() override { stop(); }

  void start() {
    filesystem_ = std::make_unique<Filesystem>(*files_, options_);
    ASSERT_TRUE(filesystem_->open_source(false));
    filesystem_->start(kernel_, {}, begin_worker_);
  }
  void stop() {
    if (filesystem_) filesystem_->stop();
    filesystem_.reset();
  }
  void remount() {
    stop();
    start();
  }

  std::unique_ptr<FileHandle> create(const std::string& name, int flags = O_RDWR) {
    auto created = filesystem_->names().create(kRootNode, name, flags | O_CREAT, 0644, {});
    // The kernel looks again, and finds a file.
    if (!created && created.error().kind == codec::ErrorKind::stale) return open(name, flags);
    EXPECT_TRUE(created) << created.error().reason;
    return created ? std::move(created->handle) : nullptr;
  }
  std::unique_ptr<FileHandle> open(const std::string& name, int flags = O_RDWR) {
    auto found = filesystem_->names().lookup(kRootNode, name);
    EXPECT_TRUE(found) << found.error().reason;
    auto handle = filesystem_->files().open(found->node, flags);
    EXPECT_TRUE(handle) << handle.error().reason;
    return handle ? std::move(*handle) : nullptr;
  }
  /// As close(2): what flush answers.
  codec::Result<void> close(std::unique_ptr<FileHandle> handle) {
    auto done = filesystem_->files().flush(*handle);
    filesystem_->files().release(std::move(handle));
    return done;
  }
  codec::Result<void> write(FileHandle& handle, std::uint64_t at, const std::string& text) {
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    return filesystem_->files().write(handle, at, bytes, false);
  }
  std::string read(FileHandle& handle, std::uint64_t at = 0, std::size_t length = 1 << 20) {
    Reply reply;
    auto done = filesystem_->files().read(handle, at, length, reply);
    EXPECT_TRUE(done) << done.error().reason;
    std::vector<std::uint8_t> bytes(reply.size());
    reply.copy_to(bytes.data());
    return {bytes.begin(), bytes.end()};
  }
  std::string content(const std::string& name) {
    auto handle = open(name, O_RDONLY);
    std::string text = handle ? read(*handle) : "";
    if (handle) filesystem_->files().release(std::move(handle));
    return text;
  }
  codec::Result<Attributes> resize(FileHandle& handle, std::uint64_t size) {
    AttributeChanges changes;
    changes.size = size;
    return filesystem_->attributes().change(handle.node->id, &handle, changes);
  }
  /// Waits until a change of the frame must change its time stamp: a reader that opened it earlier opens it once more
  /// afterwards, and does not use what it decoded until then.
  void let_settle(const std::string& name) const {
    struct stat status {};
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ASSERT_EQ(::stat((directory_.path() / (name + ".b2frame")).c_str(), &status), 0);
    } while (frame::version_of(status).racy);
  }
  NodeId node_of(const std::string& name) {
    const auto found = filesystem_->names().lookup(kRootNode, name);
    return found ? found->node : 0;
  }
  std::uint64_t size_of(const std::string& name) {
    auto found = filesystem_->names().lookup(kRootNode, name);
    EXPECT_TRUE(found);
    return static_cast<std::uint64_t>(found->status.st_size);
  }
  /// Names on disk, hidden ones too.
  std::vector<std::string> on_disk() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path()))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  /// As another reader sees the frame, straight from the disk.
  std::shared_ptr<const frame::Container> stored(const std::string& name) {
    auto opened = frame::open_path(frame::system_files(), directory_.path() / name, nullptr);
    EXPECT_TRUE(opened) << opened.error().reason;
    return opened ? *opened : nullptr;
  }

  test::TempDir directory_;
  FaultyDisk disk_;
  frame::FileOps* files_ = &disk_;
  CountingKernel kernel_;
  std::function<void()> begin_worker_;  // called in each decoding thread
  MountOptions options_;
  std::unique_ptr<Filesystem> filesystem_;
};

template <class T>
int errno_of(const codec::Result<T>& result) {
  return result ? 0 : to_errno(result.error());
}

}  // namespace cframefs::fs
