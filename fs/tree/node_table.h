// The files of the mount that the kernel knows, by number.
//
// A node stands for one file on disk in one guise: the same frame seen raw under one name and decoded under another are
// two nodes. Numbers are never used again. A node lives until the kernel has forgotten it; where it lies is its parent
// and its name there, as last looked up.
//
// What the mount itself renames, replaces or removes moves in the table with it: a node keeps its number and its
// handles under another name, and one that lost its name is found by nobody any more while the kernel still remembers
// it.
//
// Thread safety: the table is synchronised; of a node, the constant members may be read by anyone and the rest under
// its mutex. Lock order: a node's mutex first, then the table's.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "codec/base/mutex.h"
#include "fs/kernel/page_cache_state.h"
#include "fs/read/frame_snapshot.h"
#include "fs/read/reads_under_way.h"
#include "fs/tree/inode_numbers.h"
#include "fs/tree/open_frame.h"
#include "fs/tree/source_tree.h"

namespace cframefs::fs {

using NodeId = std::uint64_t;
inline constexpr NodeId kRootNode = 1;

enum class NodeRole : std::uint8_t { stored, control_directory, control_file };

struct Node {
  Node(NodeId number, NodeRole r, EntryKind k) : id(number), role(r), kind(k) {}

  const NodeId id;
  const NodeRole role;
  const EntryKind kind;
  std::uint64_t device = 0;             // of the entry on disk; set before the node is shared
  std::uint64_t shown_inode = 0;        // for the entry when the node was made: programs see one number throughout
  std::atomic<std::uint64_t> inode{0};  // of the entry on disk; changed by NodeTable::change_inode() alone
  /// Whether the file that this is the state of is the node's.
  bool is_at(const struct stat& file) const {
    return file.st_dev == device && file.st_ino == inode.load(std::memory_order_relaxed);
  }
  std::atomic<bool> watched{false};     // directories: changes of what it holds are reported
  std::atomic<int> stale_preambles{0};  // arrays: the kernel is being told to forget the header
  PageCacheState pages;                 // what the kernel may hold of the file
  ReadsUnderWay reads;                  // that the kernel holds pages of the file for

  /// Held while the mount itself changes the file, so that its own change is told from somebody else's. Taken before
  /// `mutex`.
  codec::Mutex change_mutex;
  codec::Mutex mutex;
  EntryStat known GUARDED_BY(mutex);  // what the last look at the disk saw; nothing that only a writer knows
  std::vector<std::weak_ptr<const frame::Descriptor>> opened GUARDED_BY(mutex);  // by handles
  std::unique_ptr<const std::string> target GUARDED_BY(mutex);   // of a link that was read; it never changes
  std::weak_ptr<OpenFrame> open_frame GUARDED_BY(mutex);         // what its handles share
  std::weak_ptr<const FrameSnapshot> current GUARDED_BY(mutex);  // what the last open opened
};

/// The kernel names a node that it was told to forget, or that never was.
inline codec::Failure no_such_node() {
  return codec::stale("the kernel asked for a file that it had forgotten");
}

/// A name on disk in a directory.
struct DirEntry {
  NodeId directory = 0;
  std::string name;
  bool operator==(const DirEntry&) const = default;
};

/// Where a node lies: in a directory, or nowhere any more.
struct NodePlace {
  std::shared_ptr<Node> node;
  NodeId parent = 0;
  std::string name;  // on disk
};

class NodeTable {
 public:
  NodeTable();

  std::shared_ptr<Node> find(NodeId id) const;
  /// The node for this file, made if need be, with its place brought up to date; counts one more look-up.
  std::shared_ptr<Node> enter(NodeId parent, const std::string& name, NodeRole role, const EntryStat& probe);
  /// One more look-up of a node that is known to be the one; null if it is gone.
  std::shared_ptr<Node> enter_again(NodeId id);
  /// True if the node is gone.
  bool forget(NodeId id, std::uint64_t lookups);
  /// Whether most of the nodes that there were are gone, told once: then it is worth giving their memory back.
  bool take_shrunk();
  /// 0 for the root and for nodes that are gone.
  NodeId parent_of(NodeId id) const;
  std::vector<NodeId> all() const;
  /// As last looked up. stale: it was removed or replaced, or the kernel has forgotten it. REQUIRES: not the root.
  codec::Result<NodePlace> place_of(NodeId id) const;
  /// For messages: beneath the source; "" for the root; stale if the kernel has forgotten a directory on the way.
  codec::Result<std::string> path_of(NodeId id) const;
  /// Nodes that were last seen as `name` in `parent`.
  std::vector<std::shared_ptr<Node>> at_place(NodeId parent, const std::string& name) const;
  void set_root(std::shared_ptr<Node> node);
  InodeNumbers& numbers() { return numbers_; }
  /// The inode number to be shown for a file that has no node.
  std::uint64_t number_for(std::uint64_t device, std::uint64_t inode);

  /// What lay at `from` lies at `to` now; what lay there has no place any more.
  void move(const DirEntry& from, const DirEntry& to);
  /// Two entries have changed places.
  void exchange(const DirEntry& one, const DirEntry& other);
  /// What lay there is gone from it. `other_names`: it may still be found under another name (a hard link).
  void remove(const DirEntry& place, bool other_names);
  /// The node's entry on disk is another inode now, by a rename of our own.
  void change_inode(const Node& node, std::uint64_t inode);

 private:
  using Key = std::tuple<std::uint64_t, std::uint64_t, EntryKind, NodeRole>;  // device, inode, guise
  struct Place {
    std::shared_ptr<Node> node;
    NodeId parent = 0;
    std::string name;
    std::uint64_t lookups = 0;
  };

  static Key key_of(const Node& node);
  std::uint64_t free_number(std::uint64_t device, std::uint64_t inode) REQUIRES(mutex_);
  std::shared_ptr<Node> enter_new(const Key& key, const DirEntry& at, const EntryStat& probe) REQUIRES(mutex_);
  void unplace(const Place& place, NodeId id) REQUIRES(mutex_);
  void place_at(NodeId id, const DirEntry& to) REQUIRES(mutex_);
  /// Takes the nodes at a place out of it; they have none then.
  std::vector<NodeId> detach(const DirEntry& from) REQUIRES(mutex_);
  void forget_key(NodeId id) REQUIRES(mutex_);

  InodeNumbers numbers_;
  mutable codec::Mutex mutex_;
  // Numbers of nodes that change_inode() has moved to other inodes: shown for these, though they may belong to others
  // on disk.
  std::unordered_map<std::uint64_t, NodeId> kept_numbers_ GUARDED_BY(mutex_);
  NodeId next_ GUARDED_BY(mutex_) = kRootNode + 1;
  std::size_t most_ GUARDED_BY(mutex_) = 0;  // nodes, since take_shrunk() was true
  std::unordered_map<NodeId, Place> places_ GUARDED_BY(mutex_);
  std::map<Key, NodeId> by_key_ GUARDED_BY(mutex_);
  std::multimap<std::pair<NodeId, std::string>, NodeId> by_place_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
