// File operations that forward to others, count their calls, fail the Nth of them once or for good, and can hold the
// Nth at a gate until the test opens it.
//
//   FailingFiles files;                            // over the system's; or FailingFiles files(simulated_disk)
//   files.count(FailingFiles::changes);            // only calls that change something; the default is every call
//   files.fail(3, ENOSPC);                         // the third from now fails, once, without effect
//   files.fail(3, EIO, FailingFiles::for_good);    // it and all that follow
//   files.fail(3, ENOSPC, FailingFiles::cut_short);  // half of it is written first, if it is a write
//   ... work; files.failed() is the call that failed, if it came ...
//   files.stop();                                  // nothing fails any more
//
//   files.hold(5); std::thread work(...);          // the fifth call from now waits before it does anything
//   ASSERT_TRUE(files.wait_until_held());          // some thread stands there; others go on
//   files.release(); work.join();
//
// A suite tries every call: for (n = 1;; ++n) { fail(n, ...); work(); if (!files.failed()) break; }
// close(), prefetch() and start_writeback() cannot fail and do not count.
//
// Thread safety: all members may be called at once. What count() is given is called under a lock and must not call
// back. Ownership: borrows the operations that it forwards to. Errors: kind io with the errno that was asked for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "frame/io/file_ops.h"

namespace cframefs::test {

/// A call, as far as tests tell them apart.
struct FileCall {
  enum class Kind : std::uint8_t {
    // What only looks.
    open,
    read,
    status,
    list,
    read_link,
    seek,
    get_attribute,  // and list_attributes(), check_rights()
    // What changes something.
    create,
    write,
    truncate,
    allocate,
    sync,
    rename,
    remove,
    make,  // directories, nodes, links
    change_attributes,
    lock,
  };
  Kind kind = Kind::open;
  frame::OpenFile fd;  // that it is about; of calls with a path the directory
  std::string path;    // of rename: the new name
};

class FailingFiles : public frame::FileOps {
 public:
  using Wanted = std::function<bool(const FileCall&)>;
  enum How : std::uint8_t {
    once,
    for_good,
    cut_short,           // once, after half of a write, rounded down to a whole sector of 512 bytes
    cut_short_for_good,  // the same; what follows fails without effect
  };

  explicit FailingFiles(frame::FileOps& base = frame::system_files()) : base_(base) {}

  /// Calls that `wanted` says no to neither count nor fail nor are held.
  void count(Wanted wanted);
  static bool every(const FileCall&) { return true; }
  static bool changes(const FileCall& call) { return call.kind >= FileCall::Kind::create; }
  static bool looks(const FileCall& call) { return call.kind < FileCall::Kind::create; }

  /// Call number `number` from now (from 1) fails.
  void fail(std::int64_t number, int error, How how = once);
  /// Nothing fails and nothing is held from now on. A thread that is held goes on.
  void stop();
  /// The first call that failed since fail().
  std::optional<FileCall> failed() const;
  /// Calls since fail(), hold() or count(), whichever was last.
  std::int64_t calls() const;

  /// Call number `number` from now (from 1) waits.
  void hold(std::int64_t number);
  /// False: no call has come there in that time.
  bool wait_until_held(std::chrono::milliseconds patience = std::chrono::seconds(60));
  void release();

