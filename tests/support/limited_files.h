// File operations of filesystems that lack something: FUSE, NFS, 9p, exFAT, vfat.
//
// Each lack answers as the kernel does for such a filesystem. Thread safety: as the system's; the limits are set before
// the first use. Errors: as the system's.
#pragma once

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <ostream>
#include <string>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/base/mutex.h"
#include "tests/support/forwarding_files.h"

namespace cframefs::test {

struct Limits {
  const char* name = "all";
  bool no_rename_flags = false;     // EINVAL: NFS, 9p, FUSE
  bool no_links = false;            // EPERM: exFAT, vfat
  bool no_symlinks = false;         // EPERM: exFAT, vfat
  bool no_xattr = false;            // EOPNOTSUPP
  bool no_locks = false;            // ENOSYS
  bool locks_need_mode = false;     // EBADF for an exclusive lock without the right to write: NFS
  bool no_chmod = false;            // EPERM
  bool no_chown = false;            // EPERM
  bool no_times = false;            // EPERM
  bool no_handles = false;          // EOPNOTSUPP
  bool gone_handles = false;        // ESTALE for a file that the kernel does not hold: FUSE
  bool no_holes = false;            // EOPNOTSUPP from fallocate(2)
  bool no_directory_sync = false;   // EINVAL: CIFS
  std::int64_t stamp_seconds = 0;   // times are rounded down to so much
  bool folds_case = false;          // names differ by more than the case of letters
  bool renames_open_files = false;  // a file that is removed while it is open is called .nfs* until it is closed: NFS
  bool gone_is_stale = false;       // ESTALE of an open file that is on the server no more: NFS
  bool no_noatime = false;          // EPERM for O_NOATIME, after a file is created: it belongs to another user
  bool inodes_by_spelling = false;  // a file has one inode number for each spelling that it is asked for by: FUSE
};

inline std::ostream& operator<<(std::ostream& out, const Limits& limits) {
  return out << limits.name;
}

class LimitedFiles : public ForwardingFiles {
 public:
  explicit LimitedFiles(const Limits& limits = {}) : limits_(limits) {}
  void set(const Limits& limits) { limits_ = limits; }

