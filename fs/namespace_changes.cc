// What makes, renames and removes entries of folders.
//
// A name of the mount stands for a name on disk (fs/names.h): what is made or renamed gets the name on disk that shows
// as what was asked for. Lock side-cars of frames go along with them. All of it is serialised by changes_; look-ups
// wait only while an entry leaves its name (names_), and see the folder before or after. Errors: io with the system's
// errno, EXDEV where a rename would turn a plain file into a frame or back (programs then copy).
#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frame/replacement_file.h"
#include "fs/filesystem.h"

namespace cframefs::fs {
namespace {

constexpr mode_t kPermissions = 07777;

codec::Failure refused(int why, const char* doing, const std::string& path = {}) {
  codec::Failure failure = codec::io_error(why, doing);
  failure.value().path = path;
  return failure;
}

bool is_no_entry(const codec::Error& error) {
  return error.sys == ENOENT;
}

}  // namespace

codec::Result<std::string> Filesystem::folder_to_change(NodeId parent) const {
  if (read_only_) return refused(EROFS, "change");
  const std::shared_ptr<Node> folder = nodes_.find(parent);
  if (!folder) return codec::stale("the kernel asked for a folder that it had forgotten");
  if (folder->role != NodeRole::stored || tree_.is_single_file()) return refused(EPERM, "change");
  return nodes_.path_of(parent);
}

codec::Result<std::string> Filesystem::folder_for_new(NodeId parent, const std::string& name) const {
  auto folder = folder_to_change(parent);
  if (!folder) return folder;
  // What would never be shown cannot be made.
  if (NameRules::is_temporary(name)) return refused(EPERM, "create", name);
  if (const std::string_view locked = NameRules::locked_name(name); !locked.empty()) {
    auto kind = tree_.kind_of(SourceTree::join(*folder, std::string(locked)));
    if (kind && is_container(*kind)) return refused(EPERM, "create", name);
  }
  auto taken = tree_.resolve(*folder, name);
  if (taken) return refused(EEXIST, "create", name);
  if (!is_no_entry(taken.error())) return taken;
  return folder;
}

codec::Result<Filesystem::Entry> Filesystem::find_entry(NodeId parent, const std::string& folder,
                                                        const std::string& name) const {
  auto stored = tree_.resolve(folder, name);
  if (!stored) return codec::Failure(stored.error());
  std::string path = SourceTree::join(folder, *stored);
  auto kind = tree_.kind_of(path);
  if (!kind) return codec::Failure(kind.error());
  if (*kind == EntryKind::none) return refused(ENOENT, "lookup", path);
  return Entry{{parent, std::move(*stored)}, std::move(path), *kind};
}

std::string Filesystem::temporary_path(const std::string& folder) {
  const std::uint64_t number = next_temporary_.fetch_add(1, std::memory_order_relaxed);
  return SourceTree::join(folder, frame::kTemporaryPrefix + std::to_string(getpid()) + "." + std::to_string(number));
}

codec::Result<Attributes> Filesystem::made(NodeId parent, const std::string& name, const std::string& path,
                                           const Caller& caller) {
  if (geteuid() == 0 && (caller.user != 0 || caller.group != 0)) {
    auto status = files_.status_at(tree_.root_fd(), path);
    if (!status) return codec::Failure(status.error());
    // In a folder with the set-group-id bit the group is the folder's, which the system has seen to.
    const std::size_t slash = path.rfind('/');
    auto folder = files_.status_at(tree_.root_fd(), slash == std::string::npos ? "." : path.substr(0, slash));
    const bool inherits = folder && (folder->st_mode & S_ISGID) != 0;
    const gid_t group = inherits ? static_cast<gid_t>(-1) : caller.group;
    if (auto owned = files_.change_owner_at(tree_.root_fd(), path, caller.user, group); !owned) {
      return codec::Failure(owned.error());
    }
  }
  return lookup(parent, name);
}

codec::Result<Attributes> Filesystem::make_folder(NodeId parent, const std::string& name, mode_t mode,
                                                  const Caller& caller) {
  codec::MutexLock lock(changes_);
  auto folder = folder_for_new(parent, name);
  if (!folder) return codec::Failure(folder.error());
  const std::string path = SourceTree::join(*folder, name);
  auto done = files_.make_folder_at(tree_.root_fd(), path, mode & kPermissions);
  if (!done) return codec::Failure(done.error());
  return made(parent, name, path, caller);
}

codec::Result<Attributes> Filesystem::make_symlink(NodeId parent, const std::string& name, const std::string& target,
                                                   const Caller& caller) {
  codec::MutexLock lock(changes_);
  auto folder = folder_for_new(parent, name);
  if (!folder) return codec::Failure(folder.error());
  const std::string path = SourceTree::join(*folder, name);
  auto done = files_.make_symlink_at(tree_.rules().stored_target(target), tree_.root_fd(), path);
  if (!done) return codec::Failure(done.error());
  return made(parent, name, path, caller);
}

codec::Result<Attributes> Filesystem::make_node(NodeId parent, const std::string& name, mode_t mode, dev_t device,
                                                const Caller& caller) {
  if (S_ISREG(mode)) {
    auto created = create(parent, name, O_RDONLY | O_CREAT | O_EXCL, mode, caller);
    if (!created) return codec::Failure(created.error());
    return created->attributes;
  }
  codec::MutexLock lock(changes_);
  auto folder = folder_for_new(parent, name);
  if (!folder) return codec::Failure(folder.error());
  const std::string path = SourceTree::join(*folder, name);
  auto done = files_.make_node_at(tree_.root_fd(), path, mode, device);
  if (!done) return codec::Failure(done.error());
  return made(parent, name, path, caller);
}

codec::Result<Attributes> Filesystem::link(NodeId id, NodeId parent, const std::string& name) {
  codec::MutexLock lock(changes_);
  const std::shared_ptr<Node> node = nodes_.find(id);
  if (!node) return codec::stale("the kernel asked for a file that it had forgotten");
  // Some commits of a frame rename a new file over it: its other names would go on leading to the old one.
  if (node->role != NodeRole::stored || is_container(node->kind)) return refused(EPERM, "link");
  auto from = path_of(id);
  if (!from) return codec::Failure(from.error());
  auto folder = folder_for_new(parent, name);
  if (!folder) return codec::Failure(folder.error());
  if (!tree_.keeps_kind(node->kind, name)) return refused(EXDEV, "link", name);
  const std::string path = SourceTree::join(*folder, name);
  const auto status = [&] { return files_.status_at(tree_.root_fd(), *from); };
  auto done = change_own(*node, status, [&] { return files_.link_at(tree_.root_fd(), *from, tree_.root_fd(), path); });
  if (!done) return codec::Failure(done.error());
  return lookup(parent, name);
}

codec::Result<void> Filesystem::remove(NodeId parent, const std::string& name, bool folder) {
  codec::MutexLock lock(changes_);
  auto directory = folder_to_change(parent);
  if (!directory) return codec::Failure(directory.error());
  auto entry = find_entry(parent, *directory, name);
  if (!entry) return codec::Failure(entry.error());
  if (folder) return remove_folder(*entry);
  if (entry->kind == EntryKind::directory) return refused(EISDIR, "unlink", entry->path);
  return remove_file(*entry);
}

codec::Result<void> Filesystem::remove_folder(const Entry& entry) {
  if (entry.kind != EntryKind::directory) return refused(ENOTDIR, "rmdir", entry.path);
  codec::ExclusiveLock names(names_);
  auto done = files_.remove_at(tree_.root_fd(), entry.path, true);
  if (!done && done.error().sys == ENOTEMPTY) {
    // Empty as far as anybody can see, if a process that was killed has left nothing but temporary files.
    auto opened = tree_.open_entry(entry.path, O_RDONLY | O_DIRECTORY);
    if (!opened) return codec::Failure(opened.error());
    auto left = files_.list((*opened)->fd());
    if (!left) return codec::Failure(left.error());
    for (const frame::DirectoryEntry& file : *left) {
      if (!NameRules::is_temporary(file.name)) return done;
    }
    for (const frame::DirectoryEntry& file : *left) {
      const std::string path = SourceTree::join(entry.path, file.name);
      if (!files_.remove_at(tree_.root_fd(), path, false)) remove_hidden(path);  // of a sparse frame
    }
    done = files_.remove_at(tree_.root_fd(), entry.path, true);
  }
  if (done) nodes_.remove(entry.place, false);
  return done;
}

codec::Result<void> Filesystem::remove_file(const Entry& entry) {
  auto status = files_.status_at(tree_.root_fd(), entry.path);
  if (!status) return codec::Failure(status.error());
  if (entry.kind == EntryKind::sparse_frame) return remove_sparse_frame(entry);
  // Programs that have it open go on with the file, which has no name then.
  const std::shared_ptr<WriteBack> writer = write_back_at(entry.place);
  const auto pause = writer ? std::make_unique<WriteBack::Pause>(writer) : nullptr;
  {
    codec::ExclusiveLock names(names_);
    if (auto done = files_.remove_at(tree_.root_fd(), entry.path, false); !done) return done;
    if (pause) pause->unlinked();
    nodes_.remove(entry.place, status->st_nlink > 1);
  }
  if (entry.kind == EntryKind::frame) {
    static_cast<void>(files_.remove_at(tree_.root_fd(), SourceTree::lock_path(entry.path, entry.kind), false));
  }
  return {};
}

/// Its name goes at once; its files when nobody has it open any more: until then programs read and write them under a
/// name that nobody sees.
codec::Result<void> Filesystem::remove_sparse_frame(const Entry& entry) {
  const int root = tree_.root_fd();
  const std::shared_ptr<WriteBack> writer = write_back_at(entry.place);
  const auto pause = writer ? std::make_unique<WriteBack::Pause>(writer) : nullptr;
  std::shared_ptr<const void> guard;  // let go of without the lock
  codec::ExclusiveLock names(names_);
  // In the root of the source it is in nobody's way, if it can be there.
  std::string hidden = temporary_path("");
  if (!files_.rename_at(root, entry.path, root, hidden, 0)) {
    const std::size_t slash = entry.path.rfind('/');
    hidden = temporary_path(slash == std::string::npos ? "" : entry.path.substr(0, slash));
    if (auto renamed = files_.rename_at(root, entry.path, root, hidden, 0); !renamed) return renamed;
  }
  if (pause) {
    auto place = place_of(hidden);
    if (!place) return codec::Failure(place.error());
    pause->moved(std::move(*place));
  }
  guard = std::shared_ptr<const void>(this, [this, hidden](const void*) { remove_hidden(hidden); });
  for (const auto& node : nodes_.at_place(entry.place.folder, entry.place.name)) {
    if (const auto frame = open_frame_of(*node)) frame->keep(guard);
  }
  nodes_.remove(entry.place, false);
  return {};
}

void Filesystem::remove_hidden(const std::string& folder) {
  const int root = tree_.root_fd();
  const auto opened = tree_.open_entry(folder, O_RDONLY | O_DIRECTORY);
  if (!opened) return;
  const auto files = files_.list((*opened)->fd());
  if (!files) return;
  for (const frame::DirectoryEntry& file : *files)
    static_cast<void>(files_.remove_at(root, SourceTree::join(folder, file.name), false));
  static_cast<void>(files_.remove_at(root, folder, true));
}

codec::Result<void> Filesystem::rename(NodeId from_parent, const std::string& from_name, NodeId to_parent,
                                       const std::string& to_name, unsigned flags) {
  if ((flags & ~static_cast<unsigned>(RENAME_NOREPLACE | RENAME_EXCHANGE)) != 0) return refused(EINVAL, "rename");
  codec::MutexLock lock(changes_);
  auto from_folder = folder_to_change(from_parent);
  if (!from_folder) return codec::Failure(from_folder.error());
  auto to_folder = folder_to_change(to_parent);
  if (!to_folder) return codec::Failure(to_folder.error());
  auto from = find_entry(from_parent, *from_folder, from_name);
  if (!from) return codec::Failure(from.error());
  std::optional<Entry> replaced;
  if (auto found = find_entry(to_parent, *to_folder, to_name)) {
    replaced = std::move(*found);
  } else if (!is_no_entry(found.error())) {
    return codec::Failure(found.error());
  }
  if ((flags & RENAME_EXCHANGE) != 0) {
    return replaced ? exchange(*from, *replaced) : refused(ENOENT, "rename", to_name);
  }
  if (replaced && (flags & RENAME_NOREPLACE) != 0) return refused(EEXIST, "rename", to_name);
  if (!replaced) {
    if (auto can = folder_for_new(to_parent, to_name); !can) return codec::Failure(can.error());
  }
  const std::string stored =
      is_container(from->kind) ? tree_.rules().renamed_container({from->place.name, from->kind}, to_name) : to_name;
  if (stored.empty()) return refused(EXDEV, "rename", to_name);
  const Entry to{{to_parent, stored}, SourceTree::join(*to_folder, stored), from->kind};
  if (replaced && replaced->path == from->path) return {};
  if (!tree_.keeps_kind(from->kind, stored)) return refused(EXDEV, "rename", to.path);
  return move_entry(*from, replaced, to);
}

std::vector<Filesystem::Watched> Filesystem::states_at(const std::vector<Entry>& entries) {
  std::vector<Watched> found;
  for (const Entry& entry : entries) {
    auto status = files_.status_at(tree_.root_fd(), SourceTree::attribute_path(entry.path, entry.kind));
    if (!status) continue;
    for (const auto& node : nodes_.at_place(entry.place.folder, entry.place.name)) {
      if (!write_back_of(*node)) found.push_back({node, frame::Identity::of(*status)});
    }
  }
  return found;
}

void Filesystem::keep_states(const std::vector<Watched>& before) {
  for (const auto& [node, identity] : before) {
    auto path = path_of(node->id);
    if (!path) continue;
    auto status = files_.status_at(tree_.root_fd(), SourceTree::attribute_path(*path, node->kind));
    if (!status) continue;
    node->pages.renamed(identity, frame::Identity::of(*status));
  }
}

codec::Result<void> Filesystem::move_entry(const Entry& from, const std::optional<Entry>& replaced, const Entry& to) {
  const int root = tree_.root_fd();
  bool aside = false;  // what is replaced has another name on disk, or cannot be renamed over
  if (replaced) {
    auto old_status = files_.status_at(root, from.path);
    auto new_status = files_.status_at(root, replaced->path);
    if (!old_status) return codec::Failure(old_status.error());
    if (!new_status) return codec::Failure(new_status.error());
    // Two names of one file: rename(2) leaves both.
    if (old_status->st_ino == new_status->st_ino && old_status->st_dev == new_status->st_dev) return {};
    const bool from_folder = from.kind == EntryKind::directory;
    const bool to_folder = replaced->kind == EntryKind::directory;
    if (to_folder && !from_folder) return refused(EISDIR, "rename", to.path);
    if (!to_folder && from_folder) return refused(ENOTDIR, "rename", to.path);
    if (from.kind == EntryKind::sparse_frame || replaced->kind == EntryKind::sparse_frame) {
      if (replaced->path == to.path) {
        if (auto removed = remove_file(*replaced); !removed) return removed;
      } else {
        aside = true;
      }
    } else {
      aside = replaced->path != to.path;
    }
  }
  // The new entry comes first: of two that want one name the old one keeps it until it goes, which is then one step.
  const unsigned flags = !replaced || aside ? RENAME_NOREPLACE : 0;
  auto place = place_of(to.path);
  if (!place) return codec::Failure(place.error());
  {
    const std::shared_ptr<WriteBack> writer = write_back_at(from.place);
    const std::shared_ptr<WriteBack> old_writer = replaced && !aside ? write_back_at(replaced->place) : nullptr;
    const auto pause = writer ? std::make_unique<WriteBack::Pause>(writer) : nullptr;
    const auto old_pause = old_writer ? std::make_unique<WriteBack::Pause>(old_writer) : nullptr;
    codec::ExclusiveLock names(names_);
    const std::vector<Watched> same = states_at({from});
    if (auto renamed = files_.rename_at(root, from.path, root, to.path, flags); !renamed) return renamed;
    if (pause) pause->moved(std::move(*place));
    if (old_pause) old_pause->unlinked();
    nodes_.move(from.place, to.place);
    keep_states(same);
  }
  if (is_container(from.kind)) move_lock(from, to);
  return aside ? remove_file(*replaced) : codec::Result<void>();
}

void Filesystem::move_lock(const Entry& from, const Entry& to) {
  if (from.kind == EntryKind::sparse_frame) return;  // it lies inside
  const std::string old_lock = SourceTree::lock_path(from.path, from.kind);
  const std::string new_lock = SourceTree::lock_path(to.path, to.kind);
  if (files_.rename_at(tree_.root_fd(), old_lock, tree_.root_fd(), new_lock, 0)) return;
  // There was none: that of a frame which was replaced must not stay behind for this one.
  static_cast<void>(files_.remove_at(tree_.root_fd(), new_lock, false));
}

codec::Result<void> Filesystem::exchange(const Entry& one, const Entry& other) {
  const auto suffix = [this](const Entry& entry) {
    return is_container(entry.kind) ? tree_.rules().suffix_of(entry.place.name) : std::string_view();
  };
  // Two kinds of names on disk cannot change places in one step.
  if (is_container(one.kind) != is_container(other.kind) || suffix(one) != suffix(other)) {
    return refused(EINVAL, "rename", one.path);
  }
  const int root = tree_.root_fd();
  auto one_place = place_of(other.path);
  auto other_place = place_of(one.path);
  if (!one_place) return codec::Failure(one_place.error());
  if (!other_place) return codec::Failure(other_place.error());
  {
    const std::shared_ptr<WriteBack> one_writer = write_back_at(one.place);
    const std::shared_ptr<WriteBack> other_writer = write_back_at(other.place);
    const auto one_pause = one_writer ? std::make_unique<WriteBack::Pause>(one_writer) : nullptr;
    const auto other_pause = other_writer ? std::make_unique<WriteBack::Pause>(other_writer) : nullptr;
    codec::ExclusiveLock names(names_);
    const std::vector<Watched> same = states_at({one, other});
    auto done = files_.rename_at(root, one.path, root, other.path, RENAME_EXCHANGE);
    if (!done) return done;
    if (one_pause) one_pause->moved(std::move(*one_place));
    if (other_pause) other_pause->moved(std::move(*other_place));
    nodes_.exchange(one.place, other.place);
    keep_states(same);
  }
  if (one.kind == EntryKind::frame && other.kind == EntryKind::frame) {
    const std::string one_lock = SourceTree::lock_path(one.path, one.kind);
    const std::string other_lock = SourceTree::lock_path(other.path, other.kind);
    if (files_.rename_at(root, one_lock, root, other_lock, RENAME_EXCHANGE)) return {};
    if (!files_.rename_at(root, one_lock, root, other_lock, RENAME_NOREPLACE)) {
      static_cast<void>(files_.rename_at(root, other_lock, root, one_lock, RENAME_NOREPLACE));
    }
  }
  return {};
}

}  // namespace cframefs::fs
