// The space that a frame takes on disk: its dead bytes, and how they are removed (frame/doc/commit-protocol.md sections
// 6 and 7).
//
// Thread safety: as FrameWriter. Ownership: borrows the writer. Units: bytes. Errors: those of FrameWriter.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "frame/write/frame_writer.h"

namespace cframefs::frame {

class FrameSpace {
 public:
  explicit FrameSpace(FrameWriter& writer) : writer_(writer) {}

  /// Returns true if the filesystem has room for a copy of the live bytes, or does not tell.
  bool has_room_for_copy() { return writer_.has_room_for_copy(); }
  /// Sets the callback that runs before the writer destroys bytes of an older state that may still be read, or of the
  /// committed state if the next state has no chunks.
  void on_overwrite(std::function<void()> callback) { writer_.on_overwrite_ = std::move(callback); }
  /// Makes the committed state durable, then punches holes where its dead bytes are. Returns the number of punched
  /// bytes: 0 if another program holds a lock on the frame, which may be a reader of an older state. Programs that read
  /// an older state without a lock find zeros instead of its chunks, so callers use this only on full disks. Pending
  /// changes stay.
  Result<std::uint64_t> punch_dead_bytes();
  /// Truncates bytes that an unfinished commit left after the frame, as the next commit would do. Returns their number.
  Result<std::uint64_t> cut_tail();
  /// Writes the live and the pending chunks to a new file and renames it over the frame. For a sparse frame, commits
  /// and removes the chunk files that a crash left.
  Result<void> compact(const CommitHooks& hooks = {});
  /// Returns the number of dead bytes. The first call measures them (measure_dead_bytes()); commits then count them.
  std::uint64_t dead_bytes() { return writer_.dead_bytes(); }

 private:
  FrameWriter& writer_;
};

/// Opens the frame at `path` in `dir` and calls FrameSpace::compact().
Result<void> compact(FileOps& files, OpenFile dir, const std::string& path, std::shared_ptr<IndexCache> cache,
                     const WriterOptions& options = {});

}  // namespace cframefs::frame
