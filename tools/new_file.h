// A file that a program makes: written beside its place under a name of our own, which mounts hide, and renamed into
// place when it is whole. In a mount, where such names cannot be made, the name is another hidden one. Until then, and
// if the program gives up, its place is as it was.
//
// Thread safety: one thread. Ownership: owns the descriptors; borrows the file operations. Errors: invalid (something
// is there already, or it is no regular file), io.
#pragma once

#include <string>

#include <sys/stat.h>

#include "frame/file_ops.h"

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

  /// Syncs the file, gives it its name, and syncs that.
  codec::Result<void> publish();

 private:
  NewFile(frame::FileOps& files, std::string path, bool replace, const char* remedy)
      : files_(&files), path_(std::move(path)), replace_(replace), remedy_(remedy) {}
  codec::Result<void> open_folder();
  codec::Result<void> check_place() const;
  codec::Result<void> make_temporary(mode_t mode);
  codec::Result<void> take_place();
  codec::Failure refused(const std::string& why) const;

  frame::FileOps* files_;
  std::string path_;  // as the user gave it
  std::string name_;  // its last part, beneath folder_
  bool replace_;
  const char* remedy_;
  frame::Descriptor folder_;
  std::string temporary_;
  frame::Descriptor file_;  // open while there is a temporary file to remove
};

}  // namespace cframefs::tools
