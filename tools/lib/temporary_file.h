// A file without a name, for what has to be read or written at any place and comes or goes as a stream.
//
// Thread safety: functions. Ownership: the caller owns the descriptor; the file goes with it. Errors: io.
#pragma once

#include "frame/io/file_ops.h"

namespace cframefs::tools {

/// An empty file in the directory that TMPDIR names, else in /var/tmp, else in /tmp. Only its owner can open it.
codec::Result<frame::Descriptor> make_unnamed_file(frame::FileOps& files);

}  // namespace cframefs::tools
