// Which frames a program's arguments name: files, directories that are sparse frames, and directories to be walked.
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

/// A file, a sparse frame, and a directory named like a frame is itself. Any other directory is walked, in the order of
/// names: in it, files with a frame's suffix and sparse frames count, and symbolic links do not. Of stores what they
/// hold counts, too: STORE/LEAF.
FoundFrames find_frames(const std::vector<std::string>& arguments);

/// As FrameFile::stored_bytes; 0 if that cannot be told.
std::uint64_t stored_bytes(const std::string& path);

}  // namespace cframefs::tools
