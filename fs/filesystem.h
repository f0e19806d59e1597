// The filesystem behind the mount, without FUSE: every operation as a plain call that tests can make.
//
// Thread safety: all operations may be called at once; a FileHandle and a DirectoryHandle serve many threads.
// Ownership: handles belong to the caller and must be dropped before the filesystem. Units: bytes.
// Errors: values; the adapter turns them into errno. What damages a file is logged once, here.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fs/node_table.h"
#include "fs/options.h"
#include "fs/read_ahead.h"
#include "fs/read_route.h"
#include "fs/source_tree.h"
#include "fs/statistics.h"
#include "fs/watcher.h"
#include "fs/worker_pool.h"

namespace cframefs::fs {

/// What the kernel is told of a file.
struct Attributes {
  NodeId node = 0;
  struct stat status {};
  double attr_timeout = 0;   // seconds
  double entry_timeout = 0;  // seconds
};

struct FileHandle {
  std::shared_ptr<Node> node;
  std::shared_ptr<const frame::Descriptor> file;  // none for control files
  std::string content;                            // of a control file, as it was when opened

  codec::Mutex mutex;
  std::shared_ptr<const Generation> generation GUARDED_BY(mutex);  // frames only
  std::unique_ptr<ReadAhead> ahead;                                // frames only

  // For the reply to open.
  bool keep_pages = false;  // what the kernel has cached of this file is still true
  bool direct = false;      // reads must come through as they are
};

struct DirectoryHandle {
  std::shared_ptr<Node> node;
  std::vector<ShownEntry> entries;
  std::uint64_t parent_inode = 0;
};

/// What the kernel must be told to forget when a backing file has changed. Called from a thread of its own that holds
/// no lock; the calls may block until requests under way are answered.
class KernelCaches {
 public:
  virtual ~KernelCaches() = default;
  /// Attributes and pages of a node.
  virtual void forget_node(NodeId node) = 0;
  virtual void forget_name(NodeId parent, const std::string& name) = 0;
};

class Filesystem {
 public:
  Filesystem(frame::FileOps& files, const MountOptions& options);
  ~Filesystem();

  /// Opens the source. `root_is_file`: the mount point is a regular file, so the root is the view of the one frame.
  codec::Result<void> open_source(bool root_is_file);
  /// Starts threads; after going to the background. `kernel` must live until stop().
  void start(KernelCaches& kernel);
  void stop();

  codec::Result<Attributes> lookup(NodeId parent, const std::string& name);
  void forget(NodeId node, std::uint64_t lookups);
  /// `handle`: an open handle of the node, or null.
  codec::Result<Attributes> attributes(NodeId node, FileHandle* handle);
  codec::Result<std::string> read_link(NodeId node);

  codec::Result<std::unique_ptr<DirectoryHandle>> open_directory(NodeId node);

  codec::Result<std::unique_ptr<FileHandle>> open(NodeId node);
  codec::Result<void> read(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply);
  /// lseek(2) with SEEK_DATA or SEEK_HOLE.
  codec::Result<std::uint64_t> seek(FileHandle& handle, std::uint64_t from, int whence);

  codec::Result<struct statvfs> filesystem_status();
  codec::Result<std::vector<std::string>> list_attributes(NodeId node);
  codec::Result<std::string> get_attribute(NodeId node, const std::string& name);

  const MountOptions& options() const { return options_; }
  Statistics& statistics() { return statistics_; }
  NodeTable& nodes() { return nodes_; }
  SourceTree& tree() { return tree_; }
  ReadRoute& route() { return route_; }

 private:
  codec::Result<Probe> probe_node(Node& node);
  codec::Result<std::string> path_of(NodeId node) const;
  void watch(Node& folder, const std::string& path);
  void changed(const Watcher::Change& change);
  /// Waits until the kernel holds no page of the node, as far as that can be waited for.
  void drop_pages(NodeId node);
  Attributes describe(const Node& node, const Probe& probe) const;
  codec::Result<std::shared_ptr<const Generation>> generation_of(Node& node, const std::string& path,
                                                                 const std::shared_ptr<const frame::Descriptor>& file);
  codec::Result<std::shared_ptr<const Generation>> open_generation(
      Node& node, const std::string& path, const std::shared_ptr<const frame::Descriptor>& file);
  /// This state of the file was found damaged, and that was logged, when it was looked at.
  static bool is_known_damaged(Node& node, const frame::Identity& identity);
  codec::Result<std::shared_ptr<const Generation>> current_generation(FileHandle& handle);
  codec::Result<std::unique_ptr<FileHandle>> open_frame(std::unique_ptr<FileHandle> handle, const std::string& path);
  bool is_damaged_small(const Generation& generation);
  codec::Result<void> read_frame(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply);
  codec::Result<void> read_plain(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply);
  codec::Result<std::shared_ptr<const Generation>> generation_for_attributes(Node& node);
  codec::Result<Attributes> lookup_control(NodeId parent, const std::string& name);
  std::string control_content(const std::string& name);

  frame::FileOps& files_;
  const MountOptions options_;
  Statistics statistics_;
  OnceLog once_;
  SourceTree tree_;
  NodeTable nodes_;
  std::shared_ptr<frame::IndexCache> index_cache_;
  ReadRoute route_;
  WorkerPool workers_;
  WorkerPool notifier_;  // one thread that tells the kernel what to drop
  ReadAhead::Shared ahead_;
  bool root_is_file_ = false;
  std::atomic<std::uint64_t> next_generation_{1};
  KernelCaches* kernel_ = nullptr;
  Watcher watcher_;
};

}  // namespace cframefs::fs
