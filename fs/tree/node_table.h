// The files of the mount that the kernel knows, by node number.
//
// A node is one file on disk in one form: the same frame seen raw under one name and decoded under another are two
// nodes. Numbers are never reused. A node lives until the kernel has forgotten it. Its place is its parent and its name
// there, as last looked up.
//
// When the mount renames, replaces or removes an entry, the node moves in the table: it keeps its number and its
// handles under another name. A node that has lost its name is unreachable by name but stays valid until FORGET.
//
// Thread safety: the table is synchronised. The constant members of a node may be read by any thread, the others under
// its mutex. Lock order: a node's mutex first, then the table's.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "codec/base/mutex.h"
#include "fs/kernel/backing_files.h"
#include "fs/kernel/kept_answers.h"
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

/// What the handles of a file of no known kind share.
struct OpenPlainFile {
  std::vector<std::weak_ptr<const frame::Descriptor>> descriptors;
  std::weak_ptr<const BackingFile> backing;  // of a file that is passed through to the kernel
};

struct Node {
  Node(NodeId number, NodeRole r, EntryKind k) : id(number), role(r), kind(k) {}

  const NodeId id;
  const NodeRole role;
  const EntryKind kind;
  std::uint64_t device = 0;             // of the entry on disk; set before the node is shared
  std::uint64_t shown_inode = 0;        // fixed when the node is made: programs see one number throughout
  std::atomic<std::uint64_t> inode{0};  // of the entry on disk; changed only by NodeTable::change_inode()
  /// Returns whether `file` is the status of the node's file.
  bool is_at(const struct stat& file) const {
    return file.st_dev == device && file.st_ino == inode.load(std::memory_order_relaxed);
  }
  std::atomic<bool> watched{false};     // directories: changes of entries are reported
  std::atomic<bool> sees_all{false};    // directories: the system reports each change
  std::atomic<int> stale_preambles{0};  // arrays: drops of the array header that are not carried out yet
  PageCacheState pages;                 // what the kernel may cache of the file
  KeptAnswers kept;                     // files: what the kernel may keep of answers
  ReadsUnderWay reads;                  // reads for which the kernel has locked pages of the file

  /// Held while the mount itself changes the file, so that its own change is not taken for another program's. Taken
  /// before `mutex`.
  codec::Mutex change_mutex;
  codec::Mutex mutex;
  EntryStat known GUARDED_BY(mutex);  // the last status read from disk; without what only a write-back knows
  OpenPlainFile open_plain GUARDED_BY(mutex);
  std::unique_ptr<const std::string> target GUARDED_BY(mutex);   // of a link that was read; it never changes
  std::weak_ptr<OpenFrame> open_frame GUARDED_BY(mutex);         // shared by its handles
  std::weak_ptr<const FrameSnapshot> current GUARDED_BY(mutex);  // the snapshot that was opened last
};

/// Returns what the open handles of the frame share; nullptr if there are none.
inline std::shared_ptr<OpenFrame> open_frame_of(Node& node) {
  codec::MutexLock lock(node.mutex);
  return node.open_frame.lock();
}
/// Returns nullptr if no program has the frame open for writing and nothing waits to be committed.
inline std::shared_ptr<WriteBack> write_back_of(Node& node) {
  const std::shared_ptr<OpenFrame> frame = open_frame_of(node);
  return frame ? frame->write_back() : nullptr;
}

/// The error for a node number that the kernel has forgotten or never got.
inline codec::Failure no_such_node() {
  return codec::stale("unknown inode in a request of the kernel");
}

/// A name on disk in a directory.
struct DirEntry {
  NodeId directory = 0;
  std::string name;
  bool operator==(const DirEntry&) const = default;
};

/// Where a node is: in a directory, or nowhere once it is removed.
struct NodePlace {
  std::shared_ptr<Node> node;
  NodeId parent = 0;
  std::string name;  // on disk
};

class NodeTable {
 public:
  NodeTable();

