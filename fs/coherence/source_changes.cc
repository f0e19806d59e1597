#include "fs/coherence/source_changes.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <thread>

#include "frame/io/system_version.h"

namespace cframefs::fs {
namespace {

using Lane = Notifier::Lane;

constexpr std::chrono::seconds kLongestCommit{1};
constexpr std::chrono::milliseconds kCommitPause{1};
// How long an open waits for a look at the file in another form; a server may be slow.
constexpr std::chrono::milliseconds kLongestLook{250};

}  // namespace

void SourceChanges::changed(const Watcher::Change& change) {
  if (notices_.keeps_names()) look_into_name(change);
  if (change.everything) return notices_.post(Lane::changes, 0, "", [this] { lost_track(); });
  const auto directory = mount_.nodes.find(change.directory);
  if (directory && directory->kind == EntryKind::sparse_frame) {
    // The kernel knows no names in a sparse frame, and the mount's own commits change no byte that the kernel holds.
    return look_into_change(directory);
  }
  // The directory's own times have changed too; a single-file root is its directory.
  if (!change.is_repeated) forget_directory(change.directory);
  if (change.name.empty()) return;
  const DirEntry place{change.directory, change.name};
  bool is_directory = false;
  for (const auto& node : mount_.nodes.at_place(place.directory, place.name)) {
    if (node->kind == EntryKind::directory) {
      is_directory = true;
    } else {
      if (!is_own_change(*node, place)) look_into_change(node);
    }
  }
  // The kernel looks up names of files each time, or was just told to forget them.
  if (change.entry && is_directory)
    notices_.post(Lane::names, place.directory, place.name, [this, place] { forget_moved(place); });
}

void SourceChanges::look_into_name(const Watcher::Change& change) {
  const DirEntry place{change.directory, change.name};
  if (!change.everything && (!change.entry || !misleads(place))) return;
  if (change.everything) return notices_.forget_names();
  // The mount itself may be changing the entry: the disk comes before the table. Without need the kernel must not look
  // up the name: it would forget the node, and with it the number that the node shows.
  notices_.post(Lane::changes, place.directory, place.name, [this, place] {
    const auto end = std::chrono::steady_clock::now() + kLongestCommit;
    while (is_committing_at(place) && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(kCommitPause);
    bool leads_elsewhere = false;
    {
      codec::MutexLock lock(mount_.changes);
      leads_elsewhere = misleads(place);
    }
    if (leads_elsewhere) notices_.forget_names();
  });
}

bool SourceChanges::is_committing_at(const DirEntry& place) const {
  const auto nodes = mount_.nodes.at_place(place.directory, place.name);
  return std::any_of(nodes.begin(), nodes.end(), [](const auto& node) {
    const auto writer = write_back_of(*node);
    return writer && writer->status().is_committing;
  });
}

bool SourceChanges::is_own_change(Node& node, const DirEntry& place) {
  // A file that is being written changes with each commit; its write-back compares more than the version. And only a
  // directory of this machine never keeps the watcher waiting.
  if (write_back_of(node) || !mount_.watcher.names().follows(place.directory)) return false;
  const auto directory = mount_.directories.open(place.directory);
  if (!directory) return false;
  const auto status = mount_.files.status_at((*directory)->handle(), place.name);
  if (!status || !node.is_at(*status)) return false;
  const frame::FileVersion version = frame::version_of(*status);
  if (!node.pages.is_own(version)) return false;
  forget_kept(node, version);
  return true;
}

void SourceChanges::lost_track() {
  for (const NodeId id : mount_.nodes.all()) {
    const auto node = mount_.nodes.find(id);
    if (!node) continue;
    node->pages.lost_track();
    if (node->kept.take()) late_answers_.forget(id);
    bool is_open = false;
    {
      codec::MutexLock lock(node->mutex);
      const auto lives = [](const auto& file) { return !file.expired(); };
      const auto& plain = node->open_plain.descriptors;
      is_open = lives(node->open_frame) || std::any_of(plain.begin(), plain.end(), lives);
    }
    // A file that is not open has no read for which the notification could wait.
    if (is_open) {
      pages_.drop_pages(node);
    } else {
      notices_.kernel().invalidate_inode(id);
    }
  }
}

void SourceChanges::look_into_change(const std::shared_ptr<Node>& node) {
  notices_.post(Lane::changes, node->id, "", [this, node] {
    if (is_changed_behind(*node)) pages_.drop_pages(node);
  });
}

void SourceChanges::look_into_other_forms(const Node& node) {
  for (const std::shared_ptr<Node>& form : mount_.nodes.other_forms_of(node)) {
    if (form->pages.pages() == PageCacheState::Pages::none) continue;
    look_into_change(form);
    static_cast<void>(notices_.wait(Lane::changes, form->id, kLongestLook));
    pages_.wait_for_drop(*form);
  }
}

void SourceChanges::forget_moved(const DirEntry& place) {
  // The kernel knows of renames through the mount. It must not be notified of them: the notification waits for the
  // request that is changing the directory, which never ends if the daemon is killed during it.
  for (const auto& node : mount_.nodes.at_place(place.directory, place.name)) {
    if (node->kind == EntryKind::directory && !lies_at(*node, place))
      notices_.kernel().invalidate_entry(place.directory, NameMapper::in_mount(place.name));
  }
}

bool SourceChanges::lies_at(Node& node, const DirEntry& at) {
  // Under mount_.changes, because a rename through the mount changes the disk before the table.
  codec::MutexLock lock(mount_.changes);
  const auto places = mount_.nodes.at_place(at.directory, at.name);
  const bool moved =
      std::none_of(places.begin(), places.end(), [&](const auto& there) { return there->id == node.id; });
  if (moved) return true;
  const auto place = mount_.nodes.place_of(node.id);
  if (!place) return false;
  const auto directory = mount_.directories.open(place->parent);
  if (!directory) return false;
  const auto status = mount_.files.status_at((*directory)->handle(), place->name);
  return status && node.is_at(*status);
}

void SourceChanges::forget_directory(NodeId directory) {
  notices_.post(Lane::attributes, directory, "", [this, directory] { late_answers_.forget(directory); });
}

void SourceChanges::forget_kept(Node& node, const std::optional<frame::FileVersion>& now) {
  // A notification that is not needed does harm: the kernel ignores an answer that crosses it, and then goes by the
  // size that it had before.
  if ((now && node.kept.are_of(*now)) || !node.kept.take()) return;
  // At once: after an open has told the kernel, the notification would be one that is not needed.
  until_there_is_memory([&] { late_answers_.forget(node.id); });
}

bool SourceChanges::misleads(const DirEntry& place) {
  // Only a directory of this machine never keeps the watcher waiting.
  if (!mount_.watcher.names().follows(place.directory) || place.name.empty()) return true;
  if (NameMapper::is_temporary(place.name)) return false;
  if (!is_as_known(place)) return true;
  if (mount_.watcher.names().is_only_form(place.directory, place.name)) return false;
  // An entry that appears or vanishes can also change the name under which another one shows.
  bool has_others = !mount_.nodes.at_place(place.directory, place.name + std::string(NameMapper::kLockSuffix)).empty();
  const auto note = [&](const std::string& stored) -> codec::Result<EntryKind> {
    has_others = has_others || (stored != place.name && !mount_.nodes.at_place(place.directory, stored).empty());
    return EntryKind::none;
  };
  const NameMapper& rules = mount_.tree.rules();
  const std::string name = NameMapper::in_mount(place.name);
  for (const std::string& shown : std::set<std::string>{name, rules.short_name_of(name, EntryKind::frame),
                                                        rules.short_name_of(name, EntryKind::packed_array)})
    static_cast<void>(rules.resolve_shown(shown, note));
  return has_others;
}

bool SourceChanges::is_as_known(const DirEntry& place) {
  const auto nodes = mount_.nodes.at_place(place.directory, place.name);
  if (nodes.empty()) return true;
  const auto directory = mount_.directories.open(place.directory);
  if (!directory) return false;
  const auto status = mount_.files.status_at((*directory)->handle(), place.name);
  return status && std::all_of(nodes.begin(), nodes.end(), [&](const auto& node) { return node->is_at(*status); });
}

bool SourceChanges::is_changed_behind(Node& node) {
  if (const std::shared_ptr<WriteBack> writer = write_back_of(node)) {
    // The write-back notifies the kernel itself of changes that it has not made.
    static_cast<void>(writer->refresh());
    forget_kept(node);
    return false;
  }
  std::optional<frame::FileVersion> now;
  bool is_changed = true;
  {
    // Not during a change by the mount itself.
    codec::MutexLock own(node.change_mutex);
    codec::SharedLock names(mount_.names);
    const auto at = node_files_.held_name_of(node);
    const codec::Result<EntryStat> probe =
        at ? mount_.tree.probe_entry(at->handle(), at->name) : codec::Failure(at.error());
    if (probe) {
      now = probe->identity;
      is_changed = node.pages.reported(*now) == PageCacheState::Drop::pages;
    }
  }
  forget_kept(node, now);
  return is_changed;
}

}  // namespace cframefs::fs
