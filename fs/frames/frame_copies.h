// copy_file_range(2) between frames: copies chunks as stored, without decoding.
//
// Requires whole chunks, offsets at chunk boundaries, and the same chunk and item size in both frames; for other ranges
// the kernel reads and writes. Each call is a commit, so small ranges are left to the kernel, too.
//
// Thread safety: all members may be called concurrently. Ownership: none. Errors: io EOPNOTSUPP: nothing was done; the
// kernel reads and writes instead. Units: bytes.
#pragma once

#include <cstdint>
#include <memory>

#include "fs/frames/frame_writers.h"

namespace cframefs::fs {

class FrameCopies {
 public:
  FrameCopies(MountContext& mount, FrameStates& states, FrameWriters& writers)
      : mount_(mount), states_(states), writers_(writers) {}

  /// Returns the number of bytes copied, which may be less than `length`.
  codec::Result<std::uint64_t> copy_range(FileHandle& from, std::uint64_t from_at, FileHandle& to, std::uint64_t to_at,
                                          std::uint64_t length, ChangePermit& permit);

 private:
  /// Returns the state from which copy_range() takes chunks, with everything that programs have written.
  codec::Result<std::shared_ptr<const FrameSnapshot>> state_to_copy(FileHandle& handle);
  /// Returns true if the mount options permit a new frame with these parameters.
  bool may_be_made_like(const frame::NewFrame& frame) const;

  MountContext& mount_;
  FrameStates& states_;
  FrameWriters& writers_;
};

}  // namespace cframefs::fs