  codec::Result<frame::OpenFile> open_at(frame::OpenFile dir, const std::string& path, int flags) override {
    if (limits_.no_noatime && (flags & O_NOATIME) != 0) return codec::io_error(EPERM, "open");
    return opened(path, ForwardingFiles::open_at(dir, spelling(dir, path), flags));
  }
  codec::Result<frame::OpenFile> create_at(frame::OpenFile dir, const std::string& path, int flags,
                                           mode_t mode) override {
    auto created = opened(path, ForwardingFiles::create_at(dir, spelling(dir, path), flags, mode));
    if (!created || !limits_.no_noatime || (flags & O_NOATIME) == 0) return created;
    close(*created);
    return codec::io_error(EPERM, "open");
  }
  codec::Result<frame::OpenFile> reopen(frame::OpenFile file, int flags) override {
    if (limits_.no_noatime && (flags & O_NOATIME) != 0) return codec::io_error(EPERM, "open");
    auto again = ForwardingFiles::reopen(file, flags);
    if (again) {
      codec::MutexLock lock(mutex_);
      if (const auto found = inodes_.find(file.value); found != inodes_.end()) inodes_[again->value] = found->second;
    }
    return again;
  }
  void close(frame::OpenFile file) override {
    {
      codec::MutexLock lock(mutex_);
      inodes_.erase(file.value);
    }
    const auto closed = limits_.renames_open_files ? ForwardingFiles::status(file) : codec::io_error(0, "close");
    ForwardingFiles::close(file);
    if (closed) remove_renamed(closed->st_ino);
  }
  codec::Result<std::size_t> pread(frame::OpenFile file, codec::ByteSpan into, frame::FileOffset at) override {
    if (is_gone(file)) return codec::io_error(ESTALE, "pread");
    return ForwardingFiles::pread(file, into, at);
  }
  codec::Result<void> pwrite(frame::OpenFile file, codec::ByteView from, frame::FileOffset at) override {
    if (is_gone(file)) return codec::io_error(ESTALE, "pwrite");
    return ForwardingFiles::pwrite(file, from, at);
  }
  codec::Result<struct stat> status(frame::OpenFile file) override {
    if (is_gone(file)) return codec::io_error(ESTALE, "stat");
    auto status = shown(ForwardingFiles::status(file));
    codec::MutexLock lock(mutex_);
    if (const auto found = inodes_.find(file.value); status && found != inodes_.end()) status->st_ino = found->second;
    return status;
  }
  codec::Result<struct stat> status_at(frame::OpenFile dir, const std::string& path) override {
    if (path == ".") return status(dir);
    auto found = shown(ForwardingFiles::status_at(dir, spelling(dir, path)));
    if (found) found->st_ino = inode_of(found->st_ino, path);
    return found;
  }
  codec::Result<std::vector<frame::DirectoryEntry>> list(frame::OpenFile dir_fd) override {
    ++lists;
    return ForwardingFiles::list(dir_fd);
  }
  codec::Result<void> rename_at(frame::OpenFile from_dir, const std::string& from, frame::OpenFile to_dir,
                                const std::string& to, unsigned flags) override {
    if (limits_.no_rename_flags && flags != 0) return codec::io_error(EINVAL, "rename");
    const std::string old_name = spelling(from_dir, from);
    std::string new_name = spelling(to_dir, to);
    if (from_dir == to_dir && new_name == old_name) new_name = to;
    if (flags == 0) keep_open_file(to_dir, new_name);
    const auto moved = ForwardingFiles::status_at(from_dir, old_name);
    auto done = ForwardingFiles::rename_at(from_dir, old_name, to_dir, new_name, flags);
    codec::MutexLock lock(mutex_);
    if (done && moved) std::replace(spellings_[moved->st_ino].begin(), spellings_[moved->st_ino].end(), from, to);
    return done;
  }
  codec::Result<void> remove_at(frame::OpenFile dir, const std::string& path, bool directory) override {
    forget(ForwardingFiles::status_at(dir, spelling(dir, path)));
    if (!directory && keep_open_file(dir, spelling(dir, path))) return {};
    return ForwardingFiles::remove_at(dir, spelling(dir, path), directory);
  }
  codec::Result<void> make_directory_at(frame::OpenFile dir, const std::string& path, mode_t mode) override {
    return ForwardingFiles::make_directory_at(dir, spelling(dir, path), mode);
  }
  codec::Result<void> link_at(frame::OpenFile file, frame::OpenFile to_dir, const std::string& to) override {
    if (limits_.no_links) return codec::io_error(EPERM, "link");
    return ForwardingFiles::link_at(file, to_dir, spelling(to_dir, to));
  }
  codec::Result<void> make_symlink_at(const std::string& target, frame::OpenFile dir,
                                      const std::string& path) override {
    if (limits_.no_symlinks) return codec::io_error(EPERM, "symlink");
    return ForwardingFiles::make_symlink_at(target, dir, spelling(dir, path));
  }

