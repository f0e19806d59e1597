#include "fs/attributes/file_attributes.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include <sys/stat.h>

namespace cframefs::fs {
namespace {

constexpr std::uint64_t kMinBlockSize = 4096;
constexpr std::uint64_t kMaxBlockSize = std::uint64_t{16} << 20;
// Attempts of a stat while the mount itself changes the file.
constexpr int kProbeAttempts = 5;

struct timespec later_of(const struct timespec& a, const struct timespec& b) {
  return std::pair(a.tv_sec, a.tv_nsec) < std::pair(b.tv_sec, b.tv_nsec) ? b : a;
}

/// Puts the size and the times of data that wait for a commit over those on disk.
void show_uncommitted(WriteBack& writer, EntryStat& entry) {
  entry.size = writer.status().size;
  const auto written = writer.dirty_since_write();
  if (!written) return;
  entry.status.st_mtim = *written;
  entry.status.st_ctim = later_of(entry.status.st_ctim, *written);
}

}  // namespace

codec::Result<Attributes> FileAttributes::of(NodeId id, FileHandle* handle) {
  auto described = describe_node(id, handle);
  if (described && described->damage) return codec::Failure(*described->damage);
  return described;
}

codec::Result<Attributes> FileAttributes::change(NodeId id, FileHandle* handle, const AttributeChanges& changes,
                                                 const Caller& caller, ChangePermit& permit) {
  if (auto writable = mount_.check_writable("setattr"); !writable) return codec::Failure(writable.error());
  const std::shared_ptr<Node> node = mount_.nodes.find(id);
  if (!node) return no_such_node();
  if (node->role != NodeRole::stored || node_files_.is_made_up_root(*node)) {
    return codec::io_error(EPERM, "setattr", "the file is made up by the mount");
  }
  if (mount_.options.shown.are_set()) {
    if (auto guarded = guard_set_ids(*node, changes, permit); !guarded) return codec::Failure(guarded.error());
  }
  if (changes.size) {
    if (auto done = files_.truncate(*node, handle, *changes.size, permit); !done) return codec::Failure(done.error());
  }
  if (changes.mode || changes.user || changes.group || changes.times) {
    if (auto done = rights_.change_rights(*node, changes, caller, permit); !done) return codec::Failure(done.error());
  }
  return describe_node(id, handle);
}

codec::Result<Attributes> FileAttributes::describe_node(NodeId id, FileHandle* handle) {
  const std::shared_ptr<Node> node = mount_.nodes.find(id);
  if (!node) return no_such_node();
  if (node->role != NodeRole::stored) {
    Attributes attributes;
    attributes.node = id;
    {
      codec::MutexLock lock(node->mutex);
      attributes.status = node->known.status;
    }
    return attributes;
  }
  auto found = of_entered(*node);
  if (found) return found;
  // Removed or replaced on disk, but still open: use a descriptor. (For fstat(2) the kernel does not pass the handle.)
  const std::shared_ptr<OpenFrame> open_frame = open_frame_of(*node);
  std::shared_ptr<const frame::Descriptor> file = handle != nullptr ? handle->file : nullptr;
  if (open_frame) file = open_frame->file();
  if (!file) {
    codec::MutexLock lock(node->mutex);
    for (const auto& opened : node->open_plain.descriptors) {
      if ((file = opened.lock())) break;
    }
  }
  if (!file) return codec::Failure(found.error());
  auto status = mount_.files.status(file->handle());
  if (!status) return codec::Failure(status.error());
  EntryStat open;
  {
    codec::MutexLock lock(node->mutex);
    open = node->known;
    if (const auto current = node->current.lock()) open.size = current->view().size();
  }
  if (node->kind != EntryKind::sparse_frame) open.status = *status;
  open.kind = node->kind;
  if (!is_container(node->kind)) open.size = static_cast<std::uint64_t>(status->st_size);
  if (const auto writer = open_frame ? open_frame->write_back() : nullptr) show_uncommitted(*writer, open);
  return describe(*node, open);
}

codec::Result<Attributes> FileAttributes::of_entered(Node& node) {
  const auto answer = begin_answer(node);
  auto probe = probe_node(node);
  if (!probe) return codec::Failure(probe.error());
  Attributes attributes = describe(node, *probe);
  if (answer) attributes.attr_timeout = seconds_to_keep(node, *probe, *answer);
  return attributes;
}

Attributes FileAttributes::of_new(Node& node, const EntryStat& created) {
  {
    codec::MutexLock lock(node.mutex);
    node.known = created;
  }
  ToldSize& told = node.pages.end_of_file();
  told.tell(created.size, told.begin_look());
  return describe(node, created);
}

codec::Result<EntryStat> FileAttributes::probe_node(Node& node) {
  EntryStat known;
  {
    codec::MutexLock lock(node.mutex);
    known = node.known;
  }
  std::shared_ptr<WriteBack> writer = write_back_of(node);
  // A commit of this mount may change the file during the stat: then repeat it.
  for (int attempt = 1;; ++attempt) {
    // Watch before the stat, so that no change is missed in between.
    if (node.kind == EntryKind::directory || node.kind == EntryKind::sparse_frame) node_files_.watch(node);
    codec::Result<EntryStat> probe;
    PageCacheState::Look look;
    {
      codec::SharedLock names(mount_.names);
      const auto at = node_files_.held_name_of(node);
      if (!at) return codec::Failure(at.error());
      look = node.pages.begin_look();
      probe = mount_.tree.revalidate(at->handle(), at->name, known);
    }
    if (!probe) return leads_elsewhere(probe.error()) ? codec::stale("its name leads to another entry") : probe;
    const bool again = writer && attempt < kProbeAttempts && !writer->owns(probe->identity);
    if (again) {
      // Only programs that have the file open see a stale writer's data. A closed writer is stale, too; another may
      // have replaced it.
      static_cast<void>(writer->refresh());
      if (writer->status().is_stale) {
        const std::shared_ptr<WriteBack> now = write_back_of(node);
        writer = now != writer ? now : nullptr;
      }
      continue;
    }
    const bool is_root = node.id == kRootNode;
    const bool same_file =
        probe->status.st_dev == node.device && probe->entry_inode == node.inode && probe->kind == node.kind;
    if (!is_root && !same_file && !(writer && writer->status().is_committing)) {
      return codec::stale("another file has replaced it");
    }
    if (probe->kind == EntryKind::symlink) probe->size = links_.shown_link_size(node, probe->size);
    return apply_stat(node, known, std::move(*probe), writer, look);
  }
}

codec::Result<EntryStat> FileAttributes::apply_stat(Node& node, const EntryStat& known, EntryStat probe,
                                                    const std::shared_ptr<WriteBack>& writer,
                                                    const PageCacheState::Look& look) {
  std::shared_ptr<const FrameSnapshot> current;
  {
    codec::MutexLock lock(node.mutex);
    node.known = probe;
    current = node.current.lock();
  }
  const bool changed = known.kind != EntryKind::none && known.identity != probe.identity;
  const bool unsettled = writer && writer->status().is_committing;
  // Containers only: creating and removing entries changes a directory, too.
  if (changed && is_container(node.kind) && !unsettled && !node.pages.is_own(probe.identity))
    mount_.statistics.backing_changes.fetch_add(1, std::memory_order_relaxed);
  if (writer) {
    // The write-back notifies the kernel of changes behind the mount.
    show_uncommitted(*writer, probe);
    probe.damage.reset();
    node.pages.end_of_file().tell(probe.size, look.size_look);
    return probe;
  }
  if (probe.damage) {
    codec::Error error = *probe.damage;
    error.path = node_files_.path_of(node.id);
    if (error.kind != codec::ErrorKind::io && !error.file_offset) error.file_offset = mount_.tree.frame_begin().value;
    // A frame looks damaged between two writes of a program that appends: log only a state that has lasted.
    if (!probe.identity.racy) mount_.once.error(error);
    // Keep the old size for programs that have the file open: they must get errors, not an early end of file.
    probe.size = current ? current->view().size() : static_cast<std::uint64_t>(probe.status.st_size);
  }
  pages_.carry_out(node.pages.seen_by_stat(look, probe.identity, probe.size), node.id);
  if (node.pages.drops().are_pending()) {
    // Another request may have seen the change without having posted the drop yet.
    pages_.carry_out(PageCacheState::Drop::pages, node.id);
    pages_.wait_for_drop(node);
  }
  return probe;
}

Attributes FileAttributes::describe(const Node& node, const EntryStat& probe) {
  Attributes attributes;
  attributes.node = node.id;
  attributes.status = probe.status;
  attributes.damage = probe.damage;
  attributes.may_have_changed = probe.identity.racy;
  attributes.names_on_disk = probe.status.st_nlink;
  const std::shared_ptr<Node> parent = mount_.nodes.find(mount_.nodes.parent_of(node.id));
  const bool name_watched = parent && parent->watched.load(std::memory_order_acquire);
  const bool is_directory = probe.kind == EntryKind::directory;
  const bool is_watched_directory = is_directory && node.watched.load(std::memory_order_acquire);
  attributes.attr_timeout =
      is_watched_directory ? mount_.options.kernel_cache.attr_timeout.value_or(kDirectoryTimeout) : 0;
  if (name_watched && (is_directory || notices_.keeps_names())) {
    const bool sees_all = parent->sees_all.load(std::memory_order_acquire);
    const double otherwise = is_directory ? kDirectoryTimeout : sees_all ? kFileTimeout : 0;
    attributes.entry_timeout = mount_.options.kernel_cache.entry_timeout.value_or(otherwise);
  }
  attributes.status.st_ino = shown_inode(node);
  if (node_files_.is_made_up_root(node)) {
    show_made_up_root(attributes.status);
  } else if (is_container(probe.kind)) {
    attributes.status.st_mode = S_IFREG | (probe.status.st_mode & 07777U);
    attributes.status.st_nlink = std::min<nlink_t>(probe.status.st_nlink, 1);
    attributes.status.st_size = static_cast<off_t>(probe.size);
    // A power of two, as the kernel requires, and at most 16 MiB, because programs allocate buffers of this size.
    const auto chunksize = static_cast<std::uint64_t>(std::max(probe.chunksize, 0));
    attributes.status.st_blksize =
        static_cast<blksize_t>(std::bit_floor(std::clamp(chunksize, kMinBlockSize, kMaxBlockSize)));
  } else if (probe.kind == EntryKind::symlink) {
    attributes.status.st_size = static_cast<off_t>(probe.size);
  }
  apply_shown_rights(attributes.status);
  return attributes;
}

void FileAttributes::apply_shown_rights(struct stat& status) const {
  const ShownRights& shown = mount_.options.shown;
  if (!shown.are_set()) return;
  status.st_uid = shown.user.value_or(status.st_uid);
  status.st_gid = shown.group.value_or(status.st_gid);
  const bool is_directory = S_ISDIR(status.st_mode);
  if (shown.umask && !S_ISLNK(status.st_mode)) {
    const bool executes = is_directory || (status.st_mode & 0111U) != 0;
    status.st_mode = (status.st_mode & ~0777U) | ((executes ? 0777U : 0666U) & ~*shown.umask);
  }
  // A program would run with the rights of a user to whom the file does not belong.
  if (!is_directory) status.st_mode &= ~kSetIds;
}

codec::Result<void> FileAttributes::guard_set_ids(Node& node, const AttributeChanges& changes, ChangePermit& permit) {
  if (node.kind == EntryKind::directory) return {};
  if (changes.mode && (*changes.mode & kSetIds) != 0) {
    return codec::io_error(EPERM, "chmod", "a mount with uid=, gid= or umask= sets no set-user-ID or set-group-ID bit");
  }
  if (!changes.size) return {};
  const auto probe = probe_node(node);
  if (!probe) return codec::Failure(probe.error());
  if ((probe->status.st_mode & kSetIds) == 0) return {};
  AttributeChanges cleared;
  cleared.mode = probe->status.st_mode & 07777U & ~kSetIds;
  return rights_.change_rights(node, cleared, {}, permit);
}

std::uint64_t FileAttributes::shown_inode(const Node& node) {
  return is_container(node.kind) ? node.shown_inode | InodeNumbers::kView : node.shown_inode;
}

void FileAttributes::show_made_up_root(struct stat& status) {
  const auto file = mount_.files.status_at(mount_.tree.root()->handle(), mount_.tree.single_name());
  const mode_t rights = file ? file->st_mode & 0444U : 0;
  status.st_mode = S_IFDIR | rights | rights >> 2U;
  status.st_nlink = 2;
  if (!file) return;
  status.st_uid = file->st_uid;
  status.st_gid = file->st_gid;
  status.st_atim = file->st_atim;
  status.st_mtim = file->st_mtim;
  status.st_ctim = file->st_ctim;
}

std::optional<FileAttributes::KeptAnswer> FileAttributes::begin_answer(Node& node) const {
  // Not for a symbolic link, whose shown target depends on other files, nor for a file that is being written, which
  // changes with each commit.
  if (!is_container(node.kind) && node.kind != EntryKind::plain) return std::nullopt;
  const std::shared_ptr<Node> directory = mount_.nodes.find(mount_.nodes.parent_of(node.id));
  if (!directory || !directory->watched.load(std::memory_order_acquire) || write_back_of(node)) return std::nullopt;
  {
    // The kernel may write the file itself, by a map, which neither it nor the system reports.
    codec::MutexLock lock(node.mutex);
    if (!node.open_plain.backing.expired()) return std::nullopt;
  }
  // The files of a sparse frame lie in a directory of their own, of the same filesystem.
  if (node.kind == EntryKind::sparse_frame) node_files_.watch(node);
  if (node.kind == EntryKind::sparse_frame && !node.watched.load(std::memory_order_acquire)) return std::nullopt;
  const double otherwise = directory->sees_all.load(std::memory_order_acquire) ? kFileTimeout : 0;
  const double seconds = mount_.options.kernel_cache.attr_timeout.value_or(otherwise);
  if (seconds <= 0) return std::nullopt;
  return KeptAnswer{seconds, node.kept.begin_answer()};
}

double FileAttributes::seconds_to_keep(Node& node, const EntryStat& probe, const KeptAnswer& answer) {
  // A file may change unnoticed by a second name; a damaged one shows no size.
  const bool has_one_name = probe.status.st_nlink == 1 || node.kind == EntryKind::sparse_frame;
  const bool may_keep = has_one_name && !probe.damage && !write_back_of(node);
  return may_keep && node.kept.answered(answer.look, probe.identity) ? answer.seconds : 0;
}

}  // namespace cframefs::fs
