// What the option -V prints.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codec/base/library_version.h"

namespace cframefs::tools {

/// Returns one line for the program, then one for each library: `first`, then those of all programs.
std::string version_text(std::string_view program, const std::vector<codec::LibraryVersion>& first = {});

}  // namespace cframefs::tools
