// Base class of the file operations of a tree that cannot be changed, at least in part: changes fail with EROFS.
//
// A derived class reads the tree. If other operations may change some of its files, it says which ones: changes_at(),
// changes_of(). Thread safety, ownership, errors: as read_file_ops.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "frame/io/file_ops.h"

namespace cframefs::frame {

class ReadOnlyFiles : public FileOps {
 public:
  /// `why` nothing can be changed, for users; it must outlive this object.
  explicit ReadOnlyFiles(const char* why) : why_(why) {}
  Result<OpenFile> create_at(OpenFile dir, const std::string& path, int flags, mode_t mode) override;
  Result<void> pwrite(OpenFile file, ByteView from, FileOffset at) override;
  Result<void> truncate(OpenFile file, std::uint64_t size) override;
  Result<void> allocate(OpenFile file, int mode, FileOffset at, std::uint64_t length) override;
  /// Succeeds if nothing can change the file: then there is nothing to sync.
  Result<void> sync(OpenFile file, bool data_only) override;
  /// As sync().
  Result<void> flush(OpenFile file) override;
  void start_writeback(OpenFile file, FileOffset at, std::uint64_t length) override;
  Result<void> rename_at(OpenFile from_dir, const std::string& from, OpenFile to_dir, const std::string& to,
                         unsigned flags) override;
  Result<void> remove_at(OpenFile dir, const std::string& path, bool directory) override;
  Result<void> make_directory_at(OpenFile dir, const std::string& path, mode_t mode) override;
  Result<void> make_node_at(OpenFile dir, const std::string& path, mode_t mode, dev_t device) override;
  Result<void> link_at(OpenFile file, OpenFile to_dir, const std::string& to) override;
  Result<void> make_symlink_at(const std::string& target, OpenFile dir, const std::string& path) override;
  Result<void> change_mode(OpenFile file, mode_t mode) override;
  Result<void> change_owner(OpenFile file, uid_t user, gid_t group) override;
  Result<void> set_times(OpenFile file, const std::array<struct timespec, 2>& times) override;
  void note_access(OpenFile file) override;
  Result<void> set_attribute(OpenFile file, const std::string& name, const std::string& value, int flags) override;
  Result<void> remove_attribute(OpenFile file, const std::string& name) override;
  Result<bool> try_byte_lock(OpenFile file, FileOffset at, ByteLock action) override;

 protected:
  /// What a change does with the entry of a directory.
  enum class Entry : std::uint8_t { edited, moved };
  /// Returns the operations that change the entry, nullptr if it cannot be changed. By default nothing can be.
  virtual ChangeFileOps* changes_at(OpenFile dir, const std::string& path, Entry change);
  /// Returns the operations that change the open file, nullptr if it cannot be changed. By default nothing can be.
  virtual ChangeFileOps* changes_of(OpenFile file);
  /// Returns the error of a change: EROFS, with the reason.
  codec::Failure refused(const char* doing) const;

 private:
  const char* const why_;
};

}  // namespace cframefs::frame
