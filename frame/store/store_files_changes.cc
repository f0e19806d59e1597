// StoreFiles: what can be changed. Nothing inside a store can; everything else goes to `base`.
#include "frame/open/layer_attributes.h"
#include "frame/store/store_files.h"

namespace cframefs::frame {

ChangeFileOps* StoreFiles::changes_at(OpenFile dir, const std::string& path, Entry change) {
  const auto found = place_of(dir, path, Look::glance);
  // What cannot be examined may be in a store, which nothing changes.
  if (!found) return nullptr;
  const auto& place = *found;
  // A store can be moved as one.
  if (!place || (change == Entry::moved && place->inside.empty())) return &base_;
  return nullptr;
}

ChangeFileOps* StoreFiles::changes_of(OpenFile file) {
  const auto known = opened(file);
  const bool is_inside = known && (!known->place.inside.empty() || !is_itself(file, *known));
  return is_inside ? nullptr : &base_;
}

Result<void> StoreFiles::link_at(OpenFile file, OpenFile to_dir, const std::string& to) {
  if (opened(file)) return refused("link");
  return ReadOnlyFiles::link_at(file, to_dir, to);
}

Result<void> StoreFiles::set_attribute(OpenFile file, const std::string& name, const std::string& value, int flags) {
  if (is_vlmetalayer_attribute(name) && opened(file)) return refused("setxattr");
  return ReadOnlyFiles::set_attribute(file, name, value, flags);
}

Result<void> StoreFiles::remove_attribute(OpenFile file, const std::string& name) {
  if (is_vlmetalayer_attribute(name) && opened(file)) return refused("removexattr");
  return ReadOnlyFiles::remove_attribute(file, name);
}

}  // namespace cframefs::frame
