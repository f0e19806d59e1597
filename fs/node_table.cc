#include "fs/node_table.h"

#include <utility>

namespace cframefs::fs {

NodeTable::NodeTable() = default;

void NodeTable::set_root(std::shared_ptr<Node> node) {
  codec::MutexLock lock(mutex_);
  places_[kRootNode] = Place{std::move(node), 0, "", 1};
}

std::shared_ptr<Node> NodeTable::find(NodeId id) const {
  codec::MutexLock lock(mutex_);
  auto found = places_.find(id);
  return found == places_.end() ? nullptr : found->second.node;
}

std::shared_ptr<Node> NodeTable::enter(NodeId parent, const std::string& name, NodeRole role, const Probe& probe) {
  const Key key{probe.status.st_dev, probe.entry_inode, probe.kind, role};
  codec::MutexLock lock(mutex_);
  auto [known, is_new] = by_key_.try_emplace(key, next_);
  const NodeId id = known->second;
  Place& place = places_[id];
  if (is_new) {
    ++next_;
    place.node = std::make_shared<Node>(id, role, probe.kind);
    place.node->device = probe.status.st_dev;
    place.node->inode = probe.entry_inode;
  }
  ++place.lookups;
  if (is_new || place.parent != parent || place.name != name) {
    if (!is_new) unplace(place, id);
    place.parent = parent;
    place.name = name;
    by_place_.emplace(std::pair(parent, name), id);
  }
  return place.node;
}

void NodeTable::unplace(const Place& place, NodeId id) {
  auto [begin, end] = by_place_.equal_range(std::pair(place.parent, place.name));
  for (auto entry = begin; entry != end; ++entry) {
    if (entry->second == id) {
      by_place_.erase(entry);
      return;
    }
  }
}

bool NodeTable::forget(NodeId id, std::uint64_t lookups) {
  std::shared_ptr<Node> last;  // destroyed without the lock
  codec::MutexLock lock(mutex_);
  auto found = places_.find(id);
  if (found == places_.end() || id == kRootNode) return false;
  Place& place = found->second;
  if (place.lookups > lookups) {
    place.lookups -= lookups;
    return false;
  }
  unplace(place, id);
  by_key_.erase(Key{place.node->device, place.node->inode, place.node->kind, place.node->role});
  last = std::move(place.node);
  places_.erase(found);
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

codec::Result<std::string> NodeTable::path_of(NodeId id) const {
  codec::MutexLock lock(mutex_);
  std::string path;
  // A folder cannot be its own ancestor on disk, but two stale places might say so: the depth is bounded.
  for (int depth = 0; depth < 4096; ++depth) {
    auto found = places_.find(id);
    if (found == places_.end()) return codec::stale("the folder that held it is gone");
    const Place& place = found->second;
    if (!place.name.empty()) path = path.empty() ? place.name : place.name + "/" + path;
    if (id == kRootNode) return path;
    id = place.parent;
  }
  return codec::stale("its folders contain each other");
}

std::vector<std::shared_ptr<Node>> NodeTable::at_place(NodeId parent, const std::string& name) const {
  codec::MutexLock lock(mutex_);
  std::vector<std::shared_ptr<Node>> nodes;
  auto [begin, end] = by_place_.equal_range(std::pair(parent, name));
  for (auto entry = begin; entry != end; ++entry)
    nodes.push_back(places_.at(entry->second).node);
  return nodes;
}

}  // namespace cframefs::fs
