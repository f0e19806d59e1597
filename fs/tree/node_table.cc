#include "fs/tree/node_table.h"

#include <algorithm>
#include <utility>

#include "fs/util/no_memory.h"

namespace cframefs::fs {
namespace {

// The memory of fewer nodes is not worth a search for free memory. When at most a quarter of many nodes is left, the
// look-ups have cost more than the search does.
constexpr std::size_t kManyNodes = 4096;
constexpr std::size_t kShrunk = 4;

}  // namespace

NodeTable::NodeTable() = default;

void NodeTable::set_root(std::shared_ptr<Node> node) {
  codec::MutexLock lock(mutex_);
  places_[kRootNode] = Place{std::move(node), 0, "", 1};
}

NodeTable::Key NodeTable::key_of(const Node& node) {
  return {node.device, node.inode.load(std::memory_order_relaxed), node.kind, node.role};
}

std::shared_ptr<Node> NodeTable::find(NodeId id) const {
  codec::MutexLock lock(mutex_);
  auto found = places_.find(id);
  return found == places_.end() ? nullptr : found->second.node;
}

std::shared_ptr<Node> NodeTable::enter(NodeId parent, const std::string& name, NodeRole role, const EntryStat& probe,
                                       bool* was_elsewhere) {
  const Key key{probe.status.st_dev, probe.entry_inode, probe.kind, role};
  codec::MutexLock lock(mutex_);
  const auto known = by_key_.find(key);
  if (known == by_key_.end()) return enter_new(key, DirEntry{parent, name}, probe);
  const NodeId id = known->second;
  Place& place = places_.at(id);
  if (place.parent != parent || place.name != name) {
    // Allocate first: nothing has changed if that fails.
    std::string new_name = name;
    by_place_.emplace(std::pair(parent, name), id);
    unplace(place, id);
    place.parent = parent;
    place.name = std::move(new_name);
    if (was_elsewhere != nullptr) *was_elsewhere = true;
  }
  ++place.lookups;
  return place.node;
}

std::uint64_t NodeTable::free_number(std::uint64_t device, std::uint64_t inode) {
  std::uint64_t number = numbers_.shown(device, inode);
  if (kept_numbers_.contains(number)) number = numbers_.substitute(device, inode);
  while (kept_numbers_.contains(number))
    number = numbers_.fresh();
  return number;
}

std::uint64_t NodeTable::number_for(std::uint64_t device, std::uint64_t inode) {
  codec::MutexLock lock(mutex_);
  return free_number(device, inode);
}

/// Inserts into all tables, or into none if an allocation fails.
std::shared_ptr<Node> NodeTable::enter_new(const Key& key, const DirEntry& at, const EntryStat& probe) {
  const NodeId id = next_;
  auto node = std::make_shared<Node>(id, std::get<NodeRole>(key), probe.kind);
  node->device = probe.status.st_dev;
  node->shown_inode = free_number(probe.status.st_dev, probe.entry_inode);
  node->inode = probe.entry_inode;
  const auto placed = by_place_.emplace(std::pair(at.directory, at.name), id);
  try {
    places_.try_emplace(id, Place{node, at.directory, at.name, 1});
    by_key_.emplace(key, id);
  } catch (...) {
    places_.erase(id);
    by_place_.erase(placed);
    throw;
  }
  const auto directory = places_.find(at.directory);
  const bool is_of_its_device = directory != places_.end() && directory->second.node->device == node->device;
  if (!is_of_its_device || node->shown_inode != numbers_.shown(node->device, node->inode)) has_other_numbers_ = true;
  ++next_;
  most_ = std::max(most_, places_.size());
  return node;
}

std::shared_ptr<Node> NodeTable::enter_again(NodeId id) {
  codec::MutexLock lock(mutex_);
  auto found = places_.find(id);
  if (found == places_.end()) return nullptr;
  ++found->second.lookups;
  return found->second.node;
}

void NodeTable::unplace(const Place& place, NodeId id) {
  auto [begin, end] = by_place_.equal_range(std::pair(place.parent, std::string_view(place.name)));
  for (auto entry = begin; entry != end; ++entry) {
    if (entry->second == id) {
      by_place_.erase(entry);
      return;
    }
  }
}

NodeTable::Forgotten NodeTable::forget(NodeId id, std::uint64_t lookups) {
  std::shared_ptr<Node> last;  // destroyed without the lock
  codec::MutexLock lock(mutex_);
  auto found = places_.find(id);
  if (found == places_.end() || id == kRootNode) return {};
  Place& place = found->second;
  if (place.lookups > lookups) {
    place.lookups -= lookups;
    return {};
  }
  unplace(place, id);
  forget_key(id);
  if (const auto kept = kept_numbers_.find(place.node->shown_inode); kept != kept_numbers_.end() && kept->second == id)
    kept_numbers_.erase(kept);
  last = std::move(place.node);
  places_.erase(found);
  return {.is_gone = true, .most_are_gone = take_shrunk()};
}

bool NodeTable::take_shrunk() {
  const std::size_t left = places_.size();
  if (most_ < kManyNodes || left > most_ / kShrunk) return false;
  most_ = left;
  try_in_memory([this]() NO_THREAD_SAFETY_ANALYSIS { places_.rehash(0); });
  return true;
}

NodeId NodeTable::parent_of(NodeId id) const {
  codec::MutexLock lock(mutex_);
  auto found = places_.find(id);
  return found == places_.end() ? 0 : found->second.parent;
}

std::vector<NodeId> NodeTable::all() const {
  codec::MutexLock lock(mutex_);
  std::vector<NodeId> ids;
  ids.reserve(places_.size());
  for (const auto& place : places_)
    ids.push_back(place.first);
  return ids;
}

codec::Result<NodePlace> NodeTable::place_of(NodeId id) const {
  codec::MutexLock lock(mutex_);
  const auto found = places_.find(id);
  if (found == places_.end() || found->second.parent == 0) return codec::stale("the file was removed or replaced");
  return NodePlace{found->second.node, found->second.parent, found->second.name};
}

codec::Result<std::string> NodeTable::path_of(NodeId id) const {
  codec::MutexLock lock(mutex_);
  std::string path;
  // A directory cannot be its own ancestor on disk, but two stale places may form a cycle: so the depth is bounded.
  for (int depth = 0; depth < 4096; ++depth) {
    auto found = places_.find(id);
    if (found == places_.end()) return codec::stale("a parent directory is unknown");
    const Place& place = found->second;
    if (!place.name.empty() && !path.empty()) path.insert(0, 1, '/');
    path.insert(0, place.name);
    if (id == kRootNode) return path;
    id = place.parent;
  }
  return codec::stale("the known paths of its parent directories form a cycle");
}

std::vector<std::shared_ptr<Node>> NodeTable::at_place(NodeId parent, const std::string& name) const {
  codec::MutexLock lock(mutex_);
  std::vector<std::shared_ptr<Node>> nodes;
  auto [begin, end] = by_place_.equal_range(std::pair(parent, std::string_view(name)));
  for (auto entry = begin; entry != end; ++entry)
    nodes.push_back(places_.at(entry->second).node);
  return nodes;
}

std::vector<std::shared_ptr<Node>> NodeTable::other_forms_of(const Node& node) const {
  codec::MutexLock lock(mutex_);
  std::vector<std::shared_ptr<Node>> nodes;
  const std::uint64_t inode = node.inode.load(std::memory_order_relaxed);
  for (auto form = by_key_.lower_bound(Key{node.device, inode, EntryKind{}, NodeRole{}});
       form != by_key_.end() && std::get<0>(form->first) == node.device && std::get<1>(form->first) == inode; ++form) {
    if (form->second != node.id) nodes.push_back(places_.at(form->second).node);
  }
  return nodes;
}

void NodeTable::forget_key(NodeId id) {
  auto found = by_key_.find(key_of(*places_.at(id).node));
  if (found != by_key_.end() && found->second == id) by_key_.erase(found);
}

NodeTable::Moves NodeTable::moves_of(const DirEntry& from, const DirEntry& to) const {
  Moves moves;
  const auto [begin, end] = by_place_.equal_range(std::pair(from.directory, std::string_view(from.name)));
  for (auto entry = begin; entry != end; ++entry) {
    moves.nodes.emplace_back(entry->second, to);
    moves.entries.emplace(std::pair(to.directory, to.name), entry->second);
  }
  return moves;
}

void NodeTable::make(Moves moves) noexcept {
  for (auto& [node, to] : moves.nodes) {
    Place& place = places_.at(node);
    unplace(place, node);
    place.parent = to.directory;
    place.name = std::move(to.name);
  }
  by_place_.merge(moves.entries);
}

void NodeTable::detach(const Moves& moves) noexcept {
  for (const auto& [node, to] : moves.nodes) {
    Place& place = places_.at(node);
    unplace(place, node);
    place.parent = 0;
    place.name.clear();
  }
}

void NodeTable::move(const DirEntry& from, const DirEntry& to) {
  codec::MutexLock lock(mutex_);
  Moves moved = moves_of(from, to);
  const Moves replaced = moves_of(to, {});
  detach(replaced);
  for (const auto& [node, nowhere] : replaced.nodes)
    forget_key(node);
  make(std::move(moved));
}

void NodeTable::exchange(const DirEntry& one, const DirEntry& other) {
  codec::MutexLock lock(mutex_);
  Moves from_one = moves_of(one, other);
  Moves from_other = moves_of(other, one);
  make(std::move(from_one));
  make(std::move(from_other));
}

void NodeTable::remove(const DirEntry& place, bool other_names) {
  codec::MutexLock lock(mutex_);
  const Moves gone = moves_of(place, {});
  detach(gone);
  for (const auto& [node, nowhere] : gone.nodes) {
    if (!other_names) forget_key(node);
  }
}

void NodeTable::retire(const EntryStat& created) {
  codec::MutexLock lock(mutex_);
  const auto gone = by_key_.find(Key{created.status.st_dev, created.entry_inode, created.kind, NodeRole::stored});
  if (gone == by_key_.end()) return;
  Place& place = places_.at(gone->second);
  unplace(place, gone->second);
  place.parent = 0;
  place.name.clear();
  place.node->inode.store(0, std::memory_order_relaxed);
  by_key_.erase(gone);
}

void NodeTable::change_inode(const Node& node, std::uint64_t inode) {
  codec::MutexLock lock(mutex_);
  auto found = places_.find(node.id);
  if (found == places_.end()) return;
  has_other_numbers_ = true;
  // Allocate first: nothing has changed if that fails.
  kept_numbers_.try_emplace(node.shown_inode, node.id);
  forget_key(node.id);
  found->second.node->inode.store(inode, std::memory_order_relaxed);
  by_key_[key_of(node)] = node.id;
}

}  // namespace cframefs::fs
