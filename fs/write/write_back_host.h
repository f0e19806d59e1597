// What a write-back needs from the mount around it: all calls that go upwards from fs/write. The filesystem implements
// it for each frame that is open for writing; tests implement it with a fake.
//
// Thread safety: a write-back may call all members concurrently. committed() and became_dirty() are called under its
// lock, and take only locks that come after it (fs/doc/threads-and-locks.md). Ownership: a write-back owns its host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "frame/array/flat_view.h"
#include "frame/cframe/frame_encoding.h"
#include "frame/io/file_ops.h"
#include "fs/read/frame_snapshot.h"

namespace cframefs::fs {

/// Describes a new version, or a new file that holds the same version.
struct CommittedVersion {
  std::shared_ptr<const FrameSnapshot> snapshot;
  std::shared_ptr<const frame::Descriptor> file;
  frame::FileVersion before;  // empty: the frame was only opened
  frame::FileVersion after;
  bool own = false;               // the version contains no change by another program
  bool preamble_changed = false;  // the bytes in front of the chunks' bytes have changed
  bool gave_up = false;           // the version is the same, but bytes that programs wrote are lost
};

class WriteBackHost {
 public:
  WriteBackHost() = default;
  virtual ~WriteBackHost() = default;
  WriteBackHost(const WriteBackHost&) = delete;
  WriteBackHost& operator=(const WriteBackHost&) = delete;

  /// Returns the number of a new snapshot, which no other snapshot of the mount has.
  virtual std::uint64_t next_snapshot() = 0;
  /// Returns what programs see of a frame at `path`.
  virtual codec::Result<std::shared_ptr<const frame::FlatView>> view_of(
      std::shared_ptr<const frame::Container> container, const std::string& path) = 0;
  /// Returns the parameters of a new frame, given the bytes of its first chunk of data, if any is known.
  virtual frame::NewFrame choose_parameters(codec::ByteView first_chunk) = 0;
  /// Returns true if the mount knows, without asking the disk, that the frame's directory has no such entry now.
  virtual bool lacks_entry(const std::string& /*name*/) { return false; }
  virtual void committed(const CommittedVersion& version) = 0;
  /// Called when a clean file becomes dirty.
  virtual void became_dirty() = 0;
  /// Called when so much is dirty that a commit in the background should begin.
  virtual void much_is_dirty() = 0;
  /// Commits the largest files of the mount until at most `most` bytes are dirty. Skips files that cannot be committed.
  virtual void make_room(std::uint64_t most) = 0;
};

}  // namespace cframefs::fs
