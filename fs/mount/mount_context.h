// What all parts of a mount share: its files and options, the tables of nodes and directories, and the two locks that
// keep names on disk and nodes consistent. State of one part only belongs to that part.
//
// Thread safety: the members synchronise themselves; the values that open_source() sets do not change afterwards. Lock
// order: fs/doc/threads-and-locks.md. Ownership: one for a mount; outlives its parts, which refer to it. Units: bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "codec/base/mutex.h"
#include "codec/base/shared_mutex.h"
#include "frame/open/open.h"
#include "fs/read/read_path.h"
#include "fs/tree/descriptor_reserve.h"
#include "fs/tree/held_directories.h"
#include "fs/tree/node_table.h"
#include "fs/tree/source_tree.h"
#include "fs/tree/watcher.h"
#include "fs/util/options.h"
#include "fs/util/statistics.h"
#include "fs/util/worker_pool.h"

namespace cframefs::fs {

/// Why a mount is read-only.
enum class ReadOnly : std::uint8_t {
  no,
  option,  // `ro`: until root remounts it
  offset,  // a frame inside a file
  source   // the filesystem of the source is read-only
};

struct MountContext {
  /// `reporter`: called with the changes that the watcher sees.
  MountContext(frame::FileOps& file_ops, MountOptions mount_options, Watcher::Reporter reporter);

  frame::FileOps& files;
  const MountOptions options;
  const std::uint64_t memory;  // bytes that the process may use, determined when the mount begins
  const DescriptorReserve reserve;
  Statistics statistics;
  DedupLogger once;
  ReadPath read_path;  // declared before the members that may hold a snapshot
  SourceTree tree;
  NodeTable nodes;
  HeldDirectories directories{files, nodes};
  const std::shared_ptr<frame::IndexCache> index_cache;
  WorkerPool workers;
  Watcher watcher;
  bool root_is_file = false;  // the mount point is a regular file: the root is the view of the one frame
  std::atomic<ReadOnly> read_only{ReadOnly::source};
  /// Returns whether the kernel lets programs write to the mount. The daemon sets it before the mount serves.
  std::function<bool()> is_kernel_writable;
  /// Held while an entry is created, renamed or removed; taken before any node's mutexes.
  codec::Mutex changes;
  /// Keeps names on disk and the places of nodes consistent: held exclusive while an entry is renamed or removed in
  /// both, shared while a place from the table is used on disk or the reverse. Taken after `changes`, the mutexes of
  /// commits and Node::change_mutex, before the other mutexes of nodes and layers.
  codec::SharedMutex names;

  bool is_read_only() const { return read_only.load(std::memory_order_relaxed) != ReadOnly::no; }
  /// Returns EROFS with the reason if nothing may be changed. The kernel does not report a remount: for a change on a
  /// mount with the option `ro` the function calls is_kernel_writable(), and the mount is read-write from then on if
  /// that returns true. `doing`: the operation.
  codec::Result<void> check_writable(const char* doing);
};

/// Returns the number of threads that decode ahead.
unsigned ahead_threads(const MountOptions& options);

}  // namespace cframefs::fs
