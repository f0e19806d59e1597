// Maps errors to errno values. Everything below the FUSE adapter uses codec::Error.
//
//   corruption   EIO          the bytes are damaged
//   unsupported  EOPNOTSUPP   a codec, filter or version that this build cannot decode
//   io           its errno    a system call failed
//   stale        ESTALE       an open file was replaced or changed by another program
//   invalid      EINVAL       an argument is invalid
#pragma once

#include "codec/base/error.h"

namespace cframefs::fs {

int to_errno(const codec::Error& error);

}  // namespace cframefs::fs
