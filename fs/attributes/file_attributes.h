// The attributes that stat(2) shows, those on disk combined with uncommitted writes, and changes of them.
//
// Thread safety: all members may be called concurrently. Locks: MountContext::names, shared, during a stat;
// Node::mutex, briefly. A stat that sees a change waits for the drop of older pages, at most 250 ms. Ownership: none.
// Errors: stale: the name leads to another file; EROFS, EPERM for changes; io.
#pragma once

#include <cstdint>
#include <memory>

#include "fs/attributes/rights.h"
#include "fs/attributes/symbolic_links.h"
#include "fs/files/open_files.h"

namespace cframefs::fs {

class FileAttributes {
 public:
  FileAttributes(MountContext& mount, NodeFiles& node_files, KernelNotices& notices, KernelPages& pages,
                 SymbolicLinks& links, Rights& rights, OpenFiles& files)
      : mount_(mount),
        node_files_(node_files),
        notices_(notices),
        pages_(pages),
        links_(links),
        rights_(rights),
        files_(files) {}

  /// Returns what stat(2) shows. `handle`: an open handle of the node, or nullptr. Fails for a container that cannot be
  /// opened, with the reason, because its size is not known.
  codec::Result<Attributes> of(NodeId id, FileHandle* handle);
  /// Changes attributes. `handle`: an open handle of the node, or nullptr.
  codec::Result<Attributes> change(NodeId id, FileHandle* handle, const AttributeChanges& changes,
                                   const Caller& caller = {}, ChangePermit& permit = free_permit());
  /// As of(), without `handle`, for a node that was just looked up: fails only if the file cannot be examined.
  codec::Result<Attributes> of_entered(Node& node);
  /// Examines the node's file on disk, which must still have the node's name.
  codec::Result<EntryStat> probe_node(Node& node);
  /// Records and returns the attributes of a file that the mount has just created. No handle of it is open.
  Attributes of_new(Node& node, const EntryStat& created);
  /// Makes the kernel look up all names again, if it may keep some, before it takes the caller's answer.
  void forget_names() {
    if (notices_.keeps_names()) notices_.forget_names_now();
  }
  /// Returns the inode number that the node shows.
  static std::uint64_t shown_inode(const Node& node);

 private:
  struct KeptAnswer {
    double seconds = 0;
    KeptAnswers::Look look;
  };

  codec::Result<EntryStat> apply_stat(Node& node, const EntryStat& known, EntryStat probe,
                                      const std::shared_ptr<WriteBack>& writer, const PageCacheState::Look& look);
  /// Applies the options uid, gid and umask.
  void apply_shown_rights(struct stat& status) const;
  /// Called before a change on a mount with one of these options, on which a caller may be the shown owner of a file
  /// that belongs to another user. Keeps the caller from running programs with that user's rights: refuses to set
  /// set-ID bits, and clears them before the content changes.
  codec::Result<void> guard_set_ids(Node& node, const AttributeChanges& changes, ChangePermit& permit);
  /// Fills in the rights and times of the one file, as those of a directory.
  void show_made_up_root(struct stat& status);
  /// Returns the attributes that follow from a probe. The kernel must not keep those of a file.
  Attributes describe(const Node& node, const EntryStat& probe);
  /// Returns how long the kernel may use the attributes of a file, nullopt if not all changes of them are reported.
  /// Called before the file is examined.
  std::optional<KeptAnswer> begin_answer(Node& node) const;
  /// Returns the same for what was found, in seconds.
  static double seconds_to_keep(Node& node, const EntryStat& probe, const KeptAnswer& answer);
  /// As of(), but succeeds for a container that cannot be opened.
  codec::Result<Attributes> describe_node(NodeId id, FileHandle* handle);

  MountContext& mount_;
  NodeFiles& node_files_;
  KernelNotices& notices_;
  KernelPages& pages_;
  SymbolicLinks& links_;
  Rights& rights_;
  OpenFiles& files_;
};

}  // namespace cframefs::fs
