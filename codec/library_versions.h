// The versions of the libraries that decode and encode.
//
// Thread safety: pure functions.
#pragma once

#include <vector>

#include "codec/base/library_version.h"

namespace cframefs::codec {

/// Returns the libraries of the codecs. The version is that of the running library if the library tells it, else that
/// of the build.
std::vector<LibraryVersion> library_versions();

}  // namespace cframefs::codec
