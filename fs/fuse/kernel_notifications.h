// Sends the notifications by which the kernel drops what it has cached, through the FUSE session.
//
// Thread safety: internally synchronised; begin() comes before all other calls. Ownership: the session must live until
// end() has returned true, or the process ends. Errors: none; the kernel has nothing to drop, or the mount is ending.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "codec/base/mutex.h"
#include "fs/coherence/kernel_invalidator.h"

struct fuse_session;

namespace cframefs::fs {

class KernelNotifications final : public KernelInvalidator {
 public:
  void begin(fuse_session* session) { session_ = session; }
  /// Prevents new notifications and waits for those in flight. Returns false if some do not end in time.
  bool end();

  void invalidate_inode(NodeId node) override;
  void forget_range(NodeId node, std::uint64_t at, std::uint64_t length) override;
  void invalidate_entry(NodeId parent, const std::string& name) override;
  bool forget_attributes(NodeId node) override;
  bool invalidate_all_entries() override;

 private:
  int notify_inode(NodeId node, std::int64_t at, std::int64_t length);
  /// Calls `tell` unless the session has ended, because its descriptor may be another file by then.
  void notify(const std::function<void()>& tell);

  fuse_session* session_ = nullptr;
  codec::Mutex mutex_;
  codec::CondVar done_;
  bool ended_ GUARDED_BY(mutex_) = false;
  unsigned in_flight_ GUARDED_BY(mutex_) = 0;
};

}  // namespace cframefs::fs
