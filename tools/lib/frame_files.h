// Finds the frames that a program's arguments name: files, directories of sparse frames, and directories to be walked.
//
// Thread safety: functions only. Errors: io.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/base/error.h"

namespace cframefs::tools {

/// What a path is, by its name and the type of its file. Symbolic links are `other`.
enum class EntryKind : std::uint8_t {
  frame,      // a file with a frame's suffix, or the directory of a sparse frame
  store,      // .b2z, .b2e or .b2d
  directory,  // any other directory
  file,       // any other regular file
  other,
};

struct DirectoryEntry {
  std::string path;
  EntryKind kind = EntryKind::other;
  std::uint64_t stored_bytes = 0;  // of a frame, a store or a file
};

/// Returns the kind of `path`. `follow`: looks at what a symbolic link names.
EntryKind kind_of(const std::string& path, bool follow);

/// Returns the entries of a directory, sorted by name. Errors: io, with the path.
codec::Result<std::vector<DirectoryEntry>> entries_of(const std::string& directory);

/// Returns the frames, stores and directories in a directory or store, sorted by name. Errors: as entries_of() and
/// leaves_of(), with the path.
codec::Result<std::vector<DirectoryEntry>> members_of(const DirectoryEntry& group);

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
