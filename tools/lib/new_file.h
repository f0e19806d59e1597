// An output file. It has no name until it is complete, so a program that is killed leaves nothing. On a filesystem
// without unnamed files (FUSE, NFS) it has a hidden name in the same directory and is locked while it is written; the
// next program that writes into the directory removes the file of a killed one. Until publish(), and if the program
// fails, an existing file stays unchanged.
//
// Thread safety: one thread. Ownership: owns the descriptors; borrows the file operations. Errors: invalid (the name is
// taken, or is not that of a regular file), io.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>

#include <sys/stat.h>

#include "frame/io/file_ops.h"

namespace cframefs::tools {

class NewFile {
 public:
  /// Creates the file. `replace`: publish() replaces an existing regular file. `mode`: as open(2). `remedy`: appended
  /// to the message if the file exists and may not be replaced.
  static codec::Result<NewFile> create(frame::FileOps& files, const std::string& path, bool replace, mode_t mode,
                                       const char* remedy = "; --force replaces it");
  NewFile(NewFile&& other) noexcept = default;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  frame::OpenFile handle() const { return file_.handle(); }

  /// Makes publish() set these times of access and modification.
  void keep_times(const std::array<struct timespec, 2>& times) { times_ = times; }
  /// Syncs the file, gives it its name, and syncs the directory.
  codec::Result<void> publish();

 private:
  NewFile(frame::FileOps& files, std::string path, bool replace, const char* remedy)
      : files_(&files), path_(std::move(path)), replace_(replace), remedy_(remedy) {}
  codec::Result<void> open_directory();
  codec::Result<void> check_place() const;
  codec::Result<void> make_file(mode_t mode);
  codec::Result<void> make_unnamed(mode_t mode);
  codec::Result<void> make_temporary(mode_t mode);
  codec::Result<void> with_free_name(const std::function<codec::Result<void>()>& make);
  bool remove_left_over() const;
  codec::Result<void> take_place();
  codec::Failure refused(const std::string& why) const;

  frame::FileOps* files_;
  std::string path_;  // as the user gave it
  std::string name_;  // the last part of path_, in directory_
  bool replace_;
  const char* remedy_;
  frame::Descriptor directory_;
  std::string temporary_;  // name in directory_; empty: the file is unnamed
  frame::Descriptor file_;
  std::optional<std::array<struct timespec, 2>> times_;
};

}  // namespace cframefs::tools
