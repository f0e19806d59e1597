// An unnamed file, for a stream that needs random access.
//
// Thread safety: functions. Ownership: the caller owns the descriptor; closing it removes the file. Errors: io.
#pragma once

#include "frame/io/file_ops.h"

namespace cframefs::tools {

/// Creates an empty file in the directory that TMPDIR names, else in /var/tmp, else in /tmp. Only its owner can open
/// it.
codec::Result<frame::Descriptor> make_unnamed_file(frame::FileOps& files);

}  // namespace cframefs::tools
