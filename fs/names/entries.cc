#include "fs/names/entries.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <unistd.h>

#include "frame/io/replacement_file.h"
#include "fs/write/commit_pause.h"

namespace cframefs::fs {

codec::Result<HeldDirectory> Entries::directory_to_change(NodeId parent) {
  if (auto writable = mount_.check_writable("change"); !writable) return codec::Failure(writable.error());
  const std::shared_ptr<Node> directory = mount_.nodes.find(parent);
  if (!directory) return no_such_node();
  if (directory->role != NodeRole::stored || mount_.tree.is_single_file())
    return refused(EPERM, "change", {}, "the directory is made up by the mount");
  return mount_.directories.open(parent);
}

codec::Result<HeldDirectory> Entries::directory_for_new(NodeId parent, const std::string& name) {
  auto directory = directory_to_change(parent);
  if (!directory) return directory;
  // A lock file of a frame would never show, so it cannot be created.
  if (const std::string_view locked = NameMapper::locked_name(name); !locked.empty()) {
    auto kind = mount_.tree.kind_of((*directory)->handle(), NameMapper::on_disk(std::string(locked)));
    if (kind && is_container(*kind))
      return refused(EPERM, "create", name, "the name is that of the lock file of a frame");
  }
  auto taken = finder_.find(parent, *directory, name);
  if (taken) return refused(EEXIST, "create", name);
  if (!is_no_entry(taken.error())) return codec::Failure(taken.error());
  return directory;
}

codec::Result<Entry> Entries::find_entry(NodeId parent, const HeldDirectory& directory, const std::string& name) const {
  auto found = finder_.find(parent, directory, name);
  if (!found) return codec::Failure(found.error());
  auto kind = mount_.tree.kind_of(directory->handle(), found->name);
  if (!kind) return codec::Failure(kind.error());
  if (*kind == EntryKind::none) return refused(ENOENT, "lookup", found->name);
  return Entry{{parent, std::move(found->name)}, directory, *kind};
}

std::string Entries::temporary_name(std::string_view suffix) {
  const std::uint64_t number = next_temporary_.fetch_add(1, std::memory_order_relaxed);
  return frame::kTemporaryPrefix + std::to_string(getpid()) + "." + std::to_string(number) + std::string(suffix);
}

std::shared_ptr<WriteBack> Entries::write_back_at(const DirEntry& place) const {
  for (const auto& node : mount_.nodes.at_place(place.directory, place.name)) {
    if (auto writer = write_back_of(*node)) return writer;
  }
  return nullptr;
}

std::shared_ptr<WriteBack> Entries::committing_entry(NodeId parent, const std::string& name) const {
  // Resolve the name by nodes that have a writer only, without disk access.
  const auto kind_of = [&](const std::string& stored) -> codec::Result<EntryKind> {
    const auto nodes = mount_.nodes.at_place(parent, stored);
    const auto written =
        std::find_if(nodes.begin(), nodes.end(), [](const auto& node) { return write_back_of(*node); });
    return written == nodes.end() ? EntryKind::none : (*written)->kind;
  };
  const auto stored = mount_.tree.rules().resolve_shown(name, kind_of);
  auto writer = stored ? write_back_at({parent, stored->name}) : nullptr;
  return writer && CommitPause::would_wait(*writer) ? writer : nullptr;
}

}  // namespace cframefs::fs
