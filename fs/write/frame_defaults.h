// Parameters of a frame that is created in the mount, from the mount's options and the first data.
//
// Thread safety: functions without state. Errors: none; options were checked when they were parsed.
#pragma once

#include "frame/cframe/frame_encoding.h"
#include "fs/util/options.h"

namespace cframefs::fs {

/// Returns the parameters as far as they are known without data.
frame::NewFrame placeholder_params(const NewFrameOptions& options);
/// Returns the parameters that suit the first data. `first`: the bytes of the first chunk that
/// does not repeat one value, as far as it was written; may be empty.
frame::NewFrame auto_params(const NewFrameOptions& options, codec::ByteView first);

}  // namespace cframefs::fs
