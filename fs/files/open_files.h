// Opening files, and the operations on open files. Each goes to the part for the kind of file: frames, passed-through
// files, control files.
//
// Thread safety: all members may be called concurrently; a FileHandle serves many threads. Ownership: the caller owns
// the handles. Errors: EROFS on a read-only mount, EBADF for a handle that cannot write; those of the parts. Units:
// bytes.
#pragma once

#include <cstdint>
#include <memory>

#include <fcntl.h>

#include "fs/coherence/source_changes.h"
#include "fs/files/control_files.h"
#include "fs/files/plain_files.h"
#include "fs/frames/frame_copies.h"
#include "fs/frames/frame_files.h"

namespace cframefs::fs {

class OpenFiles {
 public:
  OpenFiles(MountContext& mount, NodeFiles& node_files, KernelPages& pages, FrameStates& states, FrameWriters& writers,
            SourceChanges& source_changes)
      : mount_(mount),
        node_files_(node_files),
        pages_(pages),
        source_changes_(source_changes),
        control_(mount, writers.shared(), pages),
        plain_(mount, node_files, pages),
        frames_(mount, pages, states, writers),
        copies_(mount, states, writers) {}

  /// Opens a file. `flags`: as open(2), without O_CREAT and O_EXCL.
  codec::Result<std::unique_ptr<FileHandle>> open(NodeId id, int flags = O_RDONLY);
  /// Opens a frame that was just created.
  codec::Result<std::unique_ptr<FileHandle>> open_new_frame(std::unique_ptr<FileHandle> handle, int flags,
                                                            const FrameOrigin& created) {
    return frames_.open(std::move(handle), flags, created);
  }
  /// Reads into `reply`. `holds_pages`: the kernel keeps the pages of the range locked until the reply is sent.
  codec::Result<void> read(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply,
                           bool holds_pages = false);
  /// lseek(2) with SEEK_DATA or SEEK_HOLE.
  codec::Result<std::uint64_t> seek(FileHandle& handle, std::uint64_t from, int whence);
  /// Writes. `from_page_cache`: the kernel writes back a page, so the bytes belong at `at` even if the handle appends.
  codec::Result<void> write(FileHandle& handle, std::uint64_t at, codec::ByteView bytes, bool from_page_cache,
                            ChangePermit& permit = free_permit());
  /// fallocate(2).
  codec::Result<void> allocate(FileHandle& handle, int mode, std::uint64_t at, std::uint64_t length);
  /// Changes the size. `handle`: an open handle of the node, or nullptr.
  codec::Result<void> truncate(Node& node, FileHandle* handle, std::uint64_t size, ChangePermit& permit);
  /// copy_file_range(2) of stored chunks. Returns the number of bytes copied, which may be less than `length`.
  /// EOPNOTSUPP: nothing was copied, because this range needs reading and writing.
  codec::Result<std::uint64_t> copy_range(FileHandle& from, std::uint64_t from_at, FileHandle& to, std::uint64_t to_at,
                                          std::uint64_t length, ChangePermit& permit = free_permit()) {
    return copies_.copy_range(from, from_at, to, to_at, length, permit);
  }
  /// Called at close(2) of each descriptor that shares the handle.
  codec::Result<void> flush(FileHandle& handle);
  /// Called when the last of these descriptors is closed.
  void release(std::unique_ptr<FileHandle> handle);
  /// fsync(2) or fdatasync(2).
  codec::Result<void> sync(FileHandle& handle, bool data_only);

  ControlFiles& control() { return control_; }

 private:
  codec::Result<std::unique_ptr<FileHandle>> open_any(NodeId id, int flags);
  codec::Result<void> read_control(const FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply);
  codec::Result<void> write_any(FileHandle& handle, std::uint64_t at, codec::ByteView bytes, bool from_page_cache,
                                ChangePermit& permit);
  /// Returns `done`; counts its error.
  codec::Result<void> counted(Operation operation, codec::Result<void> done);
  /// Adds a request to the file's in BusyFiles.
  void note_traffic(const FileHandle& handle, const BusyFiles::Traffic& traffic);
  /// Clears the set-ID bits of an open file: on a mount with uid=, gid= or umask= a caller may write a file whose owner
  /// has not permitted it.
  codec::Result<void> clear_set_ids(const FileHandle& handle);

  MountContext& mount_;
  NodeFiles& node_files_;
  KernelPages& pages_;
  SourceChanges& source_changes_;
  ControlFiles control_;
  PlainFiles plain_;
  FrameFiles frames_;
  FrameCopies copies_;
};

}  // namespace cframefs::fs
