// An input file that is removed once its output is complete, and only if it did not change since it was opened.
//
// Thread safety: one thread. Ownership: owns a descriptor of the directory. Errors: invalid (not a regular file), stale
// (the file changed, or another file has its name), io; all with the path.
#pragma once

#include <string>

#include <sys/stat.h>

#include "frame/io/file_ops.h"

namespace cframefs::tools {

class SpentInput {
 public:
  /// Remembers the state of the file at `path`. Call before the file is read.
  static codec::Result<SpentInput> remember(frame::FileOps& files, const std::string& path);

  /// Removes the file. Call after the output is on disk.
  codec::Result<void> remove();

 private:
  SpentInput(frame::FileOps& files, std::string path) : files_(&files), path_(std::move(path)) {}
  codec::Failure failure(codec::Error error) const;

  frame::FileOps* files_;
  std::string path_;
  std::string name_;  // the last part of path_
  frame::Descriptor directory_;
  struct stat before_ = {};
};

}  // namespace cframefs::tools
