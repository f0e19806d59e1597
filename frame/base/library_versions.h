// The versions of the libraries that frame uses itself.
//
// Thread safety: pure functions.
#pragma once

#include <vector>

#include "codec/base/library_version.h"

namespace cframefs::frame {

/// Returns zlib, OpenSSL and xxHash, each in the version that runs.
std::vector<codec::LibraryVersion> library_versions();

}  // namespace cframefs::frame
