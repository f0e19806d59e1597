// The files of nodes: where a node lies on disk, and descriptors of its file and of its directory.
//
// A file is opened by the place that the table has for its node, and compared with the node: another file that has
// taken the name is never mistaken for it.
//
// Thread safety: all members may be called concurrently. Locks: open_file() takes MountContext::names shared; for
// held_name_of() the caller holds it. Ownership: callers share the descriptors. Errors: stale (another file has the
// name now, or the node has none); io.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "fs/mount/mount_context.h"

namespace cframefs::fs {

class NodeFiles {
 public:
  using SharedFile = std::shared_ptr<const frame::Descriptor>;
  /// A name on disk in a directory that is held open; "." for the directory itself.
  struct HeldName {
    HeldDirectory directory;
    std::string name;
    frame::OpenFile handle() const { return directory->handle(); }
  };

  explicit NodeFiles(MountContext& mount) : mount_(mount) {}

  /// Returns the path for messages; empty if the node has no name any more.
  std::string path_of(NodeId node) const;
  /// Returns the path for messages.
  std::string path_in(NodeId directory, const std::string& name) const;
  /// Returns true for the root of a single-file mount on a directory: a directory that exists in the mount only. The
  /// directory that holds the file is neither shown nor changed.
  bool is_made_up_root(const Node& node) const;
  /// Returns the node's place: "." in itself for a directory, else its name in its parent. stale: it has none any more.
  /// The caller holds MountContext::names.
  codec::Result<HeldName> held_name_of(const Node& node);
  /// Calls `open` for a descriptor that a program will hold. If descriptors are short, closes directories held for
  /// look-ups and calls it once more.
  codec::Result<SharedFile> open_with_room(const std::function<codec::Result<SharedFile>()>& open);
  /// Returns the node's file that a program has open, nullptr if there is none.
  SharedFile held_file(Node& node);
  /// Opens the node's file, by its name or, after the mount has removed or replaced that, by a descriptor that a
  /// program has open. stale: another file has its name now, or no program has it open.
  codec::Result<SharedFile> open_file(Node& node, int flags) EXCLUDES(mount_.names);
  /// Returns false if the file is of another kind now than its node, where that depends on its content. The kernel may
  /// have kept the name since before the content changed.
  bool is_of_its_kind(Node& node) EXCLUDES(mount_.names);
  /// Returns true if programs have the frame open for writing while its name on disk leads to another file, or to none.
  bool has_lost_name(Node& node) EXCLUDES(mount_.names);
  /// Has the watcher report changes of the directory, unless that is impossible.
  void watch(Node& directory);
  /// Removes look-ups of the kernel. With the last one, the node's directory is neither held nor watched any more.
  void forget(NodeId node, std::uint64_t lookups);

 private:
  codec::Result<SharedFile> open_by_name(const Node& node, int flags) EXCLUDES(mount_.names);

  MountContext& mount_;
};

}  // namespace cframefs::fs
