// Paths that lead into stores (.b2z, .b2d, .b2e): STORE/LEAF names what a mount shows there.
//
// Thread safety: functions. Errors: as store_files.h.
#pragma once

#include <string>
#include <vector>

#include "frame/io/file_ops.h"

namespace cframefs::tools {

/// With what `path` is to be opened for reading: what is on disk is opened as it is, what is inside a store through it.
frame::FileOps& files_for(const std::string& path);

struct StoreLeaf {
  std::string path;  // beneath the store's own
  std::uint64_t bytes = 0;
};

/// What is in the store `path`, by name. Nothing if it is none; for a directory only what is not on disk itself.
codec::Result<std::vector<StoreLeaf>> leaves_of(const std::string& path);

}  // namespace cframefs::tools
