// StoreFiles: calls that change something. They fail with EROFS inside a store and go to `base` otherwise.
#include <cerrno>

#include "frame/open/layer_attributes.h"
#include "frame/store/store_files.h"

namespace cframefs::frame {

using codec::Failure;
using codec::io_error;

Result<void> StoreFiles::check_outside(int dir, const std::string& path, bool whole) {
  const auto place = place_of(dir, path, Look::glance);
  if (!place || (whole && place->inside.empty())) return {};
  return io_error(EROFS, "change of a store");
}

Result<void> StoreFiles::check_changeable(int fd, const char* doing) const {
  const auto known = opened(fd);
  const bool is_inside = known && (!known->place.inside.empty() || !is_itself(fd, *known));
  return is_inside ? io_error(EROFS, doing) : Result<void>();
}

Result<int> StoreFiles::create_at(int dir, const std::string& path, int flags, mode_t mode) {
  if (auto outside = check_outside(dir, path); !outside) return Failure(outside.error());
  return base_.create_at(dir, path, flags, mode);
}

Result<void> StoreFiles::rename_at(int from_dir, const std::string& from, int to_dir, const std::string& to,
                                   unsigned flags) {
  if (auto outside = check_outside(from_dir, from, true); !outside) return outside;
  if (auto outside = check_outside(to_dir, to, true); !outside) return outside;
  return base_.rename_at(from_dir, from, to_dir, to, flags);
}

Result<void> StoreFiles::remove_at(int dir, const std::string& path, bool directory) {
  if (auto outside = check_outside(dir, path); !outside) return outside;
  return base_.remove_at(dir, path, directory);
}

Result<void> StoreFiles::make_directory_at(int dir, const std::string& path, mode_t mode) {
  if (auto outside = check_outside(dir, path); !outside) return outside;
  return base_.make_directory_at(dir, path, mode);
}

Result<void> StoreFiles::make_node_at(int dir, const std::string& path, mode_t mode, dev_t device) {
  if (auto outside = check_outside(dir, path); !outside) return outside;
  return base_.make_node_at(dir, path, mode, device);
}

Result<void> StoreFiles::link_at(int fd, int to_dir, const std::string& to) {
  if (opened(fd)) return io_error(EROFS, "link");
  if (auto outside = check_outside(to_dir, to); !outside) return outside;
  return base_.link_at(fd, to_dir, to);
}

Result<void> StoreFiles::make_symlink_at(const std::string& target, int dir, const std::string& path) {
  if (auto outside = check_outside(dir, path); !outside) return outside;
  return base_.make_symlink_at(target, dir, path);
}

Result<void> StoreFiles::change_mode(int fd, mode_t mode) {
  if (auto outside = check_changeable(fd, "chmod"); !outside) return outside;
  return base_.change_mode(fd, mode);
}

Result<void> StoreFiles::change_owner(int fd, uid_t user, gid_t group) {
  if (auto outside = check_changeable(fd, "chown"); !outside) return outside;
  return base_.change_owner(fd, user, group);
}

Result<void> StoreFiles::set_times(int fd, const std::array<struct timespec, 2>& times) {
  if (auto outside = check_changeable(fd, "utimens"); !outside) return outside;
  return base_.set_times(fd, times);
}

Result<void> StoreFiles::set_attribute(int fd, const std::string& name, const std::string& value, int flags) {
  if (auto outside = check_changeable(fd, "setxattr"); !outside) return outside;
  if (is_vlmetalayer_attribute(name) && opened(fd)) return io_error(EROFS, "setxattr");
  return base_.set_attribute(fd, name, value, flags);
}

Result<void> StoreFiles::remove_attribute(int fd, const std::string& name) {
  if (auto outside = check_changeable(fd, "removexattr"); !outside) return outside;
  if (is_vlmetalayer_attribute(name) && opened(fd)) return io_error(EROFS, "removexattr");
  return base_.remove_attribute(fd, name);
}

}  // namespace cframefs::frame
