// Maps FUSE requests to calls of Filesystem and results to replies. Knows neither formats nor caching.
//
// Thread safety: the session's threads call it concurrently. Ownership: the filesystem and the callback must outlive
// the session. Errors: to errno by fs/util/errno_table.h, in the adapter only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codec/base/error.h"
#include "codec/base/turns.h"
#include "fs/filesystem.h"
#include "fs/fuse/idle_schedule.h"
#include "fs/fuse/init_answer.h"
#include "fs/fuse/kernel_notifications.h"
#include "fs/fuse/open_handles.h"
#include "fs/kernel/backing_files.h"
#include "fs/util/refusal_log.h"

struct fuse_session;

namespace cframefs::fs {

/// How a session is served.
struct ServiceOptions {
  unsigned threads = 1;  // 1 or more
  IdleLimits idle;
  std::function<void()> unmount_idle;  // called when idle.unmount has passed; may wait for requests
  std::function<void()> on_end;        // called when no more requests are taken; ends what answers wait for
};

class FuseAdapter {
 public:
  /// Bytes of the largest read request. By measurement, two decoding threads stay busier with requests of this size
  /// than with larger ones.
  static constexpr std::uint32_t kMaxRead = 512U << 10;
  /// Upper bound of the kernel's read-ahead, in bytes.
  static constexpr std::uint32_t kMaxReadahead = 4U << 20;

  /// Calls `ready` once, from a session thread, when the kernel's INIT has been answered.
  FuseAdapter(Filesystem& filesystem, std::function<void()> ready);
  ~FuseAdapter();
  FuseAdapter(const FuseAdapter&) = delete;
  FuseAdapter& operator=(const FuseAdapter&) = delete;

  /// Mounts. `arguments`: mount options in the syntax of "-o", one each.
  codec::Result<void> mount(const std::string& mountpoint, const std::vector<std::string>& arguments, bool debug);
  /// Serves until the mount is gone or a signal asks to stop. Returns the name of that signal, or nothing.
  codec::Result<std::string> serve(const ServiceOptions& service);
  /// Unmounts. Calls `release_readers`, which aborts the connection, if the kernel blocks a notification for a reader
  /// that no thread answers any more. `by_guard`: unmounts in place of this process, which may not; called once no
  /// request reaches it any more, unless the mount has ended.
  void unmount(
      const std::function<void()>& release_readers = [] {}, const std::function<void()>& by_guard = {});

  /// Drops the handles that the kernel has not released. REQUIRES: serve() and the filesystem's stop() have returned.
  void drop_handles();

  Filesystem& filesystem() { return filesystem_; }
  /// Invalidates what the kernel has cached, from mount() until unmount().
  KernelInvalidator& kernel() { return notifications_; }
  OpenHandles<FileHandle>& files() { return files_; }
  OpenHandles<DirectoryHandle>& directories() { return directories_; }
  /// Turns of requests for entries of large directories: half as many as processors. With as many as processors, small
  /// requests were measured to wait 3 to 31 times as long as on an idle mount.
  codec::Turns& listings() { return listings_; }
  RefusalLog& refusals() { return refusals_; }
  /// Returns whether the kernel can read and write passed-through files itself. REQUIRES: its INIT has been answered.
  bool passes_files() const { return init_.has_backing(); }
  BackingFiles& backing() { return backing_; }
  /// Called when the kernel's INIT has arrived. `protocol`: the minor number of the kernel's protocol.
  void ready(std::uint32_t protocol);
  /// Returns true if O_WRONLY handles should bypass the kernel's page cache, which makes writes twice as fast. Requires
  /// a kernel that drops the pages of readers before and after each direct write.
  bool writes_directly() const { return writes_directly_; }
  /// Notes that a file gets a set-user-ID bit or a capability: from then on direct writes must clear them.
  void note_privileges() { knows_of_privileges_ = true; }
  bool knows_of_privileges() const { return knows_of_privileges_; }
  /// Returns true once the mount is ending with writeback=on: data that programs write into the kernel's write-back
  /// cache would be lost. The kernel requests a file's attributes before each such write, and getattr then fails.
  bool refuses_cached_writes() const { return refuses_cached_writes_; }

 private:
  void drop_caches();
  /// Makes the kernel write its dirty pages to the daemon.
  void flush_page_cache();
  /// Has libfuse read and write the device by way of `init_`.
  codec::Result<void> use_own_device_calls();

  Filesystem& filesystem_;
  const std::function<void()> ready_;
  fuse_session* session_ = nullptr;
  InitAnswer init_;
  std::atomic<bool> writes_directly_{false};
  std::atomic<bool> knows_of_privileges_{false};
  std::atomic<bool> refuses_cached_writes_{false};
  OpenHandles<FileHandle> files_;
  OpenHandles<DirectoryHandle> directories_;
  codec::Turns listings_;
  RefusalLog refusals_;
  BackingFiles backing_;
  KernelNotifications notifications_;
};

}  // namespace cframefs::fs
