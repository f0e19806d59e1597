// Checks that the suffix of an output file fits its content. A mount and python-blosc2 choose the format by the suffix:
// content that does not fit would show as a damaged container.
//
// Thread safety: functions only. Errors: invalid, with the path.
#pragma once

#include <string>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "frame/container/container.h"

namespace cframefs::tools {

/// Checks the name of a frame with these fixed metalayers: it must not be that of a zip store, and that of an embed
/// store only if a metalayer marks the frame as one.
codec::Result<void> check_frame_name(const std::string& out, const std::vector<frame::Metalayer>& layers);

/// Checks the name of a file with `size` uncompressed bytes. `first`: the first 64 of them, or all.
codec::Result<void> check_plain_name(const std::string& out, codec::ByteView first, std::uint64_t size);

}  // namespace cframefs::tools
