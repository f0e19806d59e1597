#include "fs/tree/watched_names.h"

#include <limits>
#include <random>

#include "frame/base/xxh3.h"
#include "fs/tree/name_mapping.h"

namespace cframefs::fs {
namespace {

// A listing costs about as much for four names as one look at the disk.
constexpr std::size_t kNamesForALook = 4;
// Times as many looks until a directory is listed that could not be.
constexpr std::size_t kListingBackoff = 8;
constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32U | device();
}

}  // namespace

WatchedNames::WatchedNames() : seed_(random_seed()) {}

std::uint64_t WatchedNames::digest(std::string_view name) const {
  return frame::xxh3_of_text(name, seed_);
}

void WatchedNames::follow(std::uint64_t directory) {
  codec::MutexLock lock(mutex_);
  directories_.try_emplace(directory);
}

void WatchedNames::forget(std::uint64_t directory) {
  codec::MutexLock lock(mutex_);
  const auto found = directories_.find(directory);
  if (found == directories_.end()) return;
  drop_names(found->second);
  directories_.erase(found);
}

void WatchedNames::drop_names(Directory& directory) {
  names_ -= directory.names.size();
  std::unordered_set<std::uint64_t>().swap(directory.names);
  std::unordered_map<std::uint64_t, std::uint32_t>().swap(directory.stems);
  directory.state = State::counted;
  directory.looks = 0;
  directory.vanished = 0;
}

void WatchedNames::add(Directory& directory, std::string_view name) {
  // Also if another name has this digest.
  std::uint32_t& forms = directory.stems[digest(NameMapper::without_suffixes(name))];
  if (!directory.names.insert(digest(name)).second) return;
  ++forms;
  if (++names_ <= kMostNames) return;
  drop_names(directory);
  directory.worthwhile = kNever;
}

bool WatchedNames::follows(std::uint64_t directory) const {
  codec::MutexLock lock(mutex_);
  return directories_.contains(directory);
}

const WatchedNames::Directory* WatchedNames::listed(std::uint64_t directory) const {
  const auto found = directories_.find(directory);
  return found != directories_.end() && found->second.state == State::listed ? &found->second : nullptr;
}

bool WatchedNames::is_listed(std::uint64_t directory) const {
  codec::MutexLock lock(mutex_);
  return listed(directory) != nullptr;
}

bool WatchedNames::lacks(std::uint64_t directory, std::string_view name) const {
  if (NameMapper::is_temporary(name)) return false;
  const std::uint64_t wanted = digest(name);
  codec::MutexLock lock(mutex_);
  const Directory* const all = listed(directory);
  return all != nullptr && !all->names.contains(wanted);
}

bool WatchedNames::lacks_forms_of(std::uint64_t directory, std::string_view shown) const {
  if (NameMapper::is_reserved(shown)) return false;
  const std::uint64_t wanted = digest(NameMapper::without_suffixes(shown));
  codec::MutexLock lock(mutex_);
  const Directory* const all = listed(directory);
  return all != nullptr && !all->stems.contains(wanted);
}

bool WatchedNames::is_only_form(std::uint64_t directory, std::string_view name) const {
  if (NameMapper::is_reserved(name)) return false;
  const std::uint64_t stem = digest(NameMapper::without_suffixes(name));
  codec::MutexLock lock(mutex_);
  const Directory* const all = listed(directory);
  if (all == nullptr || !all->names.contains(digest(name))) return false;
  const auto forms = all->stems.find(stem);
  return forms != all->stems.end() && forms->second == 1;
}

std::uint64_t WatchedNames::begin_listing(std::uint64_t directory, std::size_t looks) {
  codec::MutexLock lock(mutex_);
  const auto found = directories_.find(directory);
  if (found == directories_.end() || found->second.state != State::counted) return 0;
  Directory& counted = found->second;
  counted.looks += looks;
  if (counted.looks < counted.worthwhile) return 0;
  counted.state = State::listing;
  counted.listing = ++last_listing_;
  return counted.listing;
}

void WatchedNames::end_listing(std::uint64_t directory, std::uint64_t number, const std::vector<std::string>* names) {
  codec::MutexLock lock(mutex_);
  const auto found = directories_.find(directory);
  // Otherwise the directory was forgotten, or events were lost, during the listing.
  if (found == directories_.end() || found->second.listing != number || found->second.state != State::listing) return;
  Directory& listed = found->second;
  if (names == nullptr || names_ + names->size() > kMostNames) {
    drop_names(listed);
    listed.worthwhile = names == nullptr ? kListingBackoff * listed.worthwhile : kNever;
    return;
  }
  for (const std::string& name : *names) {
    if (!NameMapper::is_temporary(name)) add(listed, name);
  }
  listed.worthwhile = kFewLooks + names->size() / kNamesForALook;
  listed.state = State::listed;
}

void WatchedNames::appeared(std::uint64_t directory, std::string_view name) {
  codec::MutexLock lock(mutex_);
  const auto found = directories_.find(directory);
  if (found != directories_.end() && found->second.state != State::counted) add(found->second, name);
}

void WatchedNames::vanished(std::uint64_t directory) {
  codec::MutexLock lock(mutex_);
  const auto found = directories_.find(directory);
  if (found == directories_.end() || found->second.state == State::counted) return;
  Directory& changed = found->second;
  // A directory that may be empty is listed again: only then may its rules for names change (chattr +F).
  if (++changed.vanished > changed.names.size() / 2) drop_names(changed);
}

void WatchedNames::lose_track() {
  codec::MutexLock lock(mutex_);
  for (auto& [id, directory] : directories_)
    drop_names(directory);
}

}  // namespace cframefs::fs
