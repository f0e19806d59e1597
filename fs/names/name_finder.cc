#include "fs/names/name_finder.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fs/util/no_memory.h"

namespace cframefs::fs {

codec::Result<FoundEntry> NameFinder::find(NodeId parent, const HeldDirectory& directory,
                                           const std::string& name) const {
  WatchedNames& names = mount_.watcher.names();
  if (names.is_listed(parent)) {
    mount_.watcher.catch_up();
    if (!mount_.tree.is_single_file() && names.lacks_forms_of(parent, name)) return no_entry(name);
    return mount_.tree.find(directory->handle(), name,
                            [&](const std::string& stored) { return names.lacks(parent, stored); });
  }
  std::size_t looks = 0;
  auto found = mount_.tree.find(directory->handle(), name, [&looks](const std::string&) {
    ++looks;
    return false;
  });
  if (const std::uint64_t listing = names.begin_listing(parent, looks); listing != 0)
    list_names(parent, directory, listing);
  return found;
}

void NameFinder::list_names(NodeId parent, const HeldDirectory& directory, std::uint64_t listing) const {
  const bool done = try_in_memory([&] {
    const std::optional<std::vector<std::string>> names = mount_.tree.exact_names(directory->handle());
    mount_.watcher.names().end_listing(parent, listing, names ? &*names : nullptr);
  });
  if (!done) mount_.watcher.names().lose_track();
}

}  // namespace cframefs::fs