  codec::Result<frame::OpenFile> open_at(frame::OpenFile dir, const std::string& path, int flags) override;
  codec::Result<frame::OpenFile> open_named(const std::string& path, int flags) override;
  codec::Result<frame::OpenFile> reopen(frame::OpenFile file, int flags) override;
  codec::Result<std::vector<std::uint8_t>> handle_of(frame::OpenFile file) override;
  codec::Result<frame::OpenFile> open_handle(frame::OpenFile mount, codec::ByteView handle, int flags) override;
  void close(frame::OpenFile file) override { base_.close(file); }
  std::optional<frame::SystemDescriptor> system_descriptor(frame::OpenFile file) const override {
    return base_.system_descriptor(file);
  }
  codec::Result<std::size_t> pread(frame::OpenFile file, codec::ByteSpan into, frame::FileOffset at) override;
  codec::Result<struct stat> status(frame::OpenFile file) override;
  codec::Result<struct stat> status_at(frame::OpenFile dir, const std::string& path) override;
  codec::Result<struct statvfs> filesystem_status(frame::OpenFile file) override;
  codec::Result<std::vector<frame::DirectoryEntry>> list(frame::OpenFile dir_fd) override;
  codec::Result<std::string> read_link(frame::OpenFile file) override;
  codec::Result<frame::FileOffset> seek(frame::OpenFile file, frame::FileOffset from, int whence) override;
  void note_access(frame::OpenFile file) override { base_.note_access(file); }
  void prefetch(frame::OpenFile file, frame::FileOffset at, std::uint64_t length) override {
    base_.prefetch(file, at, length);
  }
  codec::Result<void> check_rights(frame::OpenFile file, int rights) override;
  codec::Result<std::vector<std::string>> list_attributes(frame::OpenFile file) override;
  codec::Result<std::string> get_attribute(frame::OpenFile file, const std::string& name) override;
  codec::Result<frame::OpenFile> create_at(frame::OpenFile dir, const std::string& path, int flags,
                                           mode_t mode) override;
  codec::Result<void> pwrite(frame::OpenFile file, codec::ByteView from, frame::FileOffset at) override;
  codec::Result<void> truncate(frame::OpenFile file, std::uint64_t size) override;
  codec::Result<void> allocate(frame::OpenFile file, int mode, frame::FileOffset at, std::uint64_t length) override;
  codec::Result<void> sync(frame::OpenFile file, bool data_only) override;
  void start_writeback(frame::OpenFile file, frame::FileOffset at, std::uint64_t length) override {
    base_.start_writeback(file, at, length);
  }
  codec::Result<void> rename_at(frame::OpenFile from_dir, const std::string& from, frame::OpenFile to_dir,
                                const std::string& to, unsigned flags) override;
  codec::Result<void> remove_at(frame::OpenFile dir, const std::string& path, bool directory) override;
  codec::Result<void> make_directory_at(frame::OpenFile dir, const std::string& path, mode_t mode) override;
  codec::Result<void> make_node_at(frame::OpenFile dir, const std::string& path, mode_t mode, dev_t device) override;
  codec::Result<void> link_at(frame::OpenFile file, frame::OpenFile to_dir, const std::string& to) override;
  codec::Result<void> make_symlink_at(const std::string& target, frame::OpenFile dir, const std::string& path) override;
  codec::Result<void> change_mode(frame::OpenFile file, mode_t mode) override;
  codec::Result<void> change_owner(frame::OpenFile file, uid_t user, gid_t group) override;
  codec::Result<void> flush(frame::OpenFile file) override;
  codec::Result<void> set_times(frame::OpenFile file, const std::array<struct timespec, 2>& times) override;
  codec::Result<void> set_attribute(frame::OpenFile file, const std::string& name, const std::string& value,
                                    int flags) override;
  codec::Result<void> remove_attribute(frame::OpenFile file, const std::string& name) override;
  codec::Result<bool> try_lock(frame::OpenFile file, int operation) override;
  codec::Result<bool> try_byte_lock(frame::OpenFile file, frame::FileOffset at, frame::ByteLock action) override;

 private:
  /// How a call fails, if it does.
  struct Fault {
    int error = 0;
    bool half = false;
  };
  std::optional<Fault> enter(FileCall call);
  /// `go` unless the call is to fail.
  template <class Go>
  auto run(FileCall call, Go go) -> decltype(go());

  frame::FileOps& base_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Wanted wanted_;  // empty: every call
  std::int64_t calls_ = 0;
  std::int64_t fail_at_ = 0;  // 0: none
  std::int64_t hold_at_ = 0;
  int error_ = 0;
  How how_ = once;
  bool held_ = false;
  std::optional<FileCall> failed_;
};

}  // namespace cframefs::test