  std::shared_ptr<Node> find(NodeId id) const;
  /// Returns the node of this file, which is made if there is none, and counts one look-up. Updates its place.
  /// `was_elsewhere`: set to whether it had another one.
  std::shared_ptr<Node> enter(NodeId parent, const std::string& name, NodeRole role, const EntryStat& probe,
                              bool* was_elsewhere = nullptr);
  /// Removes the place of nodes whose file is gone: its inode number belongs to `created`, a file that the mount has
  /// just made. The kernel must not take what it keeps of the gone file for the new one's.
  void retire(const EntryStat& created);
  /// Counts one more look-up of a node that the caller has verified. Returns nullptr if the node is gone.
  std::shared_ptr<Node> enter_again(NodeId id);
  struct Forgotten {
    bool is_gone = false;
    bool most_are_gone = false;  // true once: it is worth returning their memory to the system
  };
  /// Removes `lookups` look-ups of a node.
  Forgotten forget(NodeId id, std::uint64_t lookups);
  /// Returns 0 for the root and for nodes that are gone.
  NodeId parent_of(NodeId id) const;
  std::vector<NodeId> all() const;
  /// Returns the place as last looked up. Error stale: the node was removed or replaced, or the kernel has forgotten
  /// it. REQUIRES: not the root.
  codec::Result<NodePlace> place_of(NodeId id) const;
  /// Returns the path relative to the source for messages, "" for the root. Error stale: the kernel has forgotten a
  /// directory on the way.
  codec::Result<std::string> path_of(NodeId id) const;
  /// Returns the nodes that were last seen as `name` in `parent`.
  std::vector<std::shared_ptr<Node>> at_place(NodeId parent, const std::string& name) const;
  /// Returns the other nodes of the file: those that show it in another form.
  std::vector<std::shared_ptr<Node>> other_forms_of(const Node& node) const;
  void set_root(std::shared_ptr<Node> node);
  InodeNumbers& numbers() { return numbers_; }
  /// Records that a frame is opened for writing. A commit may replace its file before change_inode() tells so.
  void begin_writing() { has_other_numbers_.store(true, std::memory_order_relaxed); }
  /// Returns true if some node may show another number than number_for() gives for its directory's device and the inode
  /// on disk.
  bool has_other_numbers() const { return has_other_numbers_.load(std::memory_order_relaxed); }
  /// Returns the inode number to show for a file that has no node.
  std::uint64_t number_for(std::uint64_t device, std::uint64_t inode);

  // These three change nothing if there is no memory.

  /// Moves the nodes at `from` to `to`. Nodes that were at `to` lose their place.
  void move(const DirEntry& from, const DirEntry& to);
  /// Exchanges the nodes of two entries.
  void exchange(const DirEntry& one, const DirEntry& other);
  /// Removes the nodes from their place. `other_names`: the file may still be found under another name (a hard link).
  void remove(const DirEntry& place, bool other_names);
  /// Records that the mount itself has replaced the node's entry on disk by another inode.
  void change_inode(const Node& node, std::uint64_t inode);

 private:
  using Key = std::tuple<std::uint64_t, std::uint64_t, EntryKind, NodeRole>;  // device, inode, form
  struct Place {
    std::shared_ptr<Node> node;
    NodeId parent = 0;
    std::string name;
    std::uint64_t lookups = 0;
  };

  /// Compares without a copy of the name.
  struct PlaceOrder {
    using is_transparent = void;
    template <class One, class Other>
    bool operator()(const One& one, const Other& other) const {
      const int names = one.first == other.first ? std::string_view(one.second).compare(other.second) : 0;
      return names < 0 || (names == 0 && one.first < other.first);
    }
  };

  using ByPlace = std::multimap<std::pair<NodeId, std::string>, NodeId, PlaceOrder>;

  static Key key_of(const Node& node);
  std::uint64_t free_number(std::uint64_t device, std::uint64_t inode) REQUIRES(mutex_);
  std::shared_ptr<Node> enter_new(const Key& key, const DirEntry& at, const EntryStat& probe) REQUIRES(mutex_);
  void unplace(const Place& place, NodeId id) REQUIRES(mutex_);
  /// Changes of the places of nodes, with the memory that they need.
  struct Moves {
    std::vector<std::pair<NodeId, DirEntry>> nodes;
    ByPlace entries;
  };
  Moves moves_of(const DirEntry& from, const DirEntry& to) const REQUIRES(mutex_);
  void make(Moves moves) noexcept REQUIRES(mutex_);
  /// Removes the nodes from their places.
  void detach(const Moves& moves) noexcept REQUIRES(mutex_);
  void forget_key(NodeId id) REQUIRES(mutex_);
  /// Returns true once if most of the nodes are gone.
  bool take_shrunk() REQUIRES(mutex_);

  InodeNumbers numbers_;
  std::atomic<bool> has_other_numbers_{false};
  mutable codec::Mutex mutex_;
  // Inode numbers that nodes still show after change_inode(). On disk the same numbers may belong to other files.
  std::unordered_map<std::uint64_t, NodeId> kept_numbers_ GUARDED_BY(mutex_);
  NodeId next_ GUARDED_BY(mutex_) = kRootNode + 1;
  std::size_t most_ GUARDED_BY(mutex_) = 0;  // the most nodes since take_shrunk() was true
  std::unordered_map<NodeId, Place> places_ GUARDED_BY(mutex_);
  std::map<Key, NodeId> by_key_ GUARDED_BY(mutex_);
  ByPlace by_place_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
