#include "frame/store/store_index.h"

#include <algorithm>

namespace cframefs::frame {

namespace {

constexpr char kSeparator = '\0';
constexpr char kBehindSeparator = '\1';
/// Bytes of a leaf in the lists that are built for the kernel while its directory is listed.
constexpr std::uint64_t kListed = 160;

std::string to_key(std::string_view path) {
  std::string key(path);
  std::replace(key.begin(), key.end(), '/', kSeparator);
  return key;
}

std::string_view last_part(std::string_view key) {
  const std::size_t separator = key.rfind(kSeparator);
  return separator == std::string_view::npos ? key : key.substr(separator + 1);
}

}  // namespace

codec::Result<void> StoreIndex::add(std::string_view path, const Leaf& leaf, std::uint32_t order, ParseBudget& budget) {
  if (auto fits = budget.take_memory(sizeof(Leaf) + path.size() + kListed, "the names of a store"); !fits) return fits;
  if (auto may = budget.spend_work(path.size() + ParseBudget::kStep, "the names of a store"); !may) return may;
  std::string key = to_key(path);
  if (last_part(key) == std::string(kMetadataName) + ".b2f") key.resize(key.size() - 4);
  Leaf& added = leaves_.emplace_back(leaf);
  added.name_at = names_.size();
  added.name_length = static_cast<std::uint16_t>(key.size());
  added.order = order;
  names_ += key;
  return {};
}

void StoreIndex::settle() {
  std::sort(leaves_.begin(), leaves_.end(), [this](const Leaf& one, const Leaf& other) {
    const int difference = key_of(one).compare(key_of(other));
    return difference != 0 ? difference < 0 : one.order < other.order;
  });
  const auto same_key = [this](const Leaf& one, const Leaf& other) { return key_of(one) == key_of(other); };
  leaves_.erase(std::unique(leaves_.begin(), leaves_.end(), same_key), leaves_.end());
  settled_ = leaves_.size();
}

StoreIndex::Position StoreIndex::lower_bound(Position from, std::string_view key) const {
  return std::lower_bound(from, end(), key,
                          [this](const Leaf& leaf, std::string_view wanted) { return key_of(leaf) < wanted; });
}

const StoreIndex::Leaf* StoreIndex::find_key(std::string_view key) const {
  const auto found = lower_bound(begin(), key);
  return found != end() && key_of(*found) == key ? &*found : nullptr;
}

const StoreIndex::Leaf* StoreIndex::find(std::string_view path) const {
  const std::string key = to_key(path);
  return last_part(key) == kMetadataName ? nullptr : find_key(key);
}

const StoreIndex::Leaf* StoreIndex::metadata_of(std::string_view directory) const {
  std::string key = to_key(directory);
  if (!key.empty()) key += kSeparator;
  return find_key(key += kMetadataName);
}

bool StoreIndex::has_directory(std::string_view path) const {
  if (path.empty()) return true;
  const std::string prefix = to_key(path) + kSeparator;
  const auto first = lower_bound(begin(), prefix);
  return first != end() && key_of(*first).starts_with(prefix);
}

std::map<std::string, bool> StoreIndex::list(std::string_view directory) const {
  std::string prefix = to_key(directory);
  if (!prefix.empty()) prefix += kSeparator;
  std::map<std::string, bool> names;
  for (auto at = lower_bound(begin(), prefix); at != end() && key_of(*at).starts_with(prefix);) {
    const std::string_view rest = key_of(*at).substr(prefix.size());
    const std::size_t end = rest.find(kSeparator);
    if (end == std::string_view::npos) {
      if (rest != kMetadataName) names.emplace_hint(names.end(), rest, false);
      ++at;
      continue;
    }
    names[std::string(rest.substr(0, end))] = true;
    // Skip everything in that directory.
    at = lower_bound(at, prefix + std::string(rest.substr(0, end)) + kBehindSeparator);
  }
  return names;
}

std::vector<std::pair<std::string, std::uint64_t>> StoreIndex::leaves() const {
  std::vector<std::pair<std::string, std::uint64_t>> found;
  for (const Leaf& leaf : leaves_) {
    if (last_part(key_of(leaf)) != kMetadataName) found.emplace_back(path_of(leaf), leaf.size);
  }
  return found;
}

std::string StoreIndex::path_of(const Leaf& leaf) const {
  std::string path(key_of(leaf));
  std::replace(path.begin(), path.end(), kSeparator, '/');
  return path;
}

}  // namespace cframefs::frame
