// What the name of a file that is made says of its content. A mount and python-blosc2 go by that name: content that
// does not fit shows as a damaged container.
//
// Thread safety: functions only. Errors: invalid, with the path.
#pragma once

#include <string>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "frame/container/container.h"

namespace cframefs::tools {

/// Whether a frame with these fixed metalayers may be called `out`: it is no zip file, and an embed frame has its
/// layer.
codec::Result<void> check_frame_name(const std::string& out, const std::vector<frame::Metalayer>& layers);

/// Whether `size` plain bytes that begin with `first` may be called `out`. `first`: the first 64 of them, or all.
codec::Result<void> check_plain_name(const std::string& out, codec::ByteView first, std::uint64_t size);

}  // namespace cframefs::tools
