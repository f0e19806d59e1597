// The extended attributes of the mount: metadata of a frame under user.blosc2., and the backing file's own attributes.
//
//   user.blosc2.info          JSON, the first members of `cframe info --json`
//   user.blosc2.meta.NAME     fixed metalayer, its raw content
//   user.blosc2.vlmeta.NAME   variable-length metalayer, decompressed; for groups of stores from
//                             frame/store/store_files.h; long ones in parts: frame/open/layer_attributes.h
//
// Of these only variable-length metalayers are listed. Programs that copy attributes (cp, rsync, tar) set each listed
// attribute on the copy: attributes that describe how this file is stored would be refused there, or be wrong.
#include <cerrno>
#include <string_view>

#include <linux/limits.h>

#include "frame/open/container_info.h"
#include "frame/open/layer_attributes.h"
#include "fs/filesystem.h"

namespace cframefs::fs {
namespace {

constexpr std::string_view kOurs = "user.blosc2.";
constexpr std::string_view kInfo = "user.blosc2.info";

codec::Failure no_attribute() {
  return codec::io_error(ENODATA, "getxattr");
}

std::string to_string(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

codec::Result<std::shared_ptr<const FrameSnapshot>> Filesystem::snapshot_for_attributes(Node& node) {
  if (const auto writer = write_back_of(node)) return writer->snapshot();
  auto file = node_files_.open_file(node, O_RDONLY);
  if (!file) return codec::Failure(file.error());
  return snapshot_of(node, *file);
}

codec::Result<std::vector<std::string>> Filesystem::list_attributes(NodeId id) {
  const std::shared_ptr<Node> node = mount_.nodes.find(id);
  if (!node || node->role != NodeRole::stored || node_files_.is_made_up_root(*node)) return std::vector<std::string>{};
  if (node->kind == EntryKind::symlink || node->kind == EntryKind::other) return std::vector<std::string>{};
  auto file = attribute_file(*node);
  if (!file) return codec::Failure(file.error());
  auto names = mount_.files.list_attributes((*file)->fd());
  if (!names) names = std::vector<std::string>{};  // a backing filesystem without attributes
  if (!is_container(node->kind)) return names;
  // Hide attributes of the backing file whose names begin with user.blosc2.
  std::erase_if(*names, [](const std::string& name) { return name.starts_with(kOurs); });
  auto snapshot = snapshot_for_attributes(*node);
  if (!snapshot) return names;  // damaged: only the file's own attributes
  for (std::string& layer : frame::vlmetalayer_attributes((*snapshot)->container()))
    names->push_back(std::move(layer));
  return names;
}

codec::Result<std::string> Filesystem::get_attribute(NodeId id, const std::string& name) {
  const std::shared_ptr<Node> node = mount_.nodes.find(id);
  if (!node || node->role != NodeRole::stored || node_files_.is_made_up_root(*node)) return no_attribute();
  if (node->kind == EntryKind::symlink || node->kind == EntryKind::other) return no_attribute();
  if (!is_container(node->kind) || !name.starts_with(kOurs)) {
    auto file = file_with_attribute(*node, name);
    if (!file) return codec::Failure(file.error());
    return mount_.files.get_attribute((*file)->fd(), name);
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

}  // namespace cframefs::fs
