// A small process that has the kernel read blocks of files of the mount into its page cache.
//
// It is an ordinary reader: it opens files of the mount and calls posix_fadvise(2). So the pages that it fills are as
// new as those of any other reader, and the same invalidations drop them. It is a process of its own because a daemon
// that waits for requests to itself could not be killed: this process has no descriptor of the device, so the
// connection ends with the daemon whatever this process waits for.
//
// It has a copy of the mount that is in no directory tree, so that its files do not keep umount(2) from unmounting. It
// ends as soon as the kernel reports that the mount is gone: the copy would keep the daemon serving. It also ends with
// the daemon.
//
// It needs root: to copy the mount (CAP_SYS_ADMIN) and to open files by the kernel's node numbers
// (CAP_DAC_READ_SEARCH).
//
// Thread safety: start() while no other thread runs, mounted() before fill(), and fill() by any thread. Ownership: the
// process ends by itself. Errors: the mount works without it.
#pragma once

#include <string>

#include "codec/base/error.h"
#include "fs/coherence/page_filler.h"
#include "fs/util/mount_info.h"

namespace cframefs::fs {

class PageFillProcess final : public PageFiller {
 public:
  PageFillProcess() = default;
  ~PageFillProcess() override;
  PageFillProcess(const PageFillProcess&) = delete;
  PageFillProcess& operator=(const PageFillProcess&) = delete;

  /// Starts the process, before the mount exists, so that it gets no descriptor of the device. `mountpoint`: resolved.
  /// `is_filtered`: the process gives up system calls that it does not need. Error io: it cannot be started; EPERM: the
  /// caller is not root; EBUSY: another thread runs, which could hold a lock for ever in the new process.
  codec::Result<void> start(const std::string& mountpoint, bool is_filtered);
  bool is_started() const { return messages_ >= 0; }
  /// Sends the process the mount that is now on top of the mount point.
  void mounted(const MountIdentity& mount) const;

  bool fill(NodeId node, std::uint64_t state, std::uint64_t at, std::uint64_t length) override;

 private:
  int messages_ = -1;  // a socket to the process
};

}  // namespace cframefs::fs
