// The writers of frames: opens a frame's WriteBack for its first writer, ends it after the last one, and makes each
// commit known to the node, the open handles and the kernel.
//
//   (none) ──start_writing()──▶ has writers ──the last stop_writing()──▶ waits for a commit ──▶ (none)
//                                  ▲                                        │
//                                  └────────────start_writing()─────────────┘
//
// Thread safety: all members may be called concurrently. Locks: OpenFrame::opening while a first writer opens, then
// MountContext::changes; OpenFrame::leaving while a last one leaves. Ownership: owns the flusher and the encoders;
// handles share the write-backs. Errors: EROFS: the frame cannot be written; those of WriteBack.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fs/frames/frame_states.h"
#include "fs/write/flusher.h"
#include "fs/write/write_back.h"

namespace cframefs::fs {

/// How a frame that is opened came to be.
struct FrameOrigin {
  bool is_new = false;                            // the mount has just created it
  std::shared_ptr<const frame::Descriptor> file;  // of a new frame, open for reading and writing; else, and if none
                                                  // can be kept, nullptr
  NewContent written = {};                        // into `file`
};

class FrameWriters {
 public:
  using Work = std::function<codec::Result<void>(WriteBack&)>;

  FrameWriters(MountContext& mount, NodeFiles& node_files, KernelPages& pages, FrameStates& states);

  ~FrameWriters() { end_removals(); }
  FrameWriters(const FrameWriters&) = delete;
  FrameWriters& operator=(const FrameWriters&) = delete;

  void start();
  /// Commits everything; what cannot be committed is lost, and logged.
  void stop();
  /// Called once no decoding thread runs: removes files that one of them was the last to hold.
  void end_removals() { write_back_.sparse_registry->stop_deferring(); }

  /// Returns what the handles of a frame share; opens the file for the first one, unless that has `file` already.
  codec::Result<std::shared_ptr<OpenFrame>> share_frame(Node& node,
                                                        std::shared_ptr<const frame::Descriptor> file = nullptr);
  /// Adds a writer to the frame. EROFS: the frame cannot be written.
  codec::Result<std::shared_ptr<WriteBack>> start_writing(Node& node, const std::shared_ptr<OpenFrame>& frame,
                                                          const FrameOrigin& origin = {}) EXCLUDES(mount_.changes);
  /// Removes a writer; commits. After the last writer, data that cannot be committed yet waits in the flusher, and
  /// programs still see it.
  void stop_writing(NodeId node, const std::shared_ptr<OpenFrame>& frame);
  /// Calls start_writing(), `work`, a commit and stop_writing().
  codec::Result<void> with_temporary_writer(Node& node, const Work& work);
  Changer changer(const FileHandle& handle) const;
  /// Converts a place to the type that a write-back takes.
  FrameLocation frame_place(const HeldDirectory& directory, const DirEntry& place) const;
  /// Frees memory that is kept for the next chunks to encode.
  void release_memory() { encoders_.release_memory(); }
  /// Returns what all write-backs share.
  WriteBackShared& shared() { return write_back_; }

 private:
  /// What a write-back needs from the mount.
  class FrameHost;

  codec::Result<std::shared_ptr<WriteBack>> open_writer(Node& node, const std::shared_ptr<OpenFrame>& frame,
                                                        const FrameOrigin& origin, FrameLocation place);
  /// Registers the first writer of the frame, which may have been renamed since `opened_at`, its path when it was
  /// opened.
  codec::Result<void> begin_writing(Node& node, OpenFrame& frame, const std::shared_ptr<WriteBack>& writer,
                                    const std::string& opened_at) EXCLUDES(mount_.changes);
  /// Called after each retry of a commit with its result: the write-back goes on waiting, or leaves the flusher.
  void waited(NodeId node, OpenFrame& frame, bool was_logged, const codec::Result<void>& done);
  /// Decides about a write-back without writers, after a commit with the result `done`. Returns true if its data waits
  /// for another commit. Otherwise drops the data and ends the write-back.
  bool waits_or_ends(NodeId node, OpenFrame& frame, WriteBack& writer, const codec::Result<void>& done)
      REQUIRES(frame.leaving);
  /// Drops data that can never be committed, and logs the loss. Returns false if `may` forbids it:
  /// WriteBack::discard().
  bool drop_rest(WriteBack& writer, const codec::Error& reason, const std::function<bool()>& may);
  void committed(Node& node, OpenFrame& frame, const CommittedVersion& what);
  codec::Result<FrameLocation> place_of_frame(const Node& node);

  MountContext& mount_;
  NodeFiles& node_files_;
  KernelPages& pages_;
  FrameStates& states_;
  ChunkEncoders encoders_;
  WriteBackShared write_back_{mount_.files, mount_.read_path,  encoders_, mount_.statistics.writing,
                              mount_.once,  mount_.index_cache};
  Flusher flusher_{write_back_};
};

}  // namespace cframefs::fs
