// Files that hold one token.
//
// Thread safety: a function. Errors: those of Surroundings; io EACCES for a file that holds no token. No message holds
// one.
#pragma once

#include <string>

#include "frame/remote/access/surroundings.h"

namespace cframefs::frame {

/// Reads a token of visible ASCII, without the white space around it.
codec::Result<std::string> read_token(const Surroundings& surroundings, const std::string& path);

}  // namespace cframefs::frame
