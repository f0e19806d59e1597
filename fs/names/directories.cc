#include "fs/names/directories.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>

#include "fs/attributes/file_attributes.h"

namespace cframefs::fs {

codec::Result<std::unique_ptr<DirectoryHandle>> Directories::open(NodeId id) {
  auto handle = std::make_unique<DirectoryHandle>();
  handle->node = mount_.nodes.find(id);
  if (!handle->node) return no_such_node();
  if (handle->node->role == NodeRole::control_directory) {
    return handle;
  }
  auto directory = node_files_.open_with_room([&] { return mount_.directories.open(id); });
  if (!directory) return codec::Failure(directory.error());
  if (mount_.reserve.is_kept_back_from_listings(mount_.files, (*directory)->handle()))
    return codec::io_error(EMFILE, "opendir");
  handle->directory = std::move(*directory);
  node_files_.watch(*handle->node);
  return handle;
}

codec::Result<void> Directories::list(DirectoryHandle& handle) const {
  if (handle.directory) {
    auto entries = mount_.tree.list(handle.directory->handle());
    if (!entries) return codec::Failure(entries.error());
    handle.entries = std::move(*entries);
  } else {
    handle.entries.clear();
    for (const char* name : kControlNames)
      handle.entries.push_back({name, {name, EntryKind::plain}});
  }
  handle.is_listed = true;
  return {};
}

bool Directories::is_large(const DirectoryHandle& handle) {
  constexpr std::size_t kManyEntries = 1000;
  constexpr off_t kManyBytes = off_t{20} * kManyEntries;  // tmpfs counts 20 bytes an entry; others count more
  if (handle.is_listed || !handle.directory) return handle.entries.size() >= kManyEntries;
  const auto status = mount_.files.status(handle.directory->handle());
  return status && status->st_size >= kManyBytes;
}

std::uint64_t Directories::shown_inode(const DirectoryHandle& handle, const StoredEntry& entry) {
  // Prefer the node's number: a commit may have changed the inode of the backing file.
  if (mount_.nodes.has_other_numbers()) {
    for (const auto& node : mount_.nodes.at_place(handle.node->id, entry.name)) {
      if (node->kind == entry.kind) return FileAttributes::shown_inode(*node);
    }
  }
  const std::uint64_t inode = mount_.nodes.number_for(handle.node->device, entry.inode);
  return is_container(entry.kind) ? inode | InodeNumbers::kView : inode;
}

void Directories::names_arrived(DirectoryHandle& handle) {
  const std::uint64_t told_at = handle.names_told_at.exchange(0);
  if (told_at != 0 && told_at != notices_.names_forgotten() + 1) notices_.forget_names();
}

std::uint64_t Directories::own_inode(const DirectoryHandle& handle) {
  return FileAttributes::shown_inode(*handle.node);
}

std::uint64_t Directories::parent_inode(const DirectoryHandle& handle) const {
  const std::shared_ptr<Node> parent = mount_.nodes.find(mount_.nodes.parent_of(handle.node->id));
  return FileAttributes::shown_inode(parent ? *parent : *handle.node);
}

codec::Result<void> Directories::sync(NodeId id) {
  auto directory = mount_.directories.open(id);
  if (!directory) return codec::Failure(directory.error());
  auto readable = mount_.files.reopen((*directory)->handle(), O_RDONLY | O_DIRECTORY);
  if (!readable) return codec::Failure(readable.error());
  const frame::Descriptor opened(mount_.files, *readable);
  return mount_.files.sync(opened.handle(), false);
}

}  // namespace cframefs::fs