  codec::Result<std::vector<std::uint8_t>> handle_of(frame::OpenFile file) override {
    if (limits_.no_handles) return codec::io_error(EOPNOTSUPP, "handle");
    return ForwardingFiles::handle_of(file);
  }
  codec::Result<frame::OpenFile> open_handle(frame::OpenFile mount, codec::ByteView handle, int flags) override {
    if (limits_.no_handles) return codec::io_error(EOPNOTSUPP, "open");
    if (limits_.gone_handles) return codec::io_error(ESTALE, "open");
    return ForwardingFiles::open_handle(mount, handle, flags);
  }
  codec::Result<std::vector<std::string>> list_attributes(frame::OpenFile file) override {
    if (limits_.no_xattr) return codec::io_error(EOPNOTSUPP, "listxattr");
    return ForwardingFiles::list_attributes(file);
  }
  codec::Result<std::string> get_attribute(frame::OpenFile file, const std::string& name) override {
    if (limits_.no_xattr) return codec::io_error(EOPNOTSUPP, "getxattr");
    return ForwardingFiles::get_attribute(file, name);
  }
  codec::Result<void> set_attribute(frame::OpenFile file, const std::string& name, const std::string& value,
                                    int flags) override {
    if (limits_.no_xattr) return codec::io_error(EOPNOTSUPP, "setxattr");
    return ForwardingFiles::set_attribute(file, name, value, flags);
  }
  codec::Result<void> remove_attribute(frame::OpenFile file, const std::string& name) override {
    if (limits_.no_xattr) return codec::io_error(EOPNOTSUPP, "removexattr");
    return ForwardingFiles::remove_attribute(file, name);
  }
  codec::Result<void> change_mode(frame::OpenFile file, mode_t mode) override {
    if (limits_.no_chmod) return codec::io_error(EPERM, "chmod");
    return ForwardingFiles::change_mode(file, mode);
  }
  codec::Result<void> change_owner(frame::OpenFile file, uid_t user, gid_t group) override {
    if (limits_.no_chown) return codec::io_error(EPERM, "chown");
    return ForwardingFiles::change_owner(file, user, group);
  }
  codec::Result<void> set_times(frame::OpenFile file, const std::array<struct timespec, 2>& times) override {
    if (limits_.no_times) return codec::io_error(EPERM, "utimens");
    return ForwardingFiles::set_times(file, times);
  }
  codec::Result<void> allocate(frame::OpenFile file, int mode, frame::FileOffset at, std::uint64_t length) override {
    if (limits_.no_holes) return codec::io_error(EOPNOTSUPP, "fallocate");
    return ForwardingFiles::allocate(file, mode, at, length);
  }
  codec::Result<void> sync(frame::OpenFile handle, bool data_only) override {
    if (limits_.no_directory_sync) {
      const auto file = ForwardingFiles::status(handle);
      if (file && S_ISDIR(file->st_mode)) return codec::io_error(EINVAL, "fsync");
    }
    return ForwardingFiles::sync(handle, data_only);
  }
  codec::Result<bool> try_lock(frame::OpenFile file, int operation) override {
    if (limits_.no_locks) return codec::io_error(ENOSYS, "flock");
    const int mode = ::fcntl(file.value, F_GETFL) & O_ACCMODE;
    if (limits_.locks_need_mode && operation == LOCK_EX && mode == O_RDONLY) return codec::io_error(EBADF, "flock");
    return ForwardingFiles::try_lock(file, operation);
  }
  codec::Result<bool> try_byte_lock(frame::OpenFile file, frame::FileOffset at, frame::ByteLock action) override {
    if (limits_.no_locks) return codec::io_error(ENOSYS, "fcntl");
    return ForwardingFiles::try_byte_lock(file, at, action);
  }

  std::atomic<int> lists{0};
  std::atomic<int> renames{0};  // of files that were open

