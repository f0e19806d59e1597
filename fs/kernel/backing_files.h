// Files of the source that the kernel reads, writes and maps itself, without requests to the daemon (FUSE passthrough,
// Linux 6.9).
//
// The kernel knows such a file by a number, its backing id. All handles of one inode have the same id, or all have
// none: the kernel fails an open that differs from those before it. So the handles share one BackingFile, and the id
// ends with the last of them.
//
// Thread safety: BackingFile is constant; BackingFiles is internally synchronised. Ownership: handles share a
// BackingFile, which may outlive the connection. Errors: none; a file without an id is served by the daemon.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace cframefs::fs {

/// The device of the connection; -1 before it begins and once it ends, which ends all ids.
using BackingDevice = std::atomic<int>;

class BackingFile {
 public:
  /// Registers a file with the kernel. The object has no id if the kernel refuses: the file lies on a filesystem that
  /// is itself stacked on another, or the daemon may not do this. `file`: an open descriptor, which may be closed
  /// later.
  BackingFile(std::shared_ptr<const BackingDevice> device, int file);
  ~BackingFile();
  BackingFile(const BackingFile&) = delete;
  BackingFile& operator=(const BackingFile&) = delete;

  bool has_id() const { return id_ > 0; }
  /// REQUIRES: has_id().
  std::int32_t id() const { return id_; }

 private:
  const std::shared_ptr<const BackingDevice> device_;
  std::int32_t id_ = 0;
};

class BackingFiles {
 public:
  /// `device`: the session's descriptor.
  void begin(int device) { *device_ = device; }
  /// Called before the descriptor is closed.
  void end() { *device_ = -1; }
  std::shared_ptr<const BackingFile> add(int file) { return std::make_shared<const BackingFile>(device_, file); }

 private:
  const std::shared_ptr<BackingDevice> device_ = std::make_shared<BackingDevice>(-1);
};

}  // namespace cframefs::fs
