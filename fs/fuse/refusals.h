// Lines of the log about requests that are refused for what they ask, so that users learn the reason behind the errno.
//
// Part of the adapter. Thread safety: the thread that answers a request. Errors: none; without memory there is no line.
#pragma once

#include "codec/base/error.h"

namespace cframefs::fs {

/// Logs that the present request of the thread is refused, if its error is one of EINVAL, EPERM, EROFS, ENAMETOOLONG,
/// EXDEV and EFBIG, or what a server answers instead of data, and if RefusalLog permits the line.
void note_refusal(const codec::Error& error);

}  // namespace cframefs::fs
