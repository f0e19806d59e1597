#include "fs/frames/frame_states.h"

#include <chrono>
#include <thread>
#include <utility>

#include "frame/base/elapsed.h"

namespace cframefs::fs {
namespace {

// Attempts to open a file that another program is changing, before it counts as damaged.
constexpr int kOpenAttempts = 20;
constexpr auto kOpenPause = std::chrono::milliseconds(1);

bool changed_just_now(const frame::FileVersion& identity) {
  return frame::age_ns(identity.modified) < 2'000'000'000;
}

}  // namespace

codec::Result<std::shared_ptr<const FrameSnapshot>> FrameStates::snapshot_of(
    Node& node, const std::shared_ptr<const frame::Descriptor>& file) {
  auto identity = mount_.tree.identity(file->fd(), node.kind);
  if (!identity) return codec::Failure(identity.error());
  std::shared_ptr<const FrameSnapshot> last;
  {
    codec::MutexLock lock(node.mutex);
    last = node.current.lock();
    if (last && last->identity().settled && last->identity() == *identity) return last;
  }
  // If only timestamps differ, keep the decoded blocks, whose decoding may have taken long.
  if (last && last->has_same_content(*identity)) {
    const auto after = mount_.tree.identity(file->fd(), node.kind);
    if (after && *after == *identity) {
      auto same = last->with_identity(*identity);
      codec::MutexLock lock(node.mutex);
      node.current = same;
      return same;
    }
  }
  auto opened = open_snapshot(node, file);
  if (!opened) return opened;
  codec::MutexLock lock(node.mutex);
  if (auto current = node.current.lock(); current && current->identity() == (*opened)->identity()) {
    // Another thread opened it first. Unless that state is settled, its snapshot may be older than this one.
    if (current->identity().settled) return current;
  }
  node.current = *opened;
  return opened;
}

codec::Result<std::shared_ptr<const frame::FlatView>> FrameStates::view_of(
    std::shared_ptr<const frame::Container> container, const std::string& path) const {
  return frame::make_view(std::move(container), mount_.options.b2nd, NameMapper::has_array_suffix(path));
}

bool FrameStates::is_known_damaged(Node& node, const frame::FileVersion& identity) {
  codec::MutexLock lock(node.mutex);
  return node.known.damage && node.known.identity == identity;
}

codec::Result<std::shared_ptr<const FrameSnapshot>> FrameStates::open_snapshot(
    Node& node, const std::shared_ptr<const frame::Descriptor>& file) {
  const std::string path = node_files_.path_of(node.id);
  for (int attempt = 1;; ++attempt) {
    auto before = mount_.tree.identity(file->fd(), node.kind);
    if (!before) return codec::Failure(before.error());
    const auto record = std::make_shared<frame::ReadRecord>();
    auto container = frame::open_container(mount_.files, file, mount_.index_cache, mount_.tree.frame_begin(),
                                           mount_.options.old_bitshuffle, record);
    auto view = container ? view_of(std::move(*container), path)
                          : codec::Result<std::shared_ptr<const frame::FlatView>>(codec::Failure(container.error()));
    auto after = mount_.tree.identity(file->fd(), node.kind);
    if (!after) return codec::Failure(after.error());
    const bool steady = *before == *after;
    if (view && steady) {
      note_metalayer_damage((*view)->container(), path);
      return std::make_shared<const FrameSnapshot>(next_snapshot(), *after, std::move(*view), path,
                                                   mount_.read_path.cache(), record);
    }
    // A frame that another process appends to cannot be opened between two of its writes.
    const bool settled = steady && !changed_just_now(*after);
    if (attempt == kOpenAttempts || settled) {
      codec::Error error = view ? codec::stale("the file kept changing while it was opened").value() : view.error();
      if (error.path.empty()) error.path = path;
      // A file that keeps changing is not damaged; the caller retries. Between two writes of a program that appends, a
      // frame looks damaged: log only a state that has lasted.
      const bool lasts = steady && after->settled;
      if (error.kind != codec::ErrorKind::stale && lasts && !is_known_damaged(node, *after)) mount_.once.error(error);
      return codec::Failure(std::move(error));
    }
    std::this_thread::sleep_for(kOpenPause);
  }
}

void FrameStates::note_metalayer_damage(const frame::Container& container, const std::string& path) {
  for (const auto* damage : {&container.metalayer_damage(), &container.vlmetalayer_damage()}) {
    if (!*damage) continue;
    codec::Error error = **damage;
    error.path = path;
    mount_.once.error(error);
  }
}

codec::Result<std::shared_ptr<const FrameSnapshot>> FrameStates::current_snapshot(FileHandle& handle, Look kind) {
  std::shared_ptr<const FrameSnapshot> snapshot;
  {
    codec::MutexLock lock(handle.mutex);
    snapshot = handle.snapshot;
  }
  const auto file = handle.frame->file();
  const PageCacheState::Look look = handle.node->pages.begin_look();
  auto identity = mount_.tree.identity(file->fd(), handle.node->kind);
  if (!identity) return codec::Failure(identity.error());
  // Timestamps that have not settled may hide a change: each read reopens the file, but the check after it does not.
  const bool is_same = kind == Look::after_read && snapshot->identity() == *identity && !identity->settled;
  if (is_same || snapshot->identity().still_matches(*identity)) return snapshot;
  auto fresh = snapshot_of(*handle.node, file);
  if (!fresh) return fresh;
  // A state with unsettled timestamps is reopened even if it is unchanged: count changes only.
  if (snapshot->identity() != *identity && !handle.node->pages.is_own(*identity))
    mount_.statistics.backing_changes.fetch_add(1, std::memory_order_relaxed);
  // The kernel's pages are of the older state. This thread must not wait for the drop, because the pages of its own
  // request are locked until it answers.
  pages_.carry_out(handle.node->pages.seen_by_read(look, *identity), handle.node->id);
  codec::MutexLock lock(handle.mutex);
  handle.snapshot = *fresh;
  return fresh;
}

}  // namespace cframefs::fs
