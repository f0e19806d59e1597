#include "frame/io/read_only_files.h"

#include <cerrno>

namespace cframefs::frame {

codec::Failure ReadOnlyFiles::refused(const char* doing) const {
  return codec::io_error(EROFS, doing, why_);
}

ChangeFileOps* ReadOnlyFiles::changes_at(OpenFile, const std::string&, Entry) {
  return nullptr;
}

ChangeFileOps* ReadOnlyFiles::changes_of(OpenFile) {
  return nullptr;
}

Result<OpenFile> ReadOnlyFiles::create_at(OpenFile dir, const std::string& path, int flags, mode_t mode) {
  ChangeFileOps* changes = changes_at(dir, path, Entry::edited);
  return changes != nullptr ? changes->create_at(dir, path, flags, mode) : refused("create");
}

Result<void> ReadOnlyFiles::pwrite(OpenFile file, ByteView from, FileOffset at) {
  ChangeFileOps* changes = changes_of(file);
  return changes != nullptr ? changes->pwrite(file, from, at) : refused("pwrite");
}

Result<void> ReadOnlyFiles::truncate(OpenFile file, std::uint64_t size) {
  ChangeFileOps* changes = changes_of(file);
  return changes != nullptr ? changes->truncate(file, size) : refused("ftruncate");
}

Result<void> ReadOnlyFiles::allocate(OpenFile file, int mode, FileOffset at, std::uint64_t length) {
  ChangeFileOps* changes = changes_of(file);
  return changes != nullptr ? changes->allocate(file, mode, at, length) : refused("fallocate");
}

Result<void> ReadOnlyFiles::sync(OpenFile file, bool data_only) {
  ChangeFileOps* changes = changes_of(file);
  return changes != nullptr ? changes->sync(file, data_only) : Result<void>();
}

Result<void> ReadOnlyFiles::flush(OpenFile file) {
  ChangeFileOps* changes = changes_of(file);
  return changes != nullptr ? changes->flush(file) : Result<void>();
}

void ReadOnlyFiles::start_writeback(OpenFile file, FileOffset at, std::uint64_t length) {
  if (ChangeFileOps* changes = changes_of(file)) changes->start_writeback(file, at, length);
}

Result<void> ReadOnlyFiles::rename_at(OpenFile from_dir, const std::string& from, OpenFile to_dir,
                                      const std::string& to, unsigned flags) {
  ChangeFileOps* changes = changes_at(from_dir, from, Entry::moved);
  // Both entries belong to the same operations, or one of them cannot be changed.
  const bool may_replace = changes != nullptr && changes_at(to_dir, to, Entry::moved) == changes;
  return may_replace ? changes->rename_at(from_dir, from, to_dir, to, flags) : refused("rename");
}

Result<void> ReadOnlyFiles::remove_at(OpenFile dir, const std::string& path, bool directory) {
  ChangeFileOps* changes = changes_at(dir, path, Entry::edited);
  return changes != nullptr ? changes->remove_at(dir, path, directory) : refused("unlink");
}

Result<void> ReadOnlyFiles::make_directory_at(OpenFile dir, const std::string& path, mode_t mode) {
  ChangeFileOps* changes = changes_at(dir, path, Entry::edited);
  return changes != nullptr ? changes->make_directory_at(dir, path, mode) : refused("mkdir");
}

Result<void> ReadOnlyFiles::make_node_at(OpenFile dir, const std::string& path, mode_t mode, dev_t device) {
  ChangeFileOps* changes = changes_at(dir, path, Entry::edited);
  return changes != nullptr ? changes->make_node_at(dir, path, mode, device) : refused("mknod");
}

Result<void> ReadOnlyFiles::link_at(OpenFile file, OpenFile to_dir, const std::string& to) {
  ChangeFileOps* changes = changes_of(file);
  const bool may_link = changes != nullptr && changes_at(to_dir, to, Entry::edited) == changes;
  return may_link ? changes->link_at(file, to_dir, to) : refused("link");
}

Result<void> ReadOnlyFiles::make_symlink_at(const std::string& target, OpenFile dir, const std::string& path) {
  ChangeFileOps* changes = changes_at(dir, path, Entry::edited);
  return changes != nullptr ? changes->make_symlink_at(target, dir, path) : refused("symlink");
}

Result<void> ReadOnlyFiles::change_mode(OpenFile file, mode_t mode) {
  ChangeFileOps* changes = changes_of(file);
  return changes != nullptr ? changes->change_mode(file, mode) : refused("chmod");
}

Result<void> ReadOnlyFiles::change_owner(OpenFile file, uid_t user, gid_t group) {
  ChangeFileOps* changes = changes_of(file);
  return changes != nullptr ? changes->change_owner(file, user, group) : refused("chown");
}

Result<void> ReadOnlyFiles::set_times(OpenFile file, const std::array<struct timespec, 2>& times) {
  ChangeFileOps* changes = changes_of(file);
  return changes != nullptr ? changes->set_times(file, times) : refused("utimens");
}

void ReadOnlyFiles::note_access(OpenFile file) {
  if (ChangeFileOps* changes = changes_of(file)) changes->note_access(file);
}

Result<void> ReadOnlyFiles::set_attribute(OpenFile file, const std::string& name, const std::string& value, int flags) {
  ChangeFileOps* changes = changes_of(file);
  return changes != nullptr ? changes->set_attribute(file, name, value, flags) : refused("setxattr");
}

Result<void> ReadOnlyFiles::remove_attribute(OpenFile file, const std::string& name) {
  ChangeFileOps* changes = changes_of(file);
  return changes != nullptr ? changes->remove_attribute(file, name) : refused("removexattr");
}

Result<bool> ReadOnlyFiles::try_byte_lock(OpenFile file, FileOffset at, ByteLock action) {
  ChangeFileOps* changes = changes_of(file);
  return changes != nullptr ? changes->try_byte_lock(file, at, action) : refused("fcntl");
}

}  // namespace cframefs::frame
