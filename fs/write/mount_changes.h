// Changes of a frame by the mount that contain no written data: metalayers, compaction, attributes, times. No commit of
// written data is in progress during such a change, and the frame's new version is known to be the mount's own.
//
// Thread safety: all members may be called concurrently. Ownership: borrows the write-back. Errors: those of WriteBack.
#pragma once

#include <ctime>
#include <functional>

#include "fs/write/write_back.h"

namespace cframefs::fs {

class MountChanges {
 public:
  explicit MountChanges(WriteBack& file) : file_(file) {}

  /// Commits a change of metalayers, which `change` makes.
  codec::Result<void> commit_metadata(const std::function<codec::Result<void>(frame::FrameWriter&)>& change,
                                      ChangePermit& permit);
  /// Removes dead bytes of the frame if there are many. Called after the last writer has closed it.
  void compact_if_wasteful();
  /// Performs a change that leaves the content alone (mode, owner, times).
  codec::Result<void> change_file(const std::function<codec::Result<void>()>& change);
  /// Records a modification time that a program has set, as utimensat(2): a later commit of earlier writes keeps it.
  void note_times(const struct timespec& modified);

 private:
  codec::Result<void> commit_metadata_once(const std::function<codec::Result<void>(frame::FrameWriter&)>& change,
                                           ChangePermit& permit);
  /// Takes over the state that a commit has left, while no other program can change it, and ends the change.
  codec::Result<void> adopt_and_end();
  /// Ends a change that adopt_and_end() has not ended.
  void end_change(const codec::Result<void>& done);

  WriteBack& file_;
};

}  // namespace cframefs::fs
