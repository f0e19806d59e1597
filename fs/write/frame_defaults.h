// What a frame that is created in the mount is like, by the mount's options and its first data.
//
// Thread safety: functions only. Errors: none; options were checked when they were read.
#pragma once

#include "frame/cframe/frame_encoding.h"
#include "fs/util/options.h"

namespace cframefs::fs {

/// As far as it can be told without data.
frame::NewFrame placeholder_params(const MountOptions& options);
/// Once the first data is there. `first`: of the first chunk, as far as it has been written.
frame::NewFrame auto_params(const MountOptions& options, codec::ByteView first);

}  // namespace cframefs::fs
