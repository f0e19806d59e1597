// Finds the frames that a program's arguments name: files, directories of sparse frames, and directories to be walked.
//
// Thread safety: functions only. Errors: io.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/base/error.h"

namespace cframefs::tools {

struct FrameFile {
  std::string path;
  std::uint64_t stored_bytes = 0;  // of the file, or of all files in the directory of a sparse frame
};

struct FoundFrames {
  std::vector<FrameFile> frames;
  std::vector<codec::Error> errors;  // directories that could not be read
};

/// Returns the frames of the arguments. A file, a sparse frame, and a directory with a frame's suffix are one frame
/// each. Any other directory is walked, in the order of names: it contributes files with a frame's suffix and sparse
/// frames, but no symbolic links. Stores contribute their members, too: STORE/LEAF.
FoundFrames find_frames(const std::vector<std::string>& arguments);

/// Returns FrameFile::stored_bytes; 0 if it cannot be determined.
std::uint64_t stored_bytes(const std::string& path);

}  // namespace cframefs::tools
