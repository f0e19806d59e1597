// Creating, renaming and removing entries of directories.
//
// A name of the mount maps to a name on disk (fs/tree/name_mapping.h): a new or renamed entry gets the name on disk
// that shows as the requested name. Lock side-cars are renamed and removed with their frames. changes_ serialises all
// changes; look-ups wait only while an entry leaves its name (names_), and see the directory before or after. Errors:
// io with the system's errno; EXDEV if a rename would turn a plain file into a frame or back (programs then copy).
#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frame/io/advisory_lock.h"
#include "frame/io/free_name.h"
#include "frame/io/replacement_file.h"
#include "fs/filesystem.h"

namespace cframefs::fs {
namespace {

constexpr mode_t kPermissions = 07777;

codec::Failure refused(int why, const char* doing, const std::string& path = {}) {
  codec::Failure failure = codec::io_error(why, doing);
  failure.value().path = path;
  return failure;
}

// Number of consecutive commits for which a change of a frame's name waits without holding changes_. For later ones it
// waits with the lock, which delays other changes of names.
constexpr int kCommitsWaitedFor = 8;
constexpr const char* kDefaultAcl = "system.posix_acl_default";

bool is_no_entry(const codec::Error& error) {
  return error.sys == ENOENT;
}

}  // namespace

codec::Result<HeldDirectory> Filesystem::directory_to_change(NodeId parent) {
  if (mount_.read_only) return refused(EROFS, "change");
  const std::shared_ptr<Node> directory = mount_.nodes.find(parent);
  if (!directory) return no_such_node();
  if (directory->role != NodeRole::stored || mount_.tree.is_single_file()) return refused(EPERM, "change");
  return mount_.directories.open(parent);
}

codec::Result<HeldDirectory> Filesystem::directory_for_new(NodeId parent, const std::string& name) {
  auto directory = directory_to_change(parent);
  if (!directory) return directory;
  // A lock file of a frame would never show, so it cannot be created.
  if (const std::string_view locked = NameMapper::locked_name(name); !locked.empty()) {
    auto kind = mount_.tree.kind_of((*directory)->fd(), NameMapper::on_disk(std::string(locked)));
    if (kind && is_container(*kind)) return refused(EPERM, "create", name);
  }
  auto taken = mount_.tree.resolve((*directory)->fd(), name);
  if (taken) return refused(EEXIST, "create", name);
  if (!is_no_entry(taken.error())) return codec::Failure(taken.error());
  return directory;
}

codec::Result<Filesystem::Entry> Filesystem::find_entry(NodeId parent, const HeldDirectory& directory,
                                                        const std::string& name) const {
  auto stored = mount_.tree.resolve(directory->fd(), name);
  if (!stored) return codec::Failure(stored.error());
  auto kind = mount_.tree.kind_of(directory->fd(), *stored);
  if (!kind) return codec::Failure(kind.error());
  if (*kind == EntryKind::none) return refused(ENOENT, "lookup", *stored);
  return Entry{{parent, std::move(*stored)}, directory, *kind};
}

std::string Filesystem::temporary_name(std::string_view suffix) {
  const std::uint64_t number = next_temporary_.fetch_add(1, std::memory_order_relaxed);
  return frame::kTemporaryPrefix + std::to_string(getpid()) + "." + std::to_string(number) + std::string(suffix);
}

mode_t Filesystem::mode_for_new(const HeldDirectory& directory, mode_t mode, const Caller& caller) {
  if (caller.umask == 0) return mode;
  const bool has_default = mount_.files.get_attribute(directory->fd(), kDefaultAcl).has_value();
  return has_default ? mode : mode & ~caller.umask;
}

codec::Result<Attributes> Filesystem::make_directory(NodeId parent, const std::string& name, mode_t mode,
                                                     const Caller& caller, ChangePermit& permit) {
  codec::MutexLock lock(mount_.changes);
  if (auto begun = permit.begin(); !begun) return codec::Failure(begun.error());
  auto directory = directory_for_new(parent, name);
  if (!directory) return codec::Failure(directory.error());
  mode = mode_for_new(*directory, mode & kPermissions, caller);
  auto done = as_caller(caller, mode, [&] {
    return mount_.files.make_directory_at((*directory)->fd(), NameMapper::on_disk(name), mode);
  });
  if (!done) return codec::Failure(done.error());
  return lookup(parent, name);
}

codec::Result<Attributes> Filesystem::make_symlink(NodeId parent, const std::string& name, const std::string& target,
                                                   const Caller& caller, ChangePermit& permit) {
  codec::MutexLock lock(mount_.changes);
  if (auto begun = permit.begin(); !begun) return codec::Failure(begun.error());
  auto directory = directory_for_new(parent, name);
  if (!directory) return codec::Failure(directory.error());
  const bool inside = mount_.tree.place_in_source((*directory)->fd(), target).has_value();
  const std::string stored = inside ? mount_.tree.rules().stored_target(target) : target;
  const std::string stored_name = NameMapper::on_disk(mount_.tree.link_name((*directory)->fd(), name, stored));
  auto done =
      as_caller(caller, 0, [&] { return mount_.files.make_symlink_at(stored, (*directory)->fd(), stored_name); });
  if (!done) return codec::Failure(done.error());
  return lookup(parent, name);
}

codec::Result<Attributes> Filesystem::make_node(NodeId parent, const std::string& name, mode_t mode, dev_t device,
                                                const Caller& caller, ChangePermit& permit) {
  if (S_ISREG(mode)) {
    auto created = create(parent, name, O_RDONLY | O_CREAT | O_EXCL, mode, caller, permit);
    if (!created) return codec::Failure(created.error());
    return created->attributes;
  }
  codec::MutexLock lock(mount_.changes);
  if (auto begun = permit.begin(); !begun) return codec::Failure(begun.error());
  auto directory = directory_for_new(parent, name);
  if (!directory) return codec::Failure(directory.error());
  mode = mode_for_new(*directory, mode, caller);
  auto done = as_caller(caller, mode, [&] {
    return mount_.files.make_node_at((*directory)->fd(), NameMapper::on_disk(name), mode, device);
  });
  if (!done) return codec::Failure(done.error());
  return lookup(parent, name);
}

codec::Result<Attributes> Filesystem::link(NodeId id, NodeId parent, const std::string& name, ChangePermit& permit) {
  codec::MutexLock lock(mount_.changes);
  if (auto begun = permit.begin(); !begun) return codec::Failure(begun.error());
  const std::shared_ptr<Node> node = mount_.nodes.find(id);
  if (!node) return no_such_node();
  // Some commits replace a frame by a new file: other names would keep leading to the old file.
  if (node->role != NodeRole::stored || is_container(node->kind)) return refused(EPERM, "link");
  auto directory = directory_for_new(parent, name);
  if (!directory) return codec::Failure(directory.error());
  if (!mount_.tree.keeps_kind(node->kind, name)) return refused(EXDEV, "link", name);
  auto file = node_files_.open_file(*node, O_PATH);
  if (!file) return codec::Failure(file.error());
  const int fd = (*file)->fd();
  auto done = pages_.with_self_change(
      *node, [&] { return mount_.files.status(fd); },
      [&] { return mount_.files.link_at(fd, (*directory)->fd(), NameMapper::on_disk(name)); });
  if (!done) return codec::Failure(done.error());
  return lookup(parent, name);
}

codec::Result<void> Filesystem::remove(NodeId parent, const std::string& name, bool directory, ChangePermit& permit) {
  for (int attempt = 1;; ++attempt) {
    if (const auto writer = committing_entry(parent, name)) writer->wait_for_commit();
    codec::MutexLock lock(mount_.changes);
    if (attempt < kCommitsWaitedFor && committing_entry(parent, name)) continue;
    if (auto begun = permit.begin(); !begun) return begun;
    return remove_entry(parent, name, directory);
  }
}

codec::Result<void> Filesystem::remove_entry(NodeId parent, const std::string& name, bool is_directory) {
  auto directory = directory_to_change(parent);
  if (!directory) return codec::Failure(directory.error());
  auto entry = find_entry(parent, *directory, name);
  if (!entry) return codec::Failure(entry.error());
  if (is_directory) return remove_directory(*entry);
  if (entry->kind == EntryKind::directory) return refused(EISDIR, "unlink", name);
  return remove_file(*entry);
}

codec::Result<void> Filesystem::remove_directory(const Entry& entry) {
  if (entry.kind != EntryKind::directory) return refused(ENOTDIR, "rmdir", entry.name());
  codec::ExclusiveLock names(mount_.names);
  auto done = mount_.files.remove_at(entry.fd(), entry.name(), true);
  if (!done && done.error().sys == ENOTEMPTY) done = remove_leftovers(entry);
  if (done) mount_.nodes.remove(entry.place, false);
  return done;
}

/// Removes a directory that contains only hidden temporary files, which a killed process has left.
codec::Result<void> Filesystem::remove_leftovers(const Entry& entry) {
  auto directory = mount_.tree.open_entry(entry.fd(), entry.name(), O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!directory) return codec::Failure(directory.error());
  auto left = mount_.files.list((*directory)->fd());
  if (!left) return codec::Failure(left.error());
  for (const frame::DirectoryEntry& file : *left) {
    if (!NameMapper::is_temporary(file.name)) return refused(ENOTEMPTY, "rmdir", entry.name());
  }
  for (const frame::DirectoryEntry& file : *left) {
    if (mount_.files.remove_at((*directory)->fd(), file.name, false)) continue;
    auto frame = mount_.tree.open_entry((*directory)->fd(), file.name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
    if (frame) remove_hidden(*directory, file.name, **frame);  // of a sparse frame
  }
  return mount_.files.remove_at(entry.fd(), entry.name(), true);
}

codec::Result<void> Filesystem::remove_file(const Entry& entry) {
  auto status = mount_.files.status_at(entry.fd(), entry.name());
  if (!status) return codec::Failure(status.error());
  if (entry.kind == EntryKind::sparse_frame) return remove_sparse_frame(entry);
  // Programs that have it open keep using the file, which has no name then.
  const std::shared_ptr<WriteBack> writer = write_back_at(entry.place);
  const auto pause = writer ? std::make_unique<WriteBack::Pause>(writer) : nullptr;
  {
    codec::ExclusiveLock names(mount_.names);
    if (auto done = mount_.files.remove_at(entry.fd(), entry.name(), false); !done) return done;
    if (pause) pause->unlinked();
    mount_.nodes.remove(entry.place, status->st_nlink > 1);
  }
  if (entry.kind == EntryKind::frame) {
    static_cast<void>(mount_.files.remove_at(entry.fd(), frame::side_car_path(entry.name()), false));
  }
  return {};
}

/// Removes the name at once, and the files once no program has the frame open. Until then programs read and write them
/// under a hidden name.
codec::Result<void> Filesystem::remove_sparse_frame(const Entry& entry) {
  const std::shared_ptr<WriteBack> writer = write_back_at(entry.place);
  const auto pause = writer ? std::make_unique<WriteBack::Pause>(writer) : nullptr;
  auto directory = mount_.tree.open_entry(entry.fd(), entry.name(), O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!directory) return codec::Failure(directory.error());
  std::shared_ptr<const void> guard;  // declared before the lock, so that it is released without it
  codec::ExclusiveLock names(mount_.names);
  // Prefer the root of the source, where the hidden directory prevents no rmdir.
  HeldDirectory parent = mount_.tree.root();
  const std::string hidden = temporary_name(NameMapper::suffix_of(entry.name()));
  if (!mount_.files.rename_at(entry.fd(), entry.name(), parent->fd(), hidden, 0)) {
    parent = entry.directory;
    auto renamed = mount_.files.rename_at(entry.fd(), entry.name(), parent->fd(), hidden, 0);
    if (!renamed) return renamed;
  }
  // If another entry has replaced it, undo the rename: that entry must not lose its files.
  const auto ours = mount_.files.status((*directory)->fd());
  const auto taken = mount_.files.status_at(parent->fd(), hidden);
  if (!ours || !taken || ours->st_ino != taken->st_ino || ours->st_dev != taken->st_dev) {
    static_cast<void>(frame::rename_to_free_name(mount_.files, parent->fd(), hidden, entry.fd(), entry.name()));
    return codec::stale("another entry has replaced it");
  }
  if (pause) pause->moved({parent, hidden, hidden});
  guard = std::shared_ptr<const void>(
      this, [this, parent, hidden, directory = *directory](const void*) { remove_hidden(parent, hidden, *directory); });
  for (const auto& node : mount_.nodes.at_place(entry.place.directory, entry.place.name)) {
    if (const auto frame = open_frame_of(*node)) frame->hold_until_close(guard);
  }
  mount_.nodes.remove(entry.place, false);
  return {};
}

void Filesystem::remove_hidden(const HeldDirectory& parent, const std::string& name,
                               const frame::Descriptor& directory) {
  const auto files = mount_.files.list(directory.fd());
  if (!files) return;
  for (const frame::DirectoryEntry& file : *files)
    static_cast<void>(mount_.files.remove_at(directory.fd(), file.name, false));
  static_cast<void>(mount_.files.remove_at(parent->fd(), name, true));
}

codec::Result<void> Filesystem::rename(NodeId from_parent, const std::string& from_name, NodeId to_parent,
                                       const std::string& to_name, unsigned flags, ChangePermit& permit) {
  if ((flags & ~static_cast<unsigned>(RENAME_NOREPLACE | RENAME_EXCHANGE)) != 0) return refused(EINVAL, "rename");
  for (int attempt = 1;; ++attempt) {
    if (const auto writer = committing_entry(from_parent, from_name)) writer->wait_for_commit();
    if (const auto writer = committing_entry(to_parent, to_name)) writer->wait_for_commit();
    codec::MutexLock lock(mount_.changes);
    const bool is_committing = committing_entry(from_parent, from_name) || committing_entry(to_parent, to_name);
    if (attempt < kCommitsWaitedFor && is_committing) continue;
    if (auto begun = permit.begin(); !begun) return begun;
    return rename_entry(from_parent, from_name, to_parent, to_name, flags);
  }
}

codec::Result<void> Filesystem::rename_entry(NodeId from_parent, const std::string& from_name, NodeId to_parent,
                                             const std::string& to_name, unsigned flags) {
  auto from_directory = directory_to_change(from_parent);
  if (!from_directory) return codec::Failure(from_directory.error());
  auto to_directory = directory_to_change(to_parent);
  if (!to_directory) return codec::Failure(to_directory.error());
  auto from = find_entry(from_parent, *from_directory, from_name);
  if (!from) return codec::Failure(from.error());
  std::optional<Entry> replaced;
  if (auto found = find_entry(to_parent, *to_directory, to_name)) {
    replaced = std::move(*found);
  } else if (!is_no_entry(found.error())) {
    return codec::Failure(found.error());
  }
  if ((flags & RENAME_EXCHANGE) != 0) {
    return replaced ? exchange(*from, *replaced) : refused(ENOENT, "rename", to_name);
  }
  if (replaced && (flags & RENAME_NOREPLACE) != 0) return refused(EEXIST, "rename", to_name);
  if (!replaced) {
    if (auto can = directory_for_new(to_parent, to_name); !can) return codec::Failure(can.error());
  }
  std::string stored = NameMapper::on_disk(to_name);
  if (is_shortened(from->kind)) {
    stored = mount_.tree.rules().renamed_container({from->place.name, from->kind}, to_name);
  } else if (from->kind == EntryKind::symlink) {
    const auto target = mount_.tree.target_of(from->fd(), from->name());
    if (target) stored = NameMapper::on_disk(mount_.tree.link_name((*to_directory)->fd(), to_name, *target));
  }
  if (stored.empty()) return refused(EXDEV, "rename", to_name);
  const Entry to{{to_parent, stored}, *to_directory, from->kind};
  if (replaced && replaced->place == from->place) return {};
  if (!mount_.tree.keeps_kind(from->kind, stored)) return refused(EXDEV, "rename", stored);
  return move_entry(*from, replaced, to);
}

std::vector<Filesystem::VersionedNode> Filesystem::capture_versions(const std::vector<Entry>& entries) {
  std::vector<VersionedNode> found;
  for (const Entry& entry : entries) {
    auto probe = mount_.tree.probe_entry(entry.fd(), entry.name());
    if (!probe) continue;
    for (const auto& node : mount_.nodes.at_place(entry.place.directory, entry.place.name)) {
      if (!write_back_of(*node)) found.push_back({node, probe->identity});
    }
  }
  return found;
}

void Filesystem::carry_versions(const std::vector<VersionedNode>& before) {
  for (const auto& [node, identity] : before) {
    auto at = node_files_.held_name_of(*node);
    if (!at) continue;
    auto probe = mount_.tree.probe_entry(at->fd(), at->name);
    if (probe) node->pages.renamed(identity, probe->identity);
  }
}

codec::Result<void> Filesystem::move_entry(const Entry& from, const std::optional<Entry>& replaced, const Entry& to) {
  bool in_two_steps = false;  // the replaced entry has another name on disk, or rename(2) cannot replace it
  if (replaced) {
    auto old_status = mount_.files.status_at(from.fd(), from.name());
    auto new_status = mount_.files.status_at(replaced->fd(), replaced->name());
    if (!old_status) return codec::Failure(old_status.error());
    if (!new_status) return codec::Failure(new_status.error());
    // Two names of one file: rename(2) leaves both.
    if (old_status->st_ino == new_status->st_ino && old_status->st_dev == new_status->st_dev) return {};
    const bool from_directory = from.kind == EntryKind::directory;
    const bool to_directory = replaced->kind == EntryKind::directory;
    if (to_directory && !from_directory) return refused(EISDIR, "rename", to.name());
    if (!to_directory && from_directory) return refused(ENOTDIR, "rename", to.name());
    if (from.kind == EntryKind::sparse_frame || replaced->kind == EntryKind::sparse_frame) {
      if (replaced->place == to.place) {
        if (auto removed = remove_file(*replaced); !removed) return removed;
      } else {
        in_two_steps = true;
      }
    } else {
      in_two_steps = !(replaced->place == to.place);
    }
  }
  // Create the new entry before removing the old one: the old entry shows under the name until it is removed, so the
  // name switches in one step.
  const bool is_free = !replaced || in_two_steps;
  {
    const std::shared_ptr<WriteBack> writer = write_back_at(from.place);
    const std::shared_ptr<WriteBack> old_writer = replaced && !in_two_steps ? write_back_at(replaced->place) : nullptr;
    const auto pause = writer ? std::make_unique<WriteBack::Pause>(writer) : nullptr;
    const auto old_pause = old_writer ? std::make_unique<WriteBack::Pause>(old_writer) : nullptr;
    codec::ExclusiveLock names(mount_.names);
    const std::vector<VersionedNode> same = capture_versions({from});
    auto renamed = is_free ? frame::rename_to_free_name(mount_.files, from.fd(), from.name(), to.fd(), to.name())
                           : mount_.files.rename_at(from.fd(), from.name(), to.fd(), to.name(), 0);
    if (!renamed) return renamed;
    if (pause) pause->moved(frame_place(to.directory, to.place));
    if (old_pause) old_pause->unlinked();
    mount_.nodes.move(from.place, to.place);
    carry_versions(same);
  }
  if (is_container(from.kind)) move_lock(from, to);
  return in_two_steps ? remove_file(*replaced) : codec::Result<void>();
}

void Filesystem::move_lock(const Entry& from, const Entry& to) {
  if (from.kind == EntryKind::sparse_frame) return;  // its lock is inside the directory
  const std::string old_lock = frame::side_car_path(from.name());
  const std::string new_lock = frame::side_car_path(to.name());
  if (mount_.files.rename_at(from.fd(), old_lock, to.fd(), new_lock, 0)) return;
  // There was no lock to move: remove the lock of the replaced frame.
  static_cast<void>(mount_.files.remove_at(to.fd(), new_lock, false));
}

codec::Result<void> Filesystem::exchange(const Entry& one, const Entry& other) {
  const auto suffix = [this](const Entry& entry) {
    return is_shortened(entry.kind) ? mount_.tree.rules().suffix_of(entry.place.name) : std::string_view();
  };
  // Names on disk with different suffixes cannot be exchanged in one step.
  if (is_container(one.kind) != is_container(other.kind) || suffix(one) != suffix(other)) {
    return refused(EINVAL, "rename", one.name());
  }
  {
    const std::shared_ptr<WriteBack> one_writer = write_back_at(one.place);
    const std::shared_ptr<WriteBack> other_writer = write_back_at(other.place);
    const auto one_pause = one_writer ? std::make_unique<WriteBack::Pause>(one_writer) : nullptr;
    const auto other_pause = other_writer ? std::make_unique<WriteBack::Pause>(other_writer) : nullptr;
    codec::ExclusiveLock names(mount_.names);
    const std::vector<VersionedNode> same = capture_versions({one, other});
    auto done = mount_.files.rename_at(one.fd(), one.name(), other.fd(), other.name(), RENAME_EXCHANGE);
    if (!done) return done;
    if (one_pause) one_pause->moved(frame_place(other.directory, other.place));
    if (other_pause) other_pause->moved(frame_place(one.directory, one.place));
    mount_.nodes.exchange(one.place, other.place);
    carry_versions(same);
  }
  if (one.kind == EntryKind::frame && other.kind == EntryKind::frame) {
    const std::string one_lock = frame::side_car_path(one.name());
    const std::string other_lock = frame::side_car_path(other.name());
    if (mount_.files.rename_at(one.fd(), one_lock, other.fd(), other_lock, RENAME_EXCHANGE)) return {};
    if (!frame::rename_to_free_name(mount_.files, one.fd(), one_lock, other.fd(), other_lock)) {
      static_cast<void>(frame::rename_to_free_name(mount_.files, other.fd(), other_lock, one.fd(), one_lock));
    }
  }
  return {};
}

}  // namespace cframefs::fs
