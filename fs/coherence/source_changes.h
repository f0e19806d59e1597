// What follows from the changes of the source that the watcher reports: the kernel drops the pages, attributes and
// names that another program has made old. Changes by the mount itself drop nothing.
//
// Thread safety: changed() is called by the watcher's thread; the rest runs on threads of the notifier. Locks: a check
// of a file takes Node::change_mutex and MountContext::names, a check of a moved directory MountContext::changes.
// Errors: none; a file that cannot be examined counts as changed.
#pragma once

#include <memory>
#include <optional>

#include "fs/coherence/kernel_notices.h"
#include "fs/coherence/kernel_pages.h"
#include "fs/coherence/late_answers.h"
#include "fs/mount/node_files.h"

namespace cframefs::fs {

class SourceChanges {
 public:
  SourceChanges(MountContext& mount, NodeFiles& node_files, KernelNotices& notices, KernelPages& pages,
                LateAnswers& late_answers)
      : mount_(mount), node_files_(node_files), notices_(notices), pages_(pages), late_answers_(late_answers) {}

  /// Posts the notifications that follow from a change.
  void changed(const Watcher::Change& change);
  /// Called when an open has found another state of the file than before. Returns once the kernel has dropped the pages
  /// of an older state that it keeps of the file in another form, after 500 ms at most. REQUIRES: the caller holds no
  /// lock.
  void look_into_other_forms(const Node& node);

 private:
  /// Called after the watcher has missed changes.
  void lost_track();
  void forget_directory(NodeId directory);
  /// Makes the kernel forget the attributes of a file, if it may keep others than those of the version `now`.
  void forget_kept(Node& node, const std::optional<frame::FileVersion>& now = std::nullopt);
  /// Makes the kernel look up names again if one that it may keep leads elsewhere after a change.
  void look_into_name(const Watcher::Change& change) EXCLUDES(mount_.changes);
  /// Returns true if a commit replaces the frame at `place`.
  bool is_committing_at(const DirEntry& place) const;
  /// Returns true if a name that the kernel may keep leads elsewhere after a change of the entry at `place`.
  bool misleads(const DirEntry& place);
  /// Returns true if the nodes that the table has at `place` are there on disk.
  bool is_as_known(const DirEntry& place);
  /// Makes the kernel forget a name whose entry has changed, unless the mount has changed it itself.
  void forget_moved(const DirEntry& place) EXCLUDES(mount_.changes);
  /// Returns true if the node is on disk at `place`, or the table has it at another place.
  bool lies_at(Node& node, const DirEntry& at) EXCLUDES(mount_.changes);
  /// Returns true if a file is as the mount itself has left it, so that nothing follows from a reported change.
  bool is_own_change(Node& node, const DirEntry& place);
  /// Posts a check of a file of which the watcher has reported a change.
  void look_into_change(const std::shared_ptr<Node>& node);
  /// Checks a file of which the watcher has reported a change. Returns true if the kernel must drop its pages.
  bool is_changed_behind(Node& node);

  MountContext& mount_;
  NodeFiles& node_files_;
  KernelNotices& notices_;
  KernelPages& pages_;
  LateAnswers& late_answers_;
};

}  // namespace cframefs::fs
