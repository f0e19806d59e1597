// Paths into stores (.b2z, .b2d, .b2e): STORE/LEAF names the file that a mount shows at that path.
//
// Thread safety: functions. Errors: as store_files.h.
#pragma once

#include <string>
#include <vector>

#include "frame/io/file_ops.h"

namespace cframefs::tools {

/// Returns the file operations that open `path` for reading: the system's for a file on disk, else those that read
/// inside stores.
frame::ReadFileOps& files_for(const std::string& path);

struct StoreLeaf {
  std::string path;  // relative to the store
  std::uint64_t bytes = 0;
};

/// Returns the leaves of the store `path`, sorted by name; for a directory store only those that are not on disk
/// themselves. Returns none if `path` is not a store.
codec::Result<std::vector<StoreLeaf>> leaves_of(const std::string& path);

}  // namespace cframefs::tools
