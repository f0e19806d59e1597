#include "fs/tree/held_directories.h"

#include <cerrno>
#include <vector>

#include <fcntl.h>

namespace cframefs::fs {
namespace {

// Deeper than any program can walk.
constexpr std::size_t kDeepest = 100'000;

}  // namespace

void HeldDirectories::start(HeldDirectory root, std::size_t most) {
  root_ = std::move(root);
  most_ = most;
  if (const auto status = files_.status(root_->handle())) device_ = status->st_dev;
}

HeldDirectory HeldDirectories::find(NodeId node) {
  if (node == kRootNode) return root_;
  codec::MutexLock lock(mutex_);
  const auto found = by_node_.find(node);
  if (found == by_node_.end()) return nullptr;
  held_.splice(held_.begin(), held_, found->second);
  return found->second->directory;
}

void HeldDirectories::keep(NodeId node, const HeldDirectory& directory) {
  if (reserve_.is_kept_back(files_, directory->handle())) return;
  Held oldest;
  {
    codec::MutexLock lock(mutex_);
    if (by_node_.contains(node)) return;
    held_.push_front({node, directory});
    try {
      by_node_.emplace(node, held_.begin());
    } catch (...) {
      held_.pop_front();
      throw;
    }
    handles_.erase(node);
    if (held_.size() <= most_) return;
    oldest = std::move(held_.back());
    by_node_.erase(oldest.node);
    held_.pop_back();
  }
  let_go(oldest);
}

void HeldDirectories::release_unused() {
  std::list<Held> unused;
  {
    codec::MutexLock lock(mutex_);
    for (auto next = held_.begin(); next != held_.end();) {
      const auto held = next++;
      if (held->directory.use_count() > 1) continue;
      by_node_.erase(held->node);
      unused.splice(unused.end(), held_, held);
    }
  }
  for (const Held& held : unused)
    let_go(held);
}

void HeldDirectories::let_go(const Held& oldest) {
  if (!opens_handles_) return;
  auto handle = files_.handle_of(oldest.directory->handle());
  if (!handle) return;
  codec::MutexLock lock(mutex_);
  if (!by_node_.contains(oldest.node)) handles_[oldest.node] = std::move(*handle);
}

codec::Result<HeldDirectory> HeldDirectories::open_by_handle(NodeId node) {
  Handle handle;
  {
    codec::MutexLock lock(mutex_);
    const auto found = handles_.find(node);
    if (found == handles_.end() || !opens_handles_) return HeldDirectory();
    handle = found->second;
  }
  auto fd = files_.open_handle(root_->handle(), handle, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  // The directory is gone, or a FUSE filesystem has evicted it: it may still be at its last known path.
  if (!fd && fd.error().sys == ESTALE) return HeldDirectory();
  if (!fd) {
    if (fd.error().sys != EPERM && fd.error().sys != EOPNOTSUPP) return codec::Failure(fd.error());
    opens_handles_ = false;
    return HeldDirectory();
  }
  auto directory = frame::share_descriptor(files_, *fd);
  const auto known = nodes_.find(node);
  const auto status = files_.status(directory->handle());
  if (!status) return codec::Failure(status.error());
  if (!known || !known->is_at(*status)) return codec::stale("its file handle refers to another directory");
  keep(node, directory);
  return directory;
}

void HeldDirectories::forget(NodeId node) {
  HeldDirectory gone;  // closed without the lock
  codec::MutexLock lock(mutex_);
  handles_.erase(node);
  const auto found = by_node_.find(node);
  if (found == by_node_.end()) return;
  gone = std::move(found->second->directory);
  held_.erase(found->second);
  by_node_.erase(found);
}

codec::Result<HeldDirectory> HeldDirectories::open_beneath(const frame::Descriptor& parent, const NodePlace& place) {
  auto fd = files_.open_at(parent.handle(), place.name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!fd && leads_elsewhere(fd.error())) return codec::stale("the directory was moved or removed");
  if (!fd) return codec::Failure(fd.error());
  auto directory = frame::share_descriptor(files_, *fd);
  auto status = files_.status(directory->handle());
  if (!status) return codec::Failure(status.error());
  if (!place.node->is_at(*status)) return codec::stale("another directory has replaced it");
  return directory;
}

codec::Result<HeldDirectory> HeldDirectories::open(NodeId node) {
  if (HeldDirectory held = find(node)) return held;
  auto by_handle = open_by_handle(node);
  if (!by_handle || *by_handle) return by_handle;
  // Walk down from the nearest held ancestor. A loop, because trees may be deep.
  std::vector<NodePlace> way;
  HeldDirectory parent;
  for (NodeId at = node; !parent; parent = find(at)) {
    // A directory cannot be its own ancestor on disk, but two stale entries of the node table may form a cycle.
    if (way.size() > kDeepest) return codec::stale("the known paths of its parent directories form a cycle");
    auto place = nodes_.place_of(at);
    if (!place) return codec::Failure(place.error());
    at = place->parent;
    way.push_back(std::move(*place));
  }
  for (; !way.empty(); way.pop_back()) {
    const NodePlace& step = way.back();
    auto directory = open_beneath(*parent, step);
    if (!directory) return directory;
    if (step.node->device == device_) keep(step.node->id, *directory);
    parent = std::move(*directory);
  }
  return parent;
}

}  // namespace cframefs::fs
