#include <cerrno>
#include <utility>

#include <fcntl.h>

#include "frame/io/advisory_lock.h"
#include "frame/io/free_name.h"
#include "fs/names/namespace.h"
#include "fs/util/no_memory.h"
#include "fs/write/commit_pause.h"

namespace cframefs::fs {

codec::Result<void> Namespace::remove_entry(NodeId parent, const std::string& name, bool is_directory) {
  auto directory = entries_.directory_to_change(parent);
  if (!directory) return codec::Failure(directory.error());
  auto entry = entries_.find_entry(parent, *directory, name);
  if (!entry) return codec::Failure(entry.error());
  if (is_directory) return remove_directory(*entry);
  if (entry->kind == EntryKind::directory) return refused(EISDIR, "unlink", name);
  return remove_file(*entry);
}

codec::Result<void> Namespace::remove_directory(const Entry& entry) {
  if (entry.kind != EntryKind::directory) return refused(ENOTDIR, "rmdir", entry.name());
  codec::ExclusiveLock names(mount_.names);
  auto done = mount_.files.remove_at(entry.handle(), entry.name(), true);
  if (!done && done.error().sys == ENOTEMPTY) done = remove_leftovers(entry);
  if (done) mount_.nodes.remove(entry.place, false);
  return done;
}

/// Removes a directory that contains only hidden temporary files, which a killed process has left.
codec::Result<void> Namespace::remove_leftovers(const Entry& entry) {
  auto directory = mount_.tree.open_entry(entry.handle(), entry.name(), O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!directory) return codec::Failure(directory.error());
  auto left = mount_.files.list((*directory)->handle());
  if (!left) return codec::Failure(left.error());
  for (const frame::DirectoryEntry& file : *left) {
    if (!NameMapper::is_temporary(file.name)) return refused(ENOTEMPTY, "rmdir", entry.name());
  }
  for (const frame::DirectoryEntry& file : *left) {
    if (mount_.files.remove_at((*directory)->handle(), file.name, false)) continue;
    auto frame = mount_.tree.open_entry((*directory)->handle(), file.name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
    if (frame) remove_hidden(*directory, file.name, **frame);  // of a sparse frame
  }
  return mount_.files.remove_at(entry.handle(), entry.name(), true);
}

codec::Result<void> Namespace::remove_file(const Entry& entry) {
  // Programs that have it open keep using the file, which has no name then.
  const std::shared_ptr<WriteBack> writer = entries_.write_back_at(entry.place);
  const auto pause = writer ? std::make_unique<CommitPause>(writer) : nullptr;
  std::shared_ptr<const void> files;  // declared before the lock, so that they are released without it
  {
    codec::ExclusiveLock names(mount_.names);
    if (auto done = take_name(entry, pause.get(), files); !done) return done;
  }
  if (entry.kind == EntryKind::frame) remove_lock(entry);
  return {};
}

/// Removes the lock file of a frame.
void Namespace::remove_lock(const Entry& frame) {
  try_in_memory(
      [&] { static_cast<void>(mount_.files.remove_at(frame.handle(), frame::side_car_path(frame.name()), false)); });
}

codec::Result<void> Namespace::take_name(const Entry& entry, CommitPause* pause, std::shared_ptr<const void>& files) {
  if (entry.kind == EntryKind::sparse_frame) return take_sparse_name(entry, pause, files);
  const auto status = mount_.files.status_at(entry.handle(), entry.name());
  if (!status) return codec::Failure(status.error());
  if (auto done = mount_.files.remove_at(entry.handle(), entry.name(), false); !done) return done;
  if (pause != nullptr) pause->unlinked();
  until_there_is_memory([&] { mount_.nodes.remove(entry.place, status->st_nlink > 1); });
  return {};
}

/// Removes the files of a sparse frame that has a hidden name when the last program that has it open closes it. Without
/// the memory to list them they stay hidden, as after the daemon was killed.
class Namespace::HiddenFrame {
 public:
  HiddenFrame(Namespace& names, HeldDirectory directory) : names_(names), directory_(std::move(directory)) {}
  HiddenFrame(const HiddenFrame&) = delete;
  HiddenFrame& operator=(const HiddenFrame&) = delete;
  ~HiddenFrame() {
    if (parent_) try_for_a_second([this] { names_.remove_hidden(parent_, name_, *directory_); });
  }
  void has_name(HeldDirectory parent, std::string name) noexcept {
    parent_ = std::move(parent);
    name_ = std::move(name);
  }

 private:
  Namespace& names_;
  const HeldDirectory directory_;
  HeldDirectory parent_;  // null: it has its own name
  std::string name_;
};

/// Removes the name at once, and the files once no program has the frame open. Until then programs read and write them
/// under a hidden name.
codec::Result<void> Namespace::take_sparse_name(const Entry& entry, CommitPause* pause,
                                                std::shared_ptr<const void>& files) {
  auto directory = mount_.tree.open_entry(entry.handle(), entry.name(), O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!directory) return codec::Failure(directory.error());
  // What follows the rename needs no memory: programs that have the frame open must not lose its files.
  const auto hidden_frame = std::make_shared<HiddenFrame>(*this, *directory);
  std::string hidden = entries_.temporary_name(NameMapper::suffix_of(entry.name()));
  FrameLocation place{{}, hidden, hidden};
  for (const auto& node : mount_.nodes.at_place(entry.place.directory, entry.place.name)) {
    if (const auto open = open_frame_of(*node)) open->hold_until_close(hidden_frame);
  }
  // Prefer the root of the source, where the hidden directory prevents no rmdir.
  HeldDirectory parent = mount_.tree.root();
  if (!mount_.files.rename_at(entry.handle(), entry.name(), parent->handle(), hidden, 0)) {
    parent = entry.directory;
    auto renamed = mount_.files.rename_at(entry.handle(), entry.name(), parent->handle(), hidden, 0);
    if (!renamed) return renamed;
  }
  // If another entry has replaced it, undo the rename: that entry must not lose its files.
  const auto ours = mount_.files.status((*directory)->handle());
  const auto taken = mount_.files.status_at(parent->handle(), hidden);
  if (!ours || !taken || ours->st_ino != taken->st_ino || ours->st_dev != taken->st_dev) {
    static_cast<void>(frame::rename_to_free_name(mount_.files, parent->handle(), hidden, entry.handle(), entry.name()));
    return codec::stale("another entry has replaced it");
  }
  files = hidden_frame;
  hidden_frame->has_name(parent, std::move(hidden));
  place.directory = std::move(parent);
  if (pause != nullptr) pause->moved(std::move(place));
  until_there_is_memory([&] { mount_.nodes.remove(entry.place, false); });
  return {};
}

void Namespace::remove_hidden(const HeldDirectory& parent, const std::string& name,
                              const frame::Descriptor& directory) {
  const auto files = mount_.files.list(directory.handle());
  if (!files) return;
  for (const frame::DirectoryEntry& file : *files)
    static_cast<void>(mount_.files.remove_at(directory.handle(), file.name, false));
  static_cast<void>(mount_.files.remove_at(parent->handle(), name, true));
}

}  // namespace cframefs::fs
