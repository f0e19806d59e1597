#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>

#include "frame/io/advisory_lock.h"
#include "frame/io/free_name.h"
#include "fs/names/namespace.h"
#include "fs/write/commit_pause.h"

namespace cframefs::fs {

codec::Result<void> Namespace::rename_entry(NodeId from_parent, const std::string& from_name, NodeId to_parent,
                                            const std::string& to_name, unsigned flags) {
  auto from_directory = entries_.directory_to_change(from_parent);
  if (!from_directory) return codec::Failure(from_directory.error());
  auto to_directory = entries_.directory_to_change(to_parent);
  if (!to_directory) return codec::Failure(to_directory.error());
  auto from = entries_.find_entry(from_parent, *from_directory, from_name);
  if (!from) return codec::Failure(from.error());
  std::optional<Entry> replaced;
  if (auto found = entries_.find_entry(to_parent, *to_directory, to_name)) {
    replaced = std::move(*found);
  } else if (!is_no_entry(found.error())) {
    return codec::Failure(found.error());
  }
  if ((flags & RENAME_EXCHANGE) != 0) {
    return replaced ? exchange(*from, *replaced) : refused(ENOENT, "rename", to_name);
  }
  if (replaced && (flags & RENAME_NOREPLACE) != 0) return refused(EEXIST, "rename", to_name);
  if (!replaced) {
    if (auto can = entries_.directory_for_new(to_parent, to_name); !can) return codec::Failure(can.error());
  }
  std::string stored = NameMapper::on_disk(to_name);
  if (is_shortened(from->kind)) {
    stored = mount_.tree.rules().renamed_container({from->place.name, from->kind}, to_name);
  } else if (from->kind == EntryKind::symlink) {
    const auto target = mount_.tree.links().target_of(from->handle(), from->name());
    if (target)
      stored = NameMapper::on_disk(mount_.tree.links().link_name((*to_directory)->handle(), to_name, *target));
  }
  if (stored.empty()) return refused(EXDEV, "rename", to_name, "no name on disk would show as this one");
  const Entry to{{to_parent, stored}, *to_directory, from->kind};
  if (replaced && replaced->place == from->place) return {};
  if (!mount_.tree.keeps_kind(from->kind, stored)) return refused(EXDEV, "rename", stored, kOtherKind);
  return move_entry(*from, replaced, to);
}

std::vector<Namespace::VersionedNode> Namespace::capture_versions(const std::vector<Entry>& entries) const {
  std::vector<VersionedNode> found;
  for (const Entry& entry : entries) {
    auto probe = mount_.tree.probe_entry(entry.handle(), entry.name());
    if (!probe) continue;
    for (const auto& node : mount_.nodes.at_place(entry.place.directory, entry.place.name)) {
      if (!write_back_of(*node)) found.push_back({node, probe->identity});
    }
  }
  return found;
}

void Namespace::carry_versions(const std::vector<VersionedNode>& before) {
  for (const auto& [node, identity] : before) {
    auto at = node_files_.held_name_of(*node);
    if (!at) continue;
    auto probe = mount_.tree.probe_entry(at->handle(), at->name);
    if (probe) node->pages.renamed(identity, probe->identity);
  }
}

codec::Result<void> Namespace::move_entry(const Entry& from, const std::optional<Entry>& replaced, const Entry& to) {
  bool in_two_steps = false;  // the replaced entry has another name on disk, or rename(2) cannot replace it
  if (replaced) {
    auto old_status = mount_.files.status_at(from.handle(), from.name());
    auto new_status = mount_.files.status_at(replaced->handle(), replaced->name());
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
    const std::shared_ptr<WriteBack> writer = entries_.write_back_at(from.place);
    const std::shared_ptr<WriteBack> old_writer =
        replaced && !in_two_steps ? entries_.write_back_at(replaced->place) : nullptr;
    const auto pause = writer ? std::make_unique<CommitPause>(writer) : nullptr;
    const auto old_pause = old_writer ? std::make_unique<CommitPause>(old_writer) : nullptr;
    codec::ExclusiveLock names(mount_.names);
    const std::vector<VersionedNode> same = capture_versions({from});
    auto renamed = is_free
                       ? frame::rename_to_free_name(mount_.files, from.handle(), from.name(), to.handle(), to.name())
                       : mount_.files.rename_at(from.handle(), from.name(), to.handle(), to.name(), 0);
    if (!renamed) return renamed;
    if (pause) pause->moved(writers_.frame_place(to.directory, to.place));
    if (old_pause) old_pause->unlinked();
    mount_.nodes.move(from.place, to.place);
    carry_versions(same);
  }
  if (is_container(from.kind)) move_lock(from, to);
  return in_two_steps ? remove_file(*replaced) : codec::Result<void>();
}

void Namespace::move_lock(const Entry& from, const Entry& to) {
  if (from.kind == EntryKind::sparse_frame) return;  // its lock is inside the directory
  const std::string old_lock = frame::side_car_path(from.name());
  const std::string new_lock = frame::side_car_path(to.name());
  if (mount_.files.rename_at(from.handle(), old_lock, to.handle(), new_lock, 0)) return;
  // There was no lock to move: remove the lock of the replaced frame.
  static_cast<void>(mount_.files.remove_at(to.handle(), new_lock, false));
}

codec::Result<void> Namespace::exchange(const Entry& one, const Entry& other) {
  const auto suffix = [](const Entry& entry) {
    return is_shortened(entry.kind) ? NameMapper::suffix_of(entry.place.name) : std::string_view();
  };
  // Names on disk with different suffixes cannot be exchanged in one step.
  if (is_container(one.kind) != is_container(other.kind) || suffix(one) != suffix(other)) {
    return refused(EINVAL, "rename", one.name(), "entries of different kinds cannot be exchanged in one step");
  }
  {
    const std::shared_ptr<WriteBack> one_writer = entries_.write_back_at(one.place);
    const std::shared_ptr<WriteBack> other_writer = entries_.write_back_at(other.place);
    const auto one_pause = one_writer ? std::make_unique<CommitPause>(one_writer) : nullptr;
    const auto other_pause = other_writer ? std::make_unique<CommitPause>(other_writer) : nullptr;
    codec::ExclusiveLock names(mount_.names);
    const std::vector<VersionedNode> same = capture_versions({one, other});
    auto done = mount_.files.rename_at(one.handle(), one.name(), other.handle(), other.name(), RENAME_EXCHANGE);
    if (!done) return done;
    if (one_pause) one_pause->moved(writers_.frame_place(other.directory, other.place));
    if (other_pause) other_pause->moved(writers_.frame_place(one.directory, one.place));
    mount_.nodes.exchange(one.place, other.place);
    carry_versions(same);
  }
  if (one.kind == EntryKind::frame && other.kind == EntryKind::frame) {
    const std::string one_lock = frame::side_car_path(one.name());
    const std::string other_lock = frame::side_car_path(other.name());
    if (mount_.files.rename_at(one.handle(), one_lock, other.handle(), other_lock, RENAME_EXCHANGE)) return {};
    if (!frame::rename_to_free_name(mount_.files, one.handle(), one_lock, other.handle(), other_lock)) {
      static_cast<void>(frame::rename_to_free_name(mount_.files, other.handle(), other_lock, one.handle(), one_lock));
    }
  }
  return {};
}

}  // namespace cframefs::fs
