// Paths of inputs that are no files on disk: into stores (.b2z, .b2d, .b2e), where STORE/LEAF names the file that a
// mount shows at that path, and addresses of servers (http://, https://, s3://).
//
// Thread safety: functions. Errors: as store_files.h.
#pragma once

#include <string>
#include <vector>

#include "frame/io/file_ops.h"

namespace cframefs::tools {

/// Returns the file operations whose open_named() opens `path` for reading: the system's for a file on disk, those of a
/// server for an address, else those that read inside stores. They exist until the program ends, those of servers until
/// close_servers() (server_paths.h).
codec::Result<frame::ReadFileOps*> files_for(const std::string& path);

struct StoreLeaf {
  std::string path;  // relative to the store
  std::uint64_t bytes = 0;
};

/// Returns the leaves of the store `path`, sorted by name; for a directory store only those that are not on disk
/// themselves. Returns none if `path` is not a store.
codec::Result<std::vector<StoreLeaf>> leaves_of(const std::string& path);

}  // namespace cframefs::tools
