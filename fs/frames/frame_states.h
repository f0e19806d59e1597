// Opens the state of a frame on disk as a snapshot, and keeps it while the file stays the same.
//
// Thread safety: all members may be called concurrently. Locks: those of Node and FileHandle, briefly; none during disk
// I/O. Ownership: readers share the snapshots. Errors: those of frame, logged once if they last; stale: the file kept
// changing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "frame/open/open_attempts.h"
#include "fs/coherence/kernel_pages.h"
#include "fs/mount/node_files.h"

namespace cframefs::fs {

class FrameStates {
 public:
  using State = std::shared_ptr<const FrameSnapshot>;

  FrameStates(MountContext& mount, NodeFiles& node_files, KernelPages& pages)
      : mount_(mount), node_files_(node_files), pages_(pages) {}

  /// Returns the present state of the open `file` of a frame.
  codec::Result<State> snapshot_of(Node& node, const std::shared_ptr<const frame::Descriptor>& file);
  enum class Look : std::uint8_t { first, after_read };
  /// Returns the present state of the handle's frame, and makes the kernel drop pages of an older one.
  codec::Result<State> current_snapshot(FileHandle& handle, Look kind = Look::first);
  /// Returns what programs see of a frame at `path`.
  codec::Result<std::shared_ptr<const frame::FlatView>> view_of(std::shared_ptr<const frame::Container> container,
                                                                const std::string& path) const;
  /// Returns the number of a new snapshot.
  std::uint64_t next_snapshot() { return next_snapshot_.fetch_add(1, std::memory_order_relaxed); }

 private:
  /// Makes one attempt of open_snapshot(). `path`: for messages. Sets `steady_version` to the version of the file if it
  /// was the same before and after the attempt, else to nullopt.
  frame::OpenAttempt<State> attempt_snapshot(Node& node, const std::shared_ptr<const frame::Descriptor>& file,
                                             const std::string& path,
                                             std::optional<frame::FileVersion>& steady_version);
  codec::Result<State> open_snapshot(Node& node, const std::shared_ptr<const frame::Descriptor>& file);
  /// Logs metadata that cannot be read; the data may be readable.
  void note_metalayer_damage(const frame::Container& container, const std::string& path);
  /// Returns true if a stat has found this state of the file damaged, and has logged the damage.
  static bool is_known_damaged(Node& node, const frame::FileVersion& identity);

  MountContext& mount_;
  NodeFiles& node_files_;
  KernelPages& pages_;
  std::atomic<std::uint64_t> next_snapshot_{1};
};

}  // namespace cframefs::fs
