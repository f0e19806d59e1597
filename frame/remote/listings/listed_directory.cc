#include "frame/remote/listings/listed_directory.h"

#include <algorithm>
#include <tuple>

namespace cframefs::frame {

const ListedEntry* ListedDirectory::find(const std::string& name) const {
  const auto found =
      std::lower_bound(entries.begin(), entries.end(), name,
                       [](const ListedEntry& entry, const std::string& wanted) { return entry.name < wanted; });
  return found == entries.end() || found->name != name ? nullptr : &*found;
}

std::size_t merge_names(std::vector<ListedEntry>& entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const ListedEntry& a, const ListedEntry& b) {
    return std::tie(a.name, b.is_directory) < std::tie(b.name, a.is_directory);
  });
  std::size_t hidden = 0;
  const auto same_name = [&](const ListedEntry& kept, const ListedEntry& other) {
    if (kept.name != other.name) return false;
    if (kept.is_directory && !other.is_directory) ++hidden;
    return true;
  };
  entries.erase(std::unique(entries.begin(), entries.end(), same_name), entries.end());
  return hidden;
}

}  // namespace cframefs::frame
