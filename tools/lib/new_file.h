// A file that a program makes. It has no name until it is whole and gets its own: a program that is killed leaves
// nothing. Where the filesystem has no such files (FUSE, NFS), it is written beside its place under a hidden name of
// our own, locked for as long as it is written; the next program that writes there removes what a killed one has left.
// Until publish(), and if the program gives up, its place is as it was.
//
// Thread safety: one thread. Ownership: owns the descriptors; borrows the file operations. Errors: invalid (something
// is there already, or it is no regular file), io.
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
  /// `replace`: a regular file that is there already is replaced by publish(). `mode`: as open(2). `remedy`: what the
  /// message says besides if it may not be replaced.
  static codec::Result<NewFile> create(frame::FileOps& files, const std::string& path, bool replace, mode_t mode,
                                       const char* remedy = "; --force replaces it");
  NewFile(NewFile&& other) noexcept = default;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  int fd() const { return file_.fd(); }

  /// Has publish() give the file these times of access and modification.
  void keep_times(const std::array<struct timespec, 2>& times) { times_ = times; }
  /// Syncs the file, gives it its name, and syncs that.
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
  std::string name_;  // its last part, beneath directory_
  bool replace_;
  const char* remedy_;
  frame::Descriptor directory_;
  std::string temporary_;  // beneath directory_; empty: the file has no name
  frame::Descriptor file_;
  std::optional<std::array<struct timespec, 2>> times_;
};

}  // namespace cframefs::tools
