// Open frames: the operations on their handles.
//
// All handles of a frame share an OpenFrame, because a commit may replace the file: from then on all handles read the
// new file. While a program has the frame open for writing, reads go through its WriteBack.
//
// Thread safety: all members may be called concurrently, for one handle, too. Locks: FileHandle::mutex, briefly; those
// of WriteBack. Ownership: the caller owns the handles. Errors: those of frame and WriteBack. Units: bytes.
#pragma once

#include <cstdint>
#include <memory>

#include "fs/frames/frame_writers.h"

namespace cframefs::fs {

class FrameFiles {
 public:
  FrameFiles(MountContext& mount, KernelPages& pages, FrameStates& states, FrameWriters& writers);

  codec::Result<std::unique_ptr<FileHandle>> open(std::unique_ptr<FileHandle> handle, int flags,
                                                  const FrameOrigin& origin);
  void release(std::unique_ptr<FileHandle> handle);
  codec::Result<void> read(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply);
  /// Records a read of the page cache at `at`. Has the kernel read the rest of the block that the reply comes from, if
  /// that is worth it and no program writes the file.
  void note_pages_read(FileHandle& handle, std::uint64_t at, const Reply& reply);
  codec::Result<std::uint64_t> seek(FileHandle& handle, std::uint64_t from, bool hole);
  codec::Result<void> write(FileHandle& handle, std::uint64_t at, codec::ByteView bytes, bool from_page_cache,
                            bool append, ChangePermit& permit);
  codec::Result<void> allocate(FileHandle& handle, int mode, std::uint64_t at, std::uint64_t length);
  /// Changes the size. `handle`: a handle of the node that can write, or nullptr.
  codec::Result<void> resize(Node& node, FileHandle* handle, std::uint64_t size, ChangePermit& permit);
  codec::Result<void> flush(FileHandle& handle);
  codec::Result<void> sync(FileHandle& handle, bool data_only);

 private:
  /// Returns true if a small frame has a chunk that cannot be decoded.
  bool is_damaged_small(const FrameSnapshot& snapshot);
  static codec::Result<void> read_written(FileHandle& handle, WriteBack& writer, std::uint64_t at, std::size_t length,
                                          Reply& reply);
  /// Returns true if the last change of the handle's frame came through this mount.
  bool was_changed_here(const FileHandle& handle) const;
  /// Logs and returns the error of a read during which the file changed at each attempt.
  codec::Failure kept_changing(const FrameSnapshot& snapshot);

  MountContext& mount_;
  KernelPages& pages_;
  FrameStates& states_;
  FrameWriters& writers_;
  ReadAhead::Shared ahead_;
};

}  // namespace cframefs::fs
