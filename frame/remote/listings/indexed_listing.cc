#include "frame/remote/listings/indexed_listing.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "frame/base/suffixes.h"

namespace cframefs::frame {
namespace {

/// Returns the begin that all names share under which a mount may show or look for one container.
std::string stem_of(const std::string& name) {
  constexpr std::string_view kNpySuffix = ".npy";
  std::string_view stem = name;
  stem.remove_suffix(container_suffix(stem).size());
  if (stem.size() > kNpySuffix.size() && stem.ends_with(kNpySuffix)) stem.remove_suffix(kNpySuffix.size());
  return std::string(stem);
}

/// Returns whether the index has the stem with any suffix of a container, or without one.
bool has_spelling(const RemoteIndex& index, const std::string& directory, const std::string& stem) {
  const std::string path = directory.empty() ? stem : directory + "/" + stem;
  const auto has = [&](const std::string& spelling) {
    return index.has_object(spelling) || index.has_directory(spelling);
  };
  return has(path) || std::any_of(kContainerSuffixes.begin(), kContainerSuffixes.end(),
                                  [&](std::string_view suffix) { return has(path + std::string(suffix)); });
}

}  // namespace

IndexedListing::IndexedListing(std::unique_ptr<Listing> live, std::unique_ptr<IndexSource> index,
                               std::chrono::seconds ttl, const Clock& now)
    : live_(std::move(live)), index_(std::move(index)), beside_(*live_, ttl, now) {}

Result<std::vector<ListedEntry>> IndexedListing::list(const std::string& directory) {
  IndexSource::Index index;
  if (index_) {
    auto current = index_->current();
    if (!current) return codec::Failure(current.error());
    index = std::move(*current);
  }
  auto entries = index && index->has_directory(directory) ? index->list(directory) : live_->list(directory);
  if (entries) std::erase_if(*entries, [](const ListedEntry& entry) { return entry.name == kIndexName; });
  return entries;
}

Result<std::optional<ListedEntry>> IndexedListing::find_unlisted(const std::string& directory,
                                                                 const std::string& name) {
  const auto index = index_ ? index_->last() : nullptr;
  if (!index || name == kIndexName || !index->has_directory(directory)) return std::optional<ListedEntry>();
  const std::string stem = stem_of(name);
  if (has_spelling(*index, directory, stem)) return std::optional<ListedEntry>();
  return beside_.find(directory, stem, name);
}

bool IndexedListing::copy_known(const std::string& path, const ObjectState& state, FileOffset at,
                                codec::ByteSpan into) const {
  const auto index = index_ ? index_->last() : nullptr;
  return index && index->copy(path, state, at, into);
}

}  // namespace cframefs::frame
