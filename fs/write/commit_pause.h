// Blocks commits of a write-back while its frame is renamed or removed.
//
// Thread safety: belongs to the thread that made it. Lock order: holds the commit lock of the write-back. Errors: none.
#pragma once

#include <memory>
#include <mutex>

#include "fs/write/write_back.h"

namespace cframefs::fs {

class CommitPause {
 public:
  /// Waits until no commit is in progress.
  explicit CommitPause(std::shared_ptr<WriteBack> file);
  ~CommitPause();
  CommitPause(const CommitPause&) = delete;
  CommitPause& operator=(const CommitPause&) = delete;

  /// Returns true if a commit, or a sync of committed data, is in progress.
  static bool would_wait(WriteBack& file);
  /// Waits until no commit is in progress.
  static void wait(WriteBack& file);

  /// Sets the frame's new name.
  void moved(FrameLocation place);
  /// Records that the frame has no name any more.
  void unlinked();

 private:
  std::shared_ptr<WriteBack> file_;
  std::unique_lock<std::mutex> commits_;
  bool was_right_ = false;
};

}  // namespace cframefs::fs
