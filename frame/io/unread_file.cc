#include "frame/io/unread_file.h"

#include <cerrno>

#include <fcntl.h>

namespace cframefs::frame {

Result<OpenFile> create_unread(FileOps& files, OpenFile dir, const std::string& path, mode_t mode) {
  auto made = files.create_at(dir, path, O_RDWR | O_EXCL | O_NOATIME, mode);
  if (made || made.error().sys != EPERM) return made;
  // The source may give the file to another user than the daemon; it exists then, but is not opened.
  static_cast<void>(files.remove_at(dir, path, false));
  return files.create_at(dir, path, O_RDWR | O_EXCL, mode);
}

Result<OpenFile> create_unread_unnamed(FileOps& files, OpenFile dir, mode_t mode) {
  auto made = files.create_at(dir, ".", O_RDWR | O_TMPFILE | O_NOATIME, mode);
  if (made || made.error().sys != EPERM) return made;
  return files.create_at(dir, ".", O_RDWR | O_TMPFILE, mode);
}

Result<OpenFile> open_unread(FileOps& files, OpenFile dir, const std::string& name) {
  constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  auto opened = files.open_at(dir, name, kFlags | O_NOATIME);
  if (opened || opened.error().sys != EPERM) return opened;
  return files.open_at(dir, name, kFlags);
}

}  // namespace cframefs::frame
