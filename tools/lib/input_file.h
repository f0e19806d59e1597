// What a subcommand reads: the file, directory or store member that its argument names, or standard input for "-".
//
// Containers are read at any place. Standard input that is a regular file, and stands at its beginning, is opened as
// that file; anything else is copied into an unnamed temporary file first.
//
// Thread safety: immutable. Ownership: owns the copy. Errors: io; invalid where there is no standard input.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>

#include <sys/stat.h>

#include "frame/io/file_ops.h"
#include "tools/lib/io.h"

namespace cframefs::tools {

/// The argument that stands for standard input, or for standard output.
inline constexpr const char* kStandardStream = "-";

class InputFile {
 public:
  static codec::Result<InputFile> open(const std::string& argument, Io& io);
  /// The file `path`, whatever its name.
  explicit InputFile(std::string path) : path_(std::move(path)), name_(path_) {}

  /// Opens the file, for as long as this object is there.
  const std::string& path() const { return path_; }
  /// What messages call it.
  const std::string& name() const { return name_; }

 private:
  std::string path_;
  std::string name_;
  std::shared_ptr<const frame::Descriptor> copy_;
};

/// What a file that is made from another one has in common with it.
struct FileTraits {
  mode_t mode = 0666;  // read and write; of a directory that is a sparse frame those of its index
  std::array<struct timespec, 2> times = {timespec{0, UTIME_OMIT}, timespec{0, UTIME_OMIT}};  // access, modification

  static FileTraits of(const struct stat& status);
};

/// Of the file at `path`, which may be in a store.
codec::Result<FileTraits> traits_of(const std::string& path);

/// invalid if a file that is made as `out` would take the place of `in`, or of a part of it.
codec::Result<void> check_no_overlap(const std::string& in, const std::string& out);

}  // namespace cframefs::tools
