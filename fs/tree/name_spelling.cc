#include "fs/tree/name_spelling.h"

#include <algorithm>
#include <cerrno>

#include "frame/base/suffixes.h"
#include "frame/io/system_version.h"

namespace cframefs::fs {
namespace {

// Listings kept. A program that walks a tree uses one listing after the other.
constexpr std::size_t kMaxListings = 16;

// Names that are examined until one tells whether a directory folds case. A name does not tell if it is removed during
// the look, or if the directory has it in both cases.
constexpr std::size_t kMostLooks = 16;

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
constexpr int kToLower = 'a' - 'A';

/// Returns the name with the case of each letter switched; the name itself if it has no letters.
std::string other_case(std::string name) {
  for (char& c : name) {
    if (is_upper(c)) {
      c = static_cast<char>(c + kToLower);
    } else if (is_lower(c)) {
      c = static_cast<char>(c - kToLower);
    }
  }
  return name;
}

}  // namespace

std::string NameSpelling::folded(const std::string& name) {
  std::string small = name;
  for (char& c : small) {
    if (is_upper(c)) c = static_cast<char>(c + kToLower);
  }
  return small;
}

std::string NameSpelling::with_known_suffix(const std::string& name) {
  const std::string small = folded(name);
  const std::string_view suffix = frame::container_suffix(small);
  return name.substr(0, name.size() - suffix.size()) + std::string(suffix);
}

std::optional<bool> NameSpelling::folds_case(frame::OpenFile directory, const std::string& name) {
  const auto status = files_.status(directory);
  if (!status) return std::nullopt;
  {
    codec::MutexLock lock(mutex_);
    const auto known = folding_.find(status->st_dev);
    if (known != folding_.end()) return known->second;
  }
  const std::optional<bool> found = find_out(directory, name);
  if (!found) return std::nullopt;
  codec::MutexLock lock(mutex_);
  return folding_.emplace(status->st_dev, *found).first->second;
}

std::optional<bool> NameSpelling::find_out(frame::OpenFile directory, const std::string& name) {
  const std::string other = other_case(name);
  if (other == name || !files_.status_at(directory, name)) return std::nullopt;
  if (const auto there = files_.status_at(directory, other); !there) {
    // Check that `name` has not been removed in between.
    const bool is_different = there.error().sys == ENOENT && files_.status_at(directory, name);
    return is_different ? std::optional(false) : std::nullopt;
  }
  const auto entries = files_.list(directory);
  if (!entries) return std::nullopt;
  const auto is_listed = [&](const std::string& wanted) {
    return std::any_of(entries->begin(), entries->end(), [&](const auto& entry) { return entry.name == wanted; });
  };
  return !is_listed(name) || !is_listed(other);
}

void NameSpelling::note(frame::OpenFile directory, bool folds) {
  const auto status = files_.status(directory);
  if (!status) return;
  codec::MutexLock lock(mutex_);
  folding_.emplace(status->st_dev, folds);
}

std::optional<bool> NameSpelling::folds_in(frame::OpenFile directory, const std::vector<std::string>& names) {
  std::size_t looks = 0;
  for (const std::string& name : names) {
    if (other_case(name) == name) continue;
    if (const std::optional<bool> found = find_out(directory, name)) {
      note(directory, *found);
      return found;
    }
    if (++looks == kMostLooks) break;
  }
  return std::nullopt;
}

codec::Result<std::shared_ptr<const NameSpelling::Names>> NameSpelling::names_in(frame::OpenFile directory) {
  const auto status = files_.status(directory);
  if (!status) return codec::Failure(status.error());
  const std::pair key(status->st_dev, status->st_ino);
  const auto identity = frame::version_of(*status);
  {
    codec::MutexLock lock(mutex_);
    const auto known = listings_.find(key);
    if (known != listings_.end() && !known->second.directory.racy && known->second.directory == identity)
      return known->second.names;
  }
  const auto entries = files_.list(directory);
  if (!entries) return codec::Failure(entries.error());
  auto names = std::make_shared<Names>();
  for (const frame::DirectoryEntry& entry : *entries)
    (*names)[folded(entry.name)].push_back(entry.name);
  codec::MutexLock lock(mutex_);
  if (listings_.size() >= kMaxListings && !listings_.contains(key)) listings_.erase(listings_.begin());
  listings_[key] = {identity, names};
  return std::shared_ptr<const Names>(std::move(names));
}

codec::Result<std::string> NameSpelling::of(frame::OpenFile directory, const std::string& name) {
  const auto names = names_in(directory);
  if (!names) return codec::Failure(names.error());
  const auto found = (*names)->find(folded(name));
  if (found == (*names)->end()) return name;
  const std::vector<std::string>& spellings = found->second;
  const bool is_one = std::find(spellings.begin(), spellings.end(), name) != spellings.end();
  return with_known_suffix(is_one ? name : spellings.front());
}

}  // namespace cframefs::fs
