// The one table from errors to errno. Everything below the FUSE adapter speaks codec::Error.
//
//   corruption   EIO          the bytes are damaged
//   unsupported  EOPNOTSUPP   a codec, filter or version that this build cannot decode
//   io           its errno    the system refused
//   stale        ESTALE       replaced or changed behind an open file
//   invalid      EINVAL       the call makes no sense
#pragma once

#include "codec/base/error.h"

namespace cframefs::fs {

int to_errno(const codec::Error& error);

}  // namespace cframefs::fs
