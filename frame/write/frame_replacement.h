// Replaces a frame by another one: an empty frame, whose parameters are chosen when its first data are known, and any
// contiguous frame by one that is written to a temporary file beside it.
//
// Thread safety: one thread. Ownership: borrows the writer. A FrameBeside owns its temporary file, which is removed
// unless it replaces the frame, and the lock of the frame. Errors: those of FrameWriter.
#pragma once

#include <memory>

#include "frame/io/advisory_lock.h"
#include "frame/io/replacement_file.h"
#include "frame/write/frame_writer.h"

namespace cframefs::frame {

/// A frame that is written to a temporary file and then replaces another one. While it exists no other program commits.
/// Must not outlive the writer of the frame that it replaces.
struct FrameBeside {
  std::shared_ptr<const Descriptor> locked;  // keeps the locked file open
  AdvisoryLock lock;
  ReplacementFile file;
  std::unique_ptr<FrameWriter> writer;
};

class FrameReplacement {
 public:
  explicit FrameReplacement(FrameWriter& writer) : writer_(writer) {}

  /// Replaces the empty frame atomically by another empty frame with the same metalayers. Discards pending changes.
  /// invalid: the frame is not empty or has no name. stale: as for commit(), for example if another program stored
  /// data.
  Result<void> replace_empty(const NewFrame& wanted);

  /// Writes an empty frame to a temporary file. invalid, unsupported: it cannot replace the frame.
  Result<std::unique_ptr<FrameBeside>> make_beside(const NewFrame& wanted);
  /// Renames the frame of `next` over the frame. Afterwards next.writer is the writer of the frame, and this one must
  /// not be used. REQUIRES: the frame has a name and is contiguous.
  Result<void> give_place_to(FrameBeside& next);

 private:
  Result<NewFrame> with_all_metalayers(NewFrame wanted) const;

  FrameWriter& writer_;
};

}  // namespace cframefs::frame
