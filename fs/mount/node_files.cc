#include "fs/mount/node_files.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <malloc.h>

#include "frame/io/system_version.h"
#include "fs/util/no_memory.h"
#include "fs/write/write_back.h"

namespace cframefs::fs {
namespace {

// Looks at a name before it counts as that of another file.
constexpr int kNameLooks = 3;

}  // namespace

std::string NodeFiles::path_of(NodeId node) const {
  if (mount_.root_is_file) return mount_.tree.single_name();
  return mount_.nodes.path_of(node).value_or(std::string());
}

std::string NodeFiles::path_in(NodeId directory, const std::string& name) const {
  const std::string path = mount_.nodes.path_of(directory).value_or(std::string());
  return path.empty() ? name : path + "/" + name;
}

bool NodeFiles::is_made_up_root(const Node& node) const {
  return node.id == kRootNode && mount_.tree.is_single_file() && !mount_.root_is_file;
}

codec::Result<NodeFiles::HeldName> NodeFiles::held_name_of(const Node& node) {
  if (node.id == kRootNode) return HeldName{mount_.tree.root(), mount_.root_is_file ? mount_.tree.single_name() : "."};
  if (node.kind == EntryKind::directory) {
    auto directory = mount_.directories.open(node.id);
    if (!directory) return codec::Failure(directory.error());
    return HeldName{std::move(*directory), "."};
  }
  auto place = mount_.nodes.place_of(node.id);
  if (!place) return codec::Failure(place.error());
  auto directory = mount_.directories.open(place->parent);
  if (!directory) return codec::Failure(directory.error());
  return HeldName{std::move(*directory), std::move(place->name)};
}

codec::Result<NodeFiles::SharedFile> NodeFiles::open_with_room(const std::function<codec::Result<SharedFile>()>& open) {
  auto file = open();
  const bool is_short = file ? mount_.reserve.is_kept_back(mount_.files, (*file)->handle())
                             : file.error().sys == EMFILE || file.error().sys == ENFILE;
  if (!is_short) return file;
  if (file) file->reset();  // its descriptor is from the reserve
  mount_.directories.release_unused();
  return open();
}

NodeFiles::SharedFile NodeFiles::held_file(Node& node) {
  if (const auto frame = open_frame_of(node)) {
    auto file = frame->file();
    const auto status = mount_.files.status(file->handle());
    if (status && node.is_at(*status)) return file;
  }
  codec::MutexLock lock(node.mutex);
  for (const auto& opened : node.open_plain.descriptors) {
    if (auto file = opened.lock()) return file;
  }
  return nullptr;
}

codec::Result<NodeFiles::SharedFile> NodeFiles::open_file(Node& node, int flags) {
  auto file = open_by_name(node, flags);
  // Only /proc/self/fd leads to a node without a place. A node with one may have been replaced behind the mount: its
  // name must lead to the new file.
  const bool has_place = file || node.id == kRootNode || mount_.nodes.place_of(node.id);
  const SharedFile held = has_place ? nullptr : held_file(node);
  if (!held) return file;
  auto again = mount_.files.reopen(held->handle(), flags & ~O_CREAT);
  if (!again) return codec::Failure(again.error());
  return frame::share_descriptor(mount_.files, *again);
}

codec::Result<NodeFiles::SharedFile> NodeFiles::open_by_name(const Node& node, int flags) {
  codec::SharedLock names(mount_.names);
  const auto at = held_name_of(node);
  if (!at) return codec::Failure(at.error());
  // A server keeps no access times. Without the flag it is asked whether an object that an index told still holds.
  if (mount_.files.is_remote()) flags &= ~O_NOATIME;
  auto file = mount_.tree.open_entry(at->handle(), at->name, flags | O_NOFOLLOW);
  // stale makes the kernel look the path up again.
  if (!file && leads_elsewhere(file.error())) return codec::stale("its name leads to another entry");
  if (!file) return file;
  // The kernel cannot look the root up again, so the file that the source is now is opened without comparison.
  if (node.id == kRootNode) return file;
  const auto status = mount_.files.status((*file)->handle());
  if (!status) return codec::Failure(status.error());
  if (!node.is_at(*status)) return codec::stale("another file has replaced it");
  return file;
}

bool NodeFiles::is_of_its_kind(Node& node) {
  const auto place = mount_.nodes.place_of(node.id);
  if (!place || !mount_.tree.kind_depends_on_content(place->name) || write_back_of(node)) return true;
  EntryStat known;
  {
    codec::MutexLock lock(node.mutex);
    known = node.known;
  }
  codec::SharedLock names(mount_.names);
  const auto at = held_name_of(node);
  if (!at) return true;
  const auto status = mount_.files.status_at(at->handle(), at->name);
  if (status && known.kind == node.kind && known.identity.still_matches(frame::version_of(*status))) return true;
  const auto now = mount_.tree.probe_entry(at->handle(), at->name);
  return !now || now->kind == node.kind;
}

bool NodeFiles::has_lost_name(Node& node) {
  if (node.id == kRootNode) return false;
  // A commit may replace the file between two looks.
  for (int look = 1; look <= kNameLooks; ++look) {
    const std::shared_ptr<WriteBack> writer = write_back_of(node);
    if (!writer) return false;
    const bool is_committing = writer->status().is_committing;
    codec::SharedLock names(mount_.names);
    const auto at = held_name_of(node);
    if (!at) return false;
    const auto status = mount_.files.status_at(at->handle(), at->name);
    if (!status) return status.error().sys == ENOENT;
    if (node.is_at(*status) || is_committing || writer->status().is_committing) return false;
  }
  return true;
}

void NodeFiles::watch(Node& directory) {
  if (directory.watched.load(std::memory_order_acquire)) return;
  if (mount_.root_is_file && directory.id == kRootNode) return;
  const auto opened = mount_.directories.open(directory.id);
  // A group of a store changes with the store, which the watch of the store's directory reports. For inotify both are
  // one inode: a watch of the group would replace that of the store.
  if (!opened) return;
  const auto descriptor = mount_.files.system_descriptor((*opened)->handle());
  const bool is_on_disk = descriptor && descriptor->is_of_file;
  if (is_on_disk && !mount_.watcher.watch(descriptor->number, directory.id)) return;
  directory.sees_all.store(is_on_disk && mount_.watcher.names().follows(directory.id), std::memory_order_release);
  directory.watched.store(true, std::memory_order_release);
}

void NodeFiles::forget(NodeId node, std::uint64_t lookups) {
  const NodeTable::Forgotten forgotten = mount_.nodes.forget(node, lookups);
  if (!forgotten.is_gone) return;
  mount_.watcher.forget(node);
  mount_.directories.forget(node);
  // The C library keeps free memory between blocks that are in use.
  if (forgotten.most_are_gone) try_in_memory([this] { mount_.workers.post([] { malloc_trim(0); }); });
}

}  // namespace cframefs::fs
