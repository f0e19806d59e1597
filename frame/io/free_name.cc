#include "frame/io/free_name.h"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>

namespace cframefs::frame {
namespace {

Result<void> check_and_rename(FileOps& files, OpenFile from_dir, const std::string& from, OpenFile to_dir,
                              const std::string& to) {
  const auto taken = files.status_at(to_dir, to);
  if (taken) return codec::io_error(EEXIST, "rename");
  if (taken.error().sys != ENOENT) return codec::Failure(taken.error());
  return files.rename_at(from_dir, from, to_dir, to, 0);
}

/// Returns true for errors that do not concern the name: the filesystem has no links, or the daemon may not link this
/// file.
bool makes_no_links(const Error& error) {
  return error.sys == EPERM || error.sys == EACCES || error.sys == EMLINK || error.sys == EXDEV ||
         knows_no_rename_flags(error);
}

}  // namespace

bool knows_no_rename_flags(const Error& error) {
  return error.sys == EINVAL || error.sys == ENOSYS || error.sys == EOPNOTSUPP;
}

Result<void> rename_to_free_name(FileOps& files, OpenFile from_dir, const std::string& from, OpenFile to_dir,
                                 const std::string& to) {
  auto renamed = files.rename_at(from_dir, from, to_dir, to, RENAME_NOREPLACE);
  if (renamed || !knows_no_rename_flags(renamed.error())) return renamed;
  return check_and_rename(files, from_dir, from, to_dir, to);
}

Result<NameGiven> give_free_name(FileOps& files, OpenFile dir, const std::string& temporary, const std::string& name) {
  const auto by_rename = [](const Result<void>& done) {
    return done ? Result<NameGiven>(NameGiven::by_rename) : codec::Failure(done.error());
  };
  const auto renamed = files.rename_at(dir, temporary, dir, name, RENAME_NOREPLACE);
  if (renamed || !knows_no_rename_flags(renamed.error())) return by_rename(renamed);
  const auto fd = files.open_at(dir, temporary, O_PATH | O_NOFOLLOW);
  if (!fd) return codec::Failure(fd.error());
  const Descriptor file(files, *fd);
  const auto linked = files.link_at(file.handle(), dir, name);
  if (!linked && makes_no_links(linked.error())) return by_rename(check_and_rename(files, dir, temporary, dir, name));
  if (!linked) return codec::Failure(linked.error());
  const auto removed = files.remove_at(dir, temporary, false);
  if (removed) return NameGiven::by_link;
  // The function fails, so remove the new name as well.
  static_cast<void>(files.remove_at(dir, name, false));
  return codec::Failure(removed.error());
}

}  // namespace cframefs::frame