 private:
  static bool is_same(const std::string& one, const std::string& other) {
    const auto letter = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
    return one.size() == other.size() &&
           std::equal(one.begin(), one.end(), other.begin(), [&](char a, char b) { return letter(a) == letter(b); });
  }
  /// The name on disk of what is asked for as `name`.
  std::string spelling(frame::OpenFile dir, const std::string& name) {
    if (!limits_.folds_case || name == "." || name.find('/') != std::string::npos) return name;
    const auto entries = ForwardingFiles::list(dir);
    if (!entries) return name;
    for (const auto& entry : *entries) {
      if (is_same(entry.name, name)) return entry.name;
    }
    return name;
  }
  static std::string own_descriptor(frame::OpenFile file) { return "/proc/self/fd/" + std::to_string(file.value); }
  bool is_gone(frame::OpenFile file) const {
    struct stat status {};
    return limits_.gone_is_stale && ::fstat(file.value, &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_nlink == 0;
  }
  /// Whether this process has a file open for more than its name.
  static bool is_open(const struct stat& file) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      const int fd = static_cast<int>(std::strtol(entry.path().filename().c_str(), nullptr, 10));
      struct stat status {};
      const int flags = ::fcntl(fd, F_GETFL);
      if (flags < 0 || (flags & O_PATH) != 0 || ::fstat(fd, &status) != 0) continue;
      if (status.st_ino == file.st_ino && status.st_dev == file.st_dev) return true;
    }
    return false;
  }
  /// Renames what is about to lose its name while it is open. False: it is not, or the source does not do so.
  bool keep_open_file(frame::OpenFile dir, const std::string& path) {
    struct stat file {};
    if (!limits_.renames_open_files || ::fstatat(dir.value, path.c_str(), &file, AT_SYMLINK_NOFOLLOW) != 0)
      return false;
    if (!S_ISREG(file.st_mode) || file.st_nlink != 1 || !is_open(file)) return false;
    codec::MutexLock lock(mutex_);
    const std::string name = ".nfs" + std::to_string(file.st_ino);
    const auto directory = std::filesystem::read_symlink(own_descriptor(dir));
    if (::renameat(dir.value, path.c_str(), dir.value, name.c_str()) != 0) return false;
    renamed_[file.st_ino] = (directory / name).string();
    ++renames;
    return true;
  }
  void remove_renamed(ino_t inode) {
    codec::MutexLock lock(mutex_);
    const auto found = renamed_.find(inode);
    struct stat file {};
    if (found == renamed_.end() || ::stat(found->second.c_str(), &file) != 0 || is_open(file)) return;
    ::unlink(found->second.c_str());
    renamed_.erase(found);
  }
  /// Its number may become that of another file.
  void forget(const codec::Result<struct stat>& removed) {
    codec::MutexLock lock(mutex_);
    if (removed && removed->st_nlink <= 1) spellings_.erase(removed->st_ino);
  }
  /// Names that are spelled in one way have one number for good; a rename takes it along.
  ino_t inode_of(ino_t inode, const std::string& name) {
    if (!limits_.inodes_by_spelling || name == ".") return inode;
    codec::MutexLock lock(mutex_);
    std::vector<std::string>& known = spellings_[inode];
    const auto found = std::find(known.begin(), known.end(), name);
    const auto number = static_cast<ino_t>(found - known.begin());
    if (found == known.end()) known.push_back(name);
    return (number << 40U) + inode;
  }
  codec::Result<frame::OpenFile> opened(const std::string& path, codec::Result<frame::OpenFile> fd) {
    if (!fd || !limits_.inodes_by_spelling || path == ".") return fd;
    const auto status = ForwardingFiles::status(*fd);
    const ino_t inode = status ? inode_of(status->st_ino, path) : 0;
    codec::MutexLock lock(mutex_);
    inodes_[fd->value] = inode;
    return fd;
  }
  codec::Result<struct stat> shown(codec::Result<struct stat> status) const {
    if (!status || limits_.stamp_seconds == 0) return status;
    for (struct timespec* time : {&status->st_mtim, &status->st_ctim})
      *time = {static_cast<time_t>(time->tv_sec - time->tv_sec % limits_.stamp_seconds), 0};
    return status;
  }

  Limits limits_;
  codec::Mutex mutex_;
  std::map<int, ino_t> inodes_ GUARDED_BY(mutex_);  // by descriptor
  std::map<ino_t, std::vector<std::string>> spellings_ GUARDED_BY(mutex_);
  std::map<ino_t, std::string> renamed_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::test
