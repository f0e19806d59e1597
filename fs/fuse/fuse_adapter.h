// The one place where FUSE's calls meet the filesystem object. It maps requests to calls and results to replies, and
// knows neither formats nor caching.
//
// Thread safety: the session's threads call it at once. Ownership: the filesystem and the callback must outlive the
// session. Errors: to errno by fs/util/errno_table.h, here and nowhere else.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codec/base/error.h"
#include "codec/base/mutex.h"
#include "codec/base/turns.h"
#include "fs/filesystem.h"
#include "fs/fuse/open_handles.h"

struct fuse_session;

namespace cframefs::fs {

class FuseAdapter final : public KernelInvalidator {
 public:
  /// The most that the kernel asks for in one request. Two threads that decode what they are asked for were measured
  /// to stay busier with these than with larger ones.
  static constexpr std::uint32_t kMaxRead = 512U << 10;
  /// The most that it is allowed to ask ahead of a reader.
  static constexpr std::uint32_t kMaxReadahead = 4U << 20;

  /// `ready` is called once, from a session thread, when the kernel's INIT has been answered.
  FuseAdapter(Filesystem& filesystem, std::function<void()> ready);
  ~FuseAdapter() override;
  FuseAdapter(const FuseAdapter&) = delete;
  FuseAdapter& operator=(const FuseAdapter&) = delete;

  /// `arguments`: mount options as "-o" takes them, one each.
  codec::Result<void> mount(const std::string& mountpoint, const std::vector<std::string>& arguments, bool debug);
  /// Serves until the mount is gone or a signal asks to stop. `threads`: 1 or more.
  codec::Result<void> serve(unsigned threads);
  /// `release_readers`: called if the kernel keeps a notification waiting for a reader that no thread answers any more;
  /// is to abort the connection.
  void unmount(const std::function<void()>& release_readers = [] {});

  void invalidate_inode(NodeId node) override;
  void forget_range(NodeId node, std::uint64_t at, std::uint64_t length) override;
  void invalidate_entry(NodeId parent, const std::string& name) override;
  void forget_attributes(NodeId node) override;
  bool invalidate_all_entries() override;

  /// Drops the handles that the kernel has not released. After serve() and the filesystem's stop().
  void drop_handles();

  Filesystem& filesystem() { return filesystem_; }
  OpenHandles<FileHandle>& files() { return files_; }
  OpenHandles<DirectoryHandle>& directories() { return directories_; }
  /// Of requests for entries of large directories: half as many at once as there are processors, so that a crowd of
  /// them leaves time for everything else: with all processors, small requests were measured to wait 3 to 31 times as
  /// long as on an idle mount.
  codec::Turns& listings() { return listings_; }
  /// What the kernel can do is known. `protocol`: the minor number of the one it speaks.
  void ready(std::uint32_t protocol);
  /// Whether what is written through handles that cannot read should pass the kernel's page cache by: such writes are
  /// twice as fast. Only kernels that drop the pages of readers before and after each write are trusted with it.
  bool writes_directly() const { return writes_directly_; }
  /// Somebody gives set-user-ID bits or capabilities to a file: direct writes have to look from now on.
  void note_privileges() { knows_of_privileges_ = true; }
  bool knows_of_privileges() const { return knows_of_privileges_; }
  /// The mount ends: what programs write into the kernel's write-back cache from now on would be lost with it. The
  /// kernel asks for a file's attributes before each such write, and is to be told that there are none.
  bool refuses_cached_writes() const { return refuses_cached_writes_; }

 private:
  /// Has the kernel hand over what programs have written and it keeps in its pages.
  void flush_page_cache();
  /// No more of them begin. False if some do not end.
  bool wait_for_notifications();
  /// Calls `tell` unless the session has ended: then its descriptor may be another file already.
  void notify(const std::function<void()>& tell);

  Filesystem& filesystem_;
  const std::function<void()> ready_;
  fuse_session* session_ = nullptr;
  std::atomic<bool> writes_directly_{false};
  std::atomic<bool> knows_of_privileges_{false};
  std::atomic<bool> refuses_cached_writes_{false};
  OpenHandles<FileHandle> files_;
  OpenHandles<DirectoryHandle> directories_;
  codec::Turns listings_;
  codec::Mutex mutex_;
  codec::CondVar notify_done_;
  bool ended_ GUARDED_BY(mutex_) = false;
  unsigned notifications_in_flight_ GUARDED_BY(mutex_) = 0;  // notifications under way
};

}  // namespace cframefs::fs
