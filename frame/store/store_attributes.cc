// StoreFiles: the extended attributes of stores. A store has the attributes of its file or directory on disk, a group
// those of its metadata, and a member the access control list of the file that holds its bytes.
#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>

#include "frame/cframe/cframe.h"
#include "frame/io/posix_acl.h"
#include "frame/open/layer_attributes.h"
#include "frame/open/open.h"
#include "frame/store/store_files.h"

namespace cframefs::frame {
namespace {

using codec::Failure;
using codec::io_error;

constexpr std::string_view kSecurity = "security.";
const char* const kMetadataFile = "__vlmeta__.b2f";

/// Returns true if each user that may read the directory may also read the file. The owner of the directory may have
/// put another user's file there, for example as a hard link.
bool is_as_readable(const struct stat& file, const struct stat& directory) {
  constexpr mode_t kReading = 0444;
  if ((file.st_mode & kReading) == kReading) return true;
  const bool same_classes = file.st_uid == directory.st_uid && file.st_gid == directory.st_gid;
  return same_classes && (directory.st_mode & kReading & ~file.st_mode) == 0;
}

}  // namespace

bool StoreFiles::is_itself(OpenFile file, const Opened& opened) const {
  if (opened.leaf || opened.is_member) return false;
  return opened.place.known->on_directory ? is_directory_on_disk(file, opened) : opened.place.inside.empty();
}

std::optional<SystemDescriptor> StoreFiles::system_descriptor(OpenFile file) const {
  auto descriptor = base_.system_descriptor(file);
  const auto known = opened(file);
  if (descriptor && known && !known->is_member && !is_itself(file, *known)) descriptor->is_of_file = false;
  return descriptor;
}

bool StoreFiles::is_directory_on_disk(OpenFile file, const Opened& opened) const {
  if (!opened.place.known->on_directory || opened.leaf) return false;
  const auto status = base_.status(file);
  return status && S_ISDIR(status->st_mode);
}

Result<std::shared_ptr<const Container>> StoreFiles::metadata_of(OpenFile directory, const Opened& opened) const {
  const Known& known = *opened.place.known;
  if (known.on_directory && is_itself(directory, opened)) {
    const auto metadata = base_.open_at(directory, kMetadataFile, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    if (!metadata && metadata.error().sys != ENOENT) return Failure(metadata.error());
    if (metadata) {
      auto file = share_descriptor(base_, *metadata);
      const auto status = base_.status(file->handle());
      const auto of_directory = base_.status(directory);
      if (!status || !of_directory) return Failure(status ? of_directory.error() : status.error());
      if (!is_as_readable(*status, *of_directory)) return io_error(EACCES, "getxattr");
      return open_container(base_, std::move(file), nullptr, FileOffset{0});
    }
  }
  const Content content = content_of(known);
  const Store::Leaf* leaf = content.store ? content.store->metadata_of(opened.place.inside) : nullptr;
  if (leaf == nullptr) return std::shared_ptr<const Container>();
  auto source = content.store->open(*leaf);
  if (!source) return Failure(source.error());
  return open_cframe(std::move(*source), std::make_shared<IndexCache>());
}

Result<std::vector<std::string>> StoreFiles::list_attributes(OpenFile file) {
  const auto known = opened(file);
  if (!known || known->is_member) return base_.list_attributes(file);
  std::vector<std::string> names;
  // An error means that the filesystem has no attributes.
  if (auto own = base_.list_attributes(file)) names = std::move(*own);
  if (!is_itself(file, *known)) std::erase_if(names, [](const std::string& own) { return own != kAccessAcl; });
  if (known->leaf) return names;
  const auto metadata = metadata_of(file, *known);
  if (!metadata || !*metadata) return names;  // getxattr() reports damaged metadata
  for (std::string& layer : vlmetalayer_attributes(**metadata))
    names.push_back(std::move(layer));
  return names;
}

Result<std::string> StoreFiles::get_attribute(OpenFile file, const std::string& name) {
  const auto known = opened(file);
  if (!known || known->is_member) return base_.get_attribute(file, name);
  if (!known->leaf && is_vlmetalayer_attribute(name)) {
    const auto metadata = metadata_of(file, *known);
    if (!metadata) return Failure(metadata.error());
    if (!*metadata) return io_error(ENODATA, "getxattr");
    return vlmetalayer_attribute(**metadata, name);
  }
  if (name == kAccessAcl && !is_directory_on_disk(file, *known)) return shown_acl(*known);
  // Nothing in a store can have security attributes. EOPNOTSUPP stops ls(1) from asking for the label of each entry.
  if (!is_itself(file, *known)) return io_error(name.starts_with(kSecurity) ? EOPNOTSUPP : ENODATA, "getxattr");
  return base_.get_attribute(file, name);
}

/// Returns the access control list of the file that holds the bytes, with the permissions that status_inside() shows.
Result<std::string> StoreFiles::shown_acl(const Opened& opened) const {
  auto acl = base_.get_attribute(opened.place.known->file->handle(), std::string(kAccessAcl));
  if (!acl) return acl;
  return with_permissions(*acl,
                          opened.leaf ? [](unsigned permissions) { return permissions & 04U; } : enter_if_readable);
}

}  // namespace cframefs::frame
