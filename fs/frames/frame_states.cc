#include "fs/frames/frame_states.h"

#include <optional>
#include <utility>

#include "frame/open/open.h"

namespace cframefs::fs {
codec::Result<std::shared_ptr<const FrameSnapshot>> FrameStates::snapshot_of(
    Node& node, const std::shared_ptr<const frame::Descriptor>& file) {
  auto identity = mount_.tree.identity(file->handle(), node.kind);
  if (!identity) return codec::Failure(identity.error());
  std::shared_ptr<const FrameSnapshot> last;
  {
    codec::MutexLock lock(node.mutex);
    last = node.current.lock();
    if (last && !last->identity().racy && last->identity() == *identity) return last;
  }
  // If only timestamps differ, keep the decoded blocks, whose decoding may have taken long.
  if (last && last->has_same_content(*identity)) {
    const auto after = mount_.tree.identity(file->handle(), node.kind);
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
    // Another thread opened it first. If that state is racy, its snapshot may be older than this one.
    if (!current->identity().racy) return current;
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

frame::OpenAttempt<FrameStates::State> FrameStates::attempt_snapshot(
    Node& node, const std::shared_ptr<const frame::Descriptor>& file, const std::string& path,
    std::optional<frame::FileVersion>& steady_version) {
  steady_version.reset();
  auto before = mount_.tree.identity(file->handle(), node.kind);
  if (!before) return {codec::Failure(before.error())};
  const auto record = std::make_shared<frame::ReadRecord>();
  auto attempt = frame::attempt_container(mount_.files, file, mount_.index_cache, mount_.tree.frame_begin(),
                                          mount_.options.old_bitshuffle, record);
  auto& container = attempt.opened;
  auto view = container ? view_of(std::move(*container), path)
                        : codec::Result<std::shared_ptr<const frame::FlatView>>(codec::Failure(container.error()));
  auto after = mount_.tree.identity(file->handle(), node.kind);
  if (!after) return {codec::Failure(after.error())};
  const bool is_steady = *before == *after;
  if (is_steady) steady_version = *after;
  const bool is_changing = attempt.is_changing || !is_steady || (!view && frame::changed_recently(after->modified));
  if (view && is_steady) {
    return {std::make_shared<const FrameSnapshot>(next_snapshot(), *after, std::move(*view), path,
                                                  mount_.read_path.cache(), record),
            is_changing};
  }
  codec::Error error = view ? codec::stale("the file kept changing while it was opened").value() : view.error();
  if (error.path.empty()) error.path = path;
  return {codec::Failure(std::move(error)), is_changing};
}

codec::Result<FrameStates::State> FrameStates::open_snapshot(Node& node,
                                                             const std::shared_ptr<const frame::Descriptor>& file) {
  const std::string path = node_files_.path_of(node.id);
  std::optional<frame::FileVersion> steady_version;
  auto opened = frame::open_in_attempts([&] { return attempt_snapshot(node, file, path, steady_version); });
  if (opened) {
    note_metalayer_damage((*opened)->container(), path);
    return opened;
  }
  // A file that keeps changing is not damaged; the caller retries. Between two writes of a program that appends, a
  // frame looks damaged: log only a state that has lasted.
  const bool lasts = steady_version && !steady_version->racy;
  if (opened.error().kind != codec::ErrorKind::stale && lasts && !is_known_damaged(node, *steady_version))
    mount_.once.error(opened.error());
  return opened;
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
  auto identity = mount_.tree.identity(file->handle(), handle.node->kind);
  if (!identity) return codec::Failure(identity.error());
  // Racy timestamps may hide a change: each read reopens the file, but the check after it does not.
  const bool is_same = kind == Look::after_read && snapshot->identity() == *identity && identity->racy;
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
