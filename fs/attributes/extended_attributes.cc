#include "fs/attributes/extended_attributes.h"

#include <cerrno>
#include <string_view>
#include <utility>

#include <linux/limits.h>

#include "frame/io/posix_acl.h"
#include "frame/open/container_info.h"
#include "frame/open/layer_attributes.h"
#include "fs/frames/layer_changes.h"

namespace cframefs::fs {
namespace {

constexpr std::string_view kOurs = "user.blosc2.";
constexpr std::string_view kInfo = "user.blosc2.info";
constexpr std::string_view kSelinux = "security.selinux";

codec::Failure no_attribute() {
  return codec::io_error(ENODATA, "getxattr");
}

std::string to_string(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

codec::Result<std::shared_ptr<const FrameSnapshot>> ExtendedAttributes::snapshot_for_attributes(Node& node) {
  if (const auto writer = write_back_of(node)) return writer->snapshot();
  auto file = node_files_.open_file(node, O_RDONLY);
  if (!file) return codec::Failure(file.error());
  return states_.snapshot_of(node, *file);
}

bool ExtendedAttributes::hides(std::string_view name) const {
  return mount_.options.shown.are_set() && name.starts_with(frame::kAclPrefix);
}

codec::Result<std::vector<std::string>> ExtendedAttributes::list(NodeId id) {
  const std::shared_ptr<Node> node = mount_.nodes.find(id);
  if (!node || node->role != NodeRole::stored || node_files_.is_made_up_root(*node)) return std::vector<std::string>{};
  if (node->kind == EntryKind::symlink || node->kind == EntryKind::other) return std::vector<std::string>{};
  auto file = attribute_files_.attribute_file(*node);
  if (!file) return codec::Failure(file.error());
  auto names = mount_.files.list_attributes((*file)->handle());
  if (!names) names = std::vector<std::string>{};  // a backing filesystem without attributes
  std::erase_if(*names, [this](const std::string& name) { return hides(name); });
  if (!is_container(node->kind)) return names;
  // Hide attributes of the backing file whose names begin with user.blosc2.
  std::erase_if(*names, [](const std::string& name) { return name.starts_with(kOurs); });
  auto snapshot = snapshot_for_attributes(*node);
  if (!snapshot) return names;  // damaged: only the file's own attributes
  for (std::string& layer : frame::vlmetalayer_attributes((*snapshot)->container()))
    names->push_back(std::move(layer));
  return names;
}

codec::Result<std::string> ExtendedAttributes::get(NodeId id, const std::string& name) {
  if (hides(name)) return codec::io_error(EOPNOTSUPP, "getxattr");
  const std::shared_ptr<Node> node = mount_.nodes.find(id);
  if (!node || node->role != NodeRole::stored || node_files_.is_made_up_root(*node)) return no_attribute();
  if (node->kind == EntryKind::symlink || node->kind == EntryKind::other) return no_attribute();
  if (!is_container(node->kind) || !name.starts_with(kOurs)) {
    auto file = attribute_files_.file_with_attribute(*node, name);
    if (!file) return codec::Failure(file.error());
    auto value = mount_.files.get_attribute((*file)->handle(), name);
    // The request comes only if the kernel does not use SELinux. Programs such as ls(1) then do not ask for the label
    // of each other file of the mount.
    if (!value && value.error().sys == ENODATA && name == kSelinux) return codec::io_error(EOPNOTSUPP, "getxattr");
    return value;
  }
  auto snapshot = snapshot_for_attributes(*node);
  if (!snapshot) return codec::Failure(snapshot.error());
  const frame::Container& container = (*snapshot)->container();
  if (name == kInfo) return frame::info_json(container);
  if (name.starts_with(frame::kMetaAttribute)) {
    for (const frame::MetalayerPlace& layer : container.metalayer_places()) {
      if (layer.name != name.substr(frame::kMetaAttribute.size())) continue;
      if (layer.length > XATTR_SIZE_MAX) return codec::io_error(E2BIG, "getxattr");
      const auto content = container.metalayer(layer);
      if (!content) return codec::Failure(content.error());
      return to_string(*content);
    }
  } else if (frame::is_vlmetalayer_attribute(name)) {
    return frame::vlmetalayer_attribute(container, name);
  }
  return no_attribute();
}

codec::Result<void> ExtendedAttributes::set(NodeId id, const std::string& name, const std::string& value, int flags,
                                            const Caller& caller, ChangePermit& permit) {
  if (hides(name)) return codec::io_error(EOPNOTSUPP, "setxattr");
  if (auto writable = mount_.check_writable("setxattr"); !writable) return writable;
  const std::shared_ptr<Node> node = mount_.nodes.find(id);
  if (!node) return no_such_node();
  const bool has_file = node->kind != EntryKind::symlink && node->kind != EntryKind::other;
  if (node->role != NodeRole::stored || !has_file || node_files_.is_made_up_root(*node))
    return codec::io_error(EPERM, "setxattr", "this kind of file has no attributes in the mount");
  if (is_container(node->kind) && name.starts_with("user.blosc2."))
    return change_layer(writers_, *node, name, &value, flags, permit);
  const auto set_on = [&](frame::OpenFile file) {
    return name.starts_with(frame::kAclPrefix) ? rights_.change_acl(*node, file, name, &value, caller)
                                               : mount_.files.set_attribute(file, name, value, flags);
  };
  return change_stored(*node, name, set_on, permit);
}

codec::Result<void> ExtendedAttributes::remove(NodeId id, const std::string& name, const Caller& caller,
                                               ChangePermit& permit) {
  if (hides(name)) return codec::io_error(EOPNOTSUPP, "removexattr");
  if (auto writable = mount_.check_writable("removexattr"); !writable) return writable;
  const std::shared_ptr<Node> node = mount_.nodes.find(id);
  if (!node) return no_such_node();
  const bool has_file = node->kind != EntryKind::symlink && node->kind != EntryKind::other;
  if (node->role != NodeRole::stored || !has_file || node_files_.is_made_up_root(*node))
    return codec::io_error(EPERM, "removexattr", "this kind of file has no attributes in the mount");
  if (is_container(node->kind) && name.starts_with("user.blosc2."))
    return change_layer(writers_, *node, name, nullptr, 0, permit);
  const auto remove_from = [&](frame::OpenFile file) {
    return name.starts_with(frame::kAclPrefix) ? rights_.change_acl(*node, file, name, nullptr, caller)
                                               : mount_.files.remove_attribute(file, name);
  };
  return change_stored(*node, name, remove_from, permit);
}

codec::Result<void> ExtendedAttributes::change_stored(Node& node, const std::string& name,
                                                      const AttributeFiles::ChangeFile& change, ChangePermit& permit) {
  bool were_kept = false;
  auto done = attribute_files_.change_file(
      node, KernelPages::SelfChange::ctime, [&] { return attribute_files_.file_with_attribute(node, name); },
      [&](frame::OpenFile file) {
        auto changed = change(file);
        // Before the watcher's reports of this change are looked into, which wait for Node::change_mutex.
        were_kept = node.kept.take() || were_kept;
        return changed;
      },
      permit);
  if (were_kept) pages_.forget_attributes(node.id);
  return done;
}

}  // namespace cframefs::fs
