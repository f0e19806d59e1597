#include "frame/io/replacement_file.h"

#include <cerrno>
#include <cstdio>
#include <functional>
#include <new>
#include <utility>

#include <fcntl.h>

#include "frame/base/suffixes.h"
#include "frame/io/free_name.h"
#include "frame/io/unread_file.h"

namespace cframefs::frame {

namespace {

using codec::Failure;

/// Longer names get a digest and the container suffix instead, because a name of the maximum length leaves no room for
/// the prefix and for what a mount beneath the source adds. That mount needs the suffix to recognise the container.
constexpr std::size_t kMaxName = 200;

std::string temporary_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  std::string name = kTemporaryPrefix + path.substr(begin);
  if (name.size() > kMaxName) {
    const std::string digest = std::to_string(std::hash<std::string>{}(name));
    name = kTemporaryPrefix + digest + std::string(container_suffix(path));
  }
  return path.substr(0, begin) + name;
}

/// Returns true if the copy may lack an attribute (system attributes, owners that only root may set, modes, times)
/// because setting it is not permitted or not supported, or because it has been removed.
bool may_be_missing(const Error& error) {
  return is_refused_change(error) || error.sys == ENODATA;
}

}  // namespace

bool is_refused_change(const Error& error) {
  return error.sys == EPERM || error.sys == EACCES || error.sys == EOPNOTSUPP || error.sys == ENOSYS;
}

ReplacementFile::ReplacementFile(FileOps& files, OpenFile dir, std::string path, std::string temporary,
                                 const struct stat& original)
    : files_(&files), dir_(dir), path_(std::move(path)), temporary_(std::move(temporary)), original_(original) {}

ReplacementFile::ReplacementFile(ReplacementFile&& other) noexcept
    : files_(other.files_),
      dir_(other.dir_),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, std::string())),
      original_(other.original_),
      file_(std::move(other.file_)) {}

ReplacementFile::~ReplacementFile() {
  if (file_ && !temporary_.empty()) static_cast<void>(files_->remove_at(dir_, temporary_, false));
}

Result<ReplacementFile> ReplacementFile::create(FileOps& files, OpenFile dir, const std::string& path,
                                                OpenFile original) {
  const auto status = files.status(original);
  if (!status) return Failure(status.error());
  ReplacementFile made(files, dir, path, temporary_path(path), *status);
  auto taken = made.make(0600);
  if (taken) taken = made.take_attributes(original);
  if (!taken) return Failure(taken.error());
  return made;
}

Result<void> ReplacementFile::make(mode_t mode) {
  auto file = std::make_shared<Descriptor>();  // first, because no file may be left if there is no memory
  auto fd = create_unread(*files_, dir_, temporary_, mode);
  if (!fd && fd.error().sys == EEXIST) {
    // Left by a crash: the caller holds the frame's lock, so no other program uses the file.
    if (auto gone = files_->remove_at(dir_, temporary_, false); !gone) return gone;
    fd = create_unread(*files_, dir_, temporary_, mode);
  }
  if (!fd) return Failure(fd.error());
  *file = Descriptor(*files_, *fd);
  file_ = std::move(file);
  return {};
}

/// Sets the mode. If the filesystem refuses chmod, creates the file again with that mode; the umask may then apply.
Result<void> ReplacementFile::take_mode(mode_t mode) {
  auto set = files_->change_mode(handle(), mode);
  if (set || !may_be_missing(set.error())) return set;
  const auto has_mode = [&] {
    const auto status = files_->status(handle());
    return status && (status->st_mode & 07777U) == mode;
  };
  if (has_mode()) return {};
  file_.reset();
  if (auto gone = files_->remove_at(dir_, temporary_, false); !gone) return gone;
  return make(mode & 0777U);
}

Result<void> ReplacementFile::take_attributes(OpenFile original) {
  mode_t mode = original_.st_mode & 07777;
  if (auto owned = files_->change_owner(handle(), original_.st_uid, original_.st_gid); !owned) {
    if (!may_be_missing(owned.error())) return owned;
    mode &= ~static_cast<mode_t>(S_ISUID | S_ISGID);
  }
  if (auto set = take_mode(mode); !set) return set;
  const auto names = files_->list_attributes(original);
  if (!names) {
    if (may_be_missing(names.error())) return {};
    return Failure(names.error());
  }
  for (const std::string& name : *names) {
    const auto value = files_->get_attribute(original, name);
    if (!value) {
      if (may_be_missing(value.error())) continue;
      return Failure(value.error());
    }
    auto set = files_->set_attribute(handle(), name, *value, 0);
    if (!set && !may_be_missing(set.error())) return set;
  }
  return {};
}

Result<void> ReplacementFile::keep_times(bool content_kept) {
  const struct timespec modified = content_kept ? original_.st_mtim : timespec{0, UTIME_OMIT};
  auto set = files_->set_times(handle(), {original_.st_atim, modified});
  return set || may_be_missing(set.error()) ? Result<void>() : set;
}

Result<void> ReplacementFile::publish() {
  const auto exchange = [this] { return files_->rename_at(dir_, temporary_, dir_, path_, RENAME_EXCHANGE); };
  auto exchanged = exchange();
  if (!exchanged && knows_no_rename_flags(exchanged.error())) {
    exchanged = files_->rename_at(dir_, temporary_, dir_, path_, 0);
    if (exchanged) temporary_.clear();
    return exchanged;
  }
  if (!exchanged)
    return exchanged.error().sys == ENOENT ? codec::stale("another program removed the frame") : exchanged;
  try {
    // Another program may have replaced the file after the caller's check; its file must not be lost.
    const auto replaced = files_->status_at(dir_, temporary_);
    if (replaced && (replaced->st_ino != original_.st_ino || replaced->st_dev != original_.st_dev)) {
      static_cast<void>(exchange());
      return codec::stale("another program replaced the frame");
    }
    static_cast<void>(files_->remove_at(dir_, temporary_, false));
  } catch (const std::bad_alloc&) {
    // The file has taken its place, and the caller must know. The next replacement removes what has the temporary name.
  }
  temporary_.clear();
  return {};
}

Result<void> ReplacementFile::drop_name() {
  if (auto gone = files_->remove_at(dir_, temporary_, false); !gone) return gone;
  temporary_.clear();
  return {};
}

Result<void> sync_directory(FileOps& files, OpenFile file) {
  auto synced = files.sync(file, false);
  // EINVAL: the filesystem (such as CIFS) has no fsync(2) for directories.
  return synced || synced.error().sys == EINVAL ? Result<void>() : synced;
}

Result<void> sync_directory_of(FileOps& files, OpenFile dir, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const auto fd = files.open_at(dir, slash == std::string::npos ? "." : path.substr(0, slash), O_RDONLY | O_DIRECTORY);
  if (!fd) return Failure(fd.error());
  const Descriptor directory(files, *fd);
  return sync_directory(files, directory.handle());
}

}  // namespace cframefs::frame
