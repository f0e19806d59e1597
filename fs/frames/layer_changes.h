// Changes of the metalayers of a frame, by the extended attributes that show them (user.blosc2.).
#pragma once

#include <string>

#include "fs/frames/frame_writers.h"

namespace cframefs::fs {

/// Sets the metalayer that the extended attribute `name` shows. `value`: nullptr to remove it. `flags`: as setxattr(2).
codec::Result<void> change_layer(FrameWriters& writers, Node& node, const std::string& name, const std::string* value,
                                 int flags, ChangePermit& permit);

}  // namespace cframefs::fs
