#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>

#include "frame/io/advisory_lock.h"
#include "frame/io/free_name.h"
#include "fs/names/namespace.h"
#include "fs/util/no_memory.h"
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
    // A rename changes the ctime alone.
    if (probe && probe->identity.has_content_of(identity)) node->pages.renamed(identity, probe->identity);
  }
}

codec::Result<void> Namespace::give_name(const Entry& from, const Entry& to, CommitPause* pause, NameUse use) {
  const std::vector<VersionedNode> same = capture_versions({from});
  FrameLocation place = writers_.frame_place(to.directory, to.place);
  auto renamed = use == NameUse::free
                     ? frame::rename_to_free_name(mount_.files, from.handle(), from.name(), to.handle(), to.name())
                     : mount_.files.rename_at(from.handle(), from.name(), to.handle(), to.name(), 0);
  if (!renamed) return renamed;
  if (pause != nullptr) pause->moved(std::move(place));
  until_there_is_memory([&] { mount_.nodes.move(from.place, to.place); });
  try_in_memory([&] { carry_versions(same); });  // otherwise the kernel reads its pages again
  return {};
}

void Namespace::give_name_back(const Entry& from, const Entry& to, CommitPause* pause) {
  until_there_is_memory(
      [&]() NO_THREAD_SAFETY_ANALYSIS { static_cast<void>(give_name(from, to, pause, NameUse::free)); });
}

codec::Result<void> Namespace::exchange_names(const Entry& one, CommitPause* one_pause, const Entry& other,
                                              CommitPause* other_pause) {
  const std::vector<VersionedNode> same = capture_versions({one, other});
  FrameLocation one_place = writers_.frame_place(one.directory, one.place);
  FrameLocation other_place = writers_.frame_place(other.directory, other.place);
  auto done = mount_.files.rename_at(one.handle(), one.name(), other.handle(), other.name(), RENAME_EXCHANGE);
  if (!done) return done;
  if (one_pause != nullptr) one_pause->moved(std::move(other_place));
  if (other_pause != nullptr) other_pause->moved(std::move(one_place));
  until_there_is_memory([&] { mount_.nodes.exchange(one.place, other.place); });
  try_in_memory([&] { carry_versions(same); });
  return {};
}

/// The name on disk has one of the two entries at each instant. Where names cannot be exchanged it is free for a
/// moment.
codec::Result<void> Namespace::replace_sparse(const Entry& from, CommitPause* pause, const Entry& replaced,
                                              CommitPause* old_pause, std::shared_ptr<const void>& files) {
  auto exchanged = exchange_names(from, pause, replaced, old_pause);
  if (exchanged) {
    auto removed = or_no_memory([&]() NO_THREAD_SAFETY_ANALYSIS {
      return take_name(Entry{from.place, from.directory, replaced.kind}, old_pause, files);
    });
    if (!removed) {
      until_there_is_memory(
          [&]() NO_THREAD_SAFETY_ANALYSIS { static_cast<void>(exchange_names(from, old_pause, replaced, pause)); });
    }
    return removed;
  }
  if (!frame::knows_no_rename_flags(exchanged.error())) return exchanged;
  const std::string hidden = entries_.temporary_name(NameMapper::suffix_of(replaced.name()));
  const Entry aside{{replaced.place.directory, hidden}, replaced.directory, replaced.kind};
  if (auto moved = give_name(replaced, aside, old_pause, NameUse::free); !moved) return moved;
  const Entry to{replaced.place, replaced.directory, from.kind};
  auto moved = or_no_memory([&]() NO_THREAD_SAFETY_ANALYSIS { return give_name(from, to, pause, NameUse::free); });
  if (moved) {
    moved = or_no_memory([&]() NO_THREAD_SAFETY_ANALYSIS { return take_name(aside, old_pause, files); });
    if (moved) return moved;
    give_name_back(to, from, pause);
  }
  give_name_back(aside, replaced, old_pause);
  return moved;
}

/// Replaces an entry whose name on disk is another one than `to`. It shows under the name until it is removed, so the
/// name switches in one step.
codec::Result<void> Namespace::replace_other_name(const Entry& from, const Entry& to, CommitPause* pause,
                                                  const Entry& replaced, CommitPause* old_pause,
                                                  std::shared_ptr<const void>& files) {
  if (auto given = give_name(from, to, pause, NameUse::free); !given) return given;
  auto removed = or_no_memory([&]() NO_THREAD_SAFETY_ANALYSIS { return take_name(replaced, old_pause, files); });
  if (!removed) give_name_back(to, from, pause);
  return removed;
}

codec::Result<void> Namespace::move_name(const Entry& from, const std::optional<Entry>& replaced, const Entry& to) {
  const std::shared_ptr<WriteBack> writer = entries_.write_back_at(from.place);
  const std::shared_ptr<WriteBack> old_writer = replaced ? entries_.write_back_at(replaced->place) : nullptr;
  const auto pause = writer ? std::make_unique<CommitPause>(writer) : nullptr;
  const auto old_pause = old_writer ? std::make_unique<CommitPause>(old_writer) : nullptr;
  std::shared_ptr<const void> files;  // declared before the lock, so that they are released without it
  codec::ExclusiveLock names(mount_.names);
  if (!replaced) return give_name(from, to, pause.get(), NameUse::free);
  if (!(replaced->place == to.place)) {
    return replace_other_name(from, to, pause.get(), *replaced, old_pause.get(), files);
  }
  if (from.kind == EntryKind::sparse_frame || replaced->kind == EntryKind::sparse_frame) {
    return replace_sparse(from, pause.get(), *replaced, old_pause.get(), files);
  }
  auto done = give_name(from, to, pause.get(), NameUse::replaced);
  if (done && old_pause) old_pause->unlinked();
  return done;
}

codec::Result<void> Namespace::move_entry(const Entry& from, const std::optional<Entry>& replaced, const Entry& to) {
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
  }
  if (auto done = move_name(from, replaced, to); !done) return done;
  const bool leaves_lock = !replaced || !(replaced->place == to.place) || from.kind == EntryKind::sparse_frame;
  if (replaced && replaced->kind == EntryKind::frame && leaves_lock) remove_lock(*replaced);
  if (is_container(from.kind)) try_in_memory([&] { move_lock(from, to); });
  return {};
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
    if (auto done = exchange_names(one, one_pause.get(), other, other_pause.get()); !done) return done;
  }
  if (one.kind == EntryKind::frame && other.kind == EntryKind::frame)
    try_in_memory([&] { exchange_locks(one, other); });
  return {};
}

void Namespace::exchange_locks(const Entry& one, const Entry& other) {
  const std::string one_lock = frame::side_car_path(one.name());
  const std::string other_lock = frame::side_car_path(other.name());
  if (mount_.files.rename_at(one.handle(), one_lock, other.handle(), other_lock, RENAME_EXCHANGE)) return;
  if (!frame::rename_to_free_name(mount_.files, one.handle(), one_lock, other.handle(), other_lock)) {
    static_cast<void>(frame::rename_to_free_name(mount_.files, other.handle(), other_lock, one.handle(), one_lock));
  }
}

}  // namespace cframefs::fs
