#include "fs/frames/layer_changes.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <sys/xattr.h>

#include "frame/open/layer_attributes.h"
#include "frame/store/store_files.h"
#include "frame/write/frame_metalayers.h"
#include "fs/write/mount_changes.h"

namespace cframefs::fs {
namespace {

/// Sets or removes one part of a long variable-length metalayer.
codec::Result<void> change_part(frame::FrameWriter& writer, const frame::LayerPart& part, const std::string* value,
                                int flags) {
  const auto container = writer.container();
  const std::vector<std::string> names = container->vlmetalayer_names();
  const bool has_layer = std::find(names.begin(), names.end(), part.layer) != names.end();
  const auto length = has_layer ? container->vlmetalayer_length(part.layer) : codec::Result<std::uint64_t>(0);
  if (!length) return codec::Failure(length.error());
  const auto without = frame::length_without(*length, part);
  if (without && (flags & XATTR_CREATE) != 0) return codec::io_error(EEXIST, "setxattr");
  if (!without && (flags & XATTR_REPLACE) != 0) return codec::io_error(ENODATA, "setxattr");
  // Succeed if the part is gone: removing an earlier part has removed it, too.
  if (value == nullptr && !without) return {};
  if (value == nullptr && *without == 0) return frame::FrameMetalayers(writer).remove_variable(part.layer);
  if (*length > frame::kMaxLayerParts * frame::kLayerPart) return codec::io_error(E2BIG, "setxattr");
  auto content = has_layer ? container->vlmetalayer(part.layer) : std::vector<std::uint8_t>();
  if (!content) return codec::Failure(content.error());
  if (value == nullptr) {
    content->resize(*without);
  } else {
    const std::vector<std::uint8_t> bytes(value->begin(), value->end());
    content = frame::with_layer_part(std::move(*content), part, bytes);
    if (!content) return codec::Failure(content.error());
  }
  return frame::FrameMetalayers(writer).set_variable(part.layer, *content);
}

}  // namespace

codec::Result<void> change_layer(FrameWriters& writers, Node& node, const std::string& name, const std::string* value,
                                 int flags, ChangePermit& permit) {
  if (const auto part = frame::layer_part_of(name)) {
    const auto change = [&](frame::FrameWriter& writer) { return change_part(writer, *part, value, flags); };
    return writers.with_temporary_writer(
        node, [&](WriteBack& file) { return MountChanges(file).commit_metadata(change, permit); });
  }
  const bool variable = name.starts_with(frame::kVlmetaAttribute);
  if (!variable && (!name.starts_with(frame::kMetaAttribute) || value == nullptr))
    return codec::io_error(EPERM, "setxattr", "only metalayers can be set, and only variable-length ones removed");
  const std::string layer = name.substr(variable ? frame::kVlmetaAttribute.size() : frame::kMetaAttribute.size());
  const auto change = [&](frame::FrameWriter& writer) -> codec::Result<void> {
    const auto container = writer.container();
    bool exists = false;
    std::size_t length = 0;
    if (variable) {
      for (const std::string& known : container->vlmetalayer_names())
        exists = exists || known == layer;
    } else {
      for (const frame::MetalayerPlace& known : container->metalayer_places()) {
        if (known.name != layer) continue;
        exists = true;
        length = known.length;
      }
    }
    if (exists && (flags & XATTR_CREATE) != 0) return codec::io_error(EEXIST, "setxattr");
    if (!exists && (value == nullptr || !variable || (flags & XATTR_REPLACE) != 0)) {
      return codec::io_error(ENODATA, "setxattr");
    }
    if (!variable && (layer == "b2nd" || layer == "caterva")) {
      return codec::invalid("metalayer '" + layer + "' cannot be set: writes to the array change its shape");
    }
    if (value == nullptr) return frame::FrameMetalayers(writer).remove_variable(layer);
    const std::vector<std::uint8_t> content(value->begin(), value->end());
    if (variable) return frame::FrameMetalayers(writer).set_variable(layer, content);
    // Another length would move everything behind the metalayer.
    if (content.size() != length) {
      return codec::invalid(fmt::format("fixed metalayer '{}' has {} bytes, not {}, and its length cannot change",
                                        layer, length, content.size()));
    }
    return frame::FrameMetalayers(writer).set_fixed(layer, content);
  };
  return writers.with_temporary_writer(
      node, [&](WriteBack& file) { return MountChanges(file).commit_metadata(change, permit); });
}

}  // namespace cframefs::fs
