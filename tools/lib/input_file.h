// The input of a subcommand: the file, directory or store member that its argument names, or standard input for "-".
//
// Containers need random access. Standard input that is a regular file, at offset 0, is opened as that file; other
// input, and a pipe that the argument names, is first copied into an unnamed temporary file.
//
// Thread safety: immutable. Ownership: owns the copy. Errors: io; invalid if there is no standard input.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>

#include <sys/stat.h>

#include "frame/io/file_ops.h"
#include "tools/lib/io.h"
#include "tools/lib/server_paths.h"

namespace cframefs::tools {

/// The argument that means standard input, or standard output.
inline constexpr const char* kStandardStream = "-";

class InputFile {
 public:
  static codec::Result<InputFile> open(const std::string& argument, Io& io);
  /// The file `path`, even if it is called "-".
  explicit InputFile(std::string path) : path_(std::move(path)), name_(shown_path(path_)) {}

  /// Returns a path that opens the file while this object lives.
  const std::string& path() const { return path_; }
  /// Returns the name for messages.
  const std::string& name() const { return name_; }
  /// Returns whether it is standard input or a pipe, whose attributes are not those of a file.
  bool is_stream() const { return is_stream_; }

 private:
  codec::Result<void> copy(Input& input);

  std::string path_;
  std::string name_;
  bool is_stream_ = false;
  std::shared_ptr<const frame::Descriptor> copy_;
};

/// Opens a file of any kind for reading. Does not wait for a program that writes to a pipe: DescriptorInput does, which
/// a signal ends.
codec::Result<frame::Descriptor> open_to_read(const std::string& path);

/// The attributes that an output file takes over from its input.
struct FileTraits {
  mode_t mode = 0666;  // read and write bits; for the directory of a sparse frame those of its index
  std::array<struct timespec, 2> times = {timespec{0, UTIME_OMIT}, timespec{0, UTIME_OMIT}};  // access, modification

  static FileTraits of(const struct stat& status);
};

/// Returns the traits of the file at `path`, which may be in a store.
codec::Result<FileTraits> traits_of(const std::string& path);

/// Returns `invalid` if the output file `out` would replace `in`, or a container or part of it.
codec::Result<void> check_no_overlap(const std::string& in, const std::string& out);

}  // namespace cframefs::tools
