// Invalidation of what the kernel has cached: after changes behind the mount, and after changes by the mount itself
// that leave pages old (fs/doc/page-cache.md). All notifications go through the notifier.
#include <algorithm>
#include <chrono>
#include <utility>

#include "fs/filesystem.h"
#include "fs/util/no_memory.h"

namespace cframefs::fs {
namespace {

using Lane = Notifier::Lane;

// How long an answer waits until the kernel has dropped the pages of an older state of the same file. The drop does not
// wait for pages of reads in progress, but for those of a write, or of a request that no thread has taken yet.
constexpr std::chrono::milliseconds kDropTimeout{250};

}  // namespace

void Filesystem::notify(Lane lane, NodeId id, const std::string& what, const Notifier::Task& task) {
  until_there_is_memory([&] { notifier_.post(lane, id, what, task); });
}

void Filesystem::forget_directory(NodeId directory) {
  notify(Lane::attributes, directory, "", [this, directory] { kernel_->invalidate_inode(directory); });
}

void Filesystem::changed(const Watcher::Change& change) {
  if ((change.everything || change.entry) && keeps_names_)
    notify(Lane::attributes, 0, "", [this] { kernel_->invalidate_all_entries(); });
  if (change.everything) return notify(Lane::changes, 0, "", [this] { lost_track(); });
  const auto directory = nodes_.find(change.directory);
  if (directory && directory->kind == EntryKind::sparse_frame) {
    // The kernel knows no names in a sparse frame, and the mount's own commits change no byte that the kernel holds.
    return look_into_change(directory);
  }
  // The directory's own times have changed too; a single-file root is its directory.
  forget_directory(change.directory);
  if (change.name.empty()) return;
  const DirEntry place{change.directory, change.name};
  bool is_directory = false;
  for (const auto& node : nodes_.at_place(place.directory, place.name)) {
    if (node->kind == EntryKind::directory) {
      is_directory = true;
    } else {
      look_into_change(node);
    }
  }
  // The kernel looks up names of files each time, or was just told to forget them.
  if (change.entry && is_directory)
    notify(Lane::names, place.directory, place.name, [this, place] { forget_moved(place); });
}

void Filesystem::lost_track() {
  for (const NodeId id : nodes_.all()) {
    const auto node = nodes_.find(id);
    if (!node) continue;
    node->pages.lost_track();
    bool is_open = false;
    {
      codec::MutexLock lock(node->mutex);
      const auto lives = [](const auto& file) { return !file.expired(); };
      is_open = lives(node->open_frame) || std::any_of(node->opened.begin(), node->opened.end(), lives);
    }
    // A file that is not open has no read for which the notification could wait.
    if (is_open) {
      drop_pages(node);
    } else {
      kernel_->invalidate_inode(id);
    }
  }
}

void Filesystem::look_into_change(const std::shared_ptr<Node>& node) {
  notify(Lane::changes, node->id, "", [this, node] {
    if (is_changed_behind(*node)) {
      drop_pages(node);
    } else if (options_.attr_timeout && node->kind != EntryKind::sparse_frame) {
      kernel_->forget_attributes(node->id);
    }
  });
}

void Filesystem::forget_moved(const DirEntry& place) {
  // The kernel knows of renames through the mount. It must not be notified of them: the notification waits for the
  // request that is changing the directory, which never ends if the daemon is killed during it.
  for (const auto& node : nodes_.at_place(place.directory, place.name)) {
    if (node->kind == EntryKind::directory && !lies_at(*node, place))
      kernel_->invalidate_entry(place.directory, NameMapper::in_mount(place.name));
  }
}

bool Filesystem::lies_at(Node& node, const DirEntry& at) {
  // Under changes_, because a rename through the mount changes the disk before the table.
  codec::MutexLock lock(changes_);
  const auto places = nodes_.at_place(at.directory, at.name);
  const bool moved =
      std::none_of(places.begin(), places.end(), [&](const auto& there) { return there->id == node.id; });
  if (moved) return true;
  const auto place = nodes_.place_of(node.id);
  if (!place) return false;
  const auto directory = directories_.open(place->parent);
  if (!directory) return false;
  const auto status = files_.status_at((*directory)->fd(), place->name);
  return status && node.is_at(*status);
}

void Filesystem::drop_pages(const std::shared_ptr<Node>& node) {
  const NodeId id = node->id;
  // Attributes come first if the notification of an earlier change waits for pages.
  if (notifier_.is_busy(Lane::pages, id))
    notify(Lane::attributes, id, "", [this, id] { kernel_->forget_attributes(id); });
  notify(Lane::pages, id, "", [this, node] { drop_around_reads(node); });
}

void Filesystem::drop_around_reads(const std::shared_ptr<Node>& node) {
  const NodeId id = node->id;
  const std::uint64_t drops = node->pages.drops();
  const auto gaps = node->reads.gaps();
  if (ReadsUnderWay::is_all(gaps)) {
    kernel_->invalidate_inode(id);
  } else {
    kernel_->forget_attributes(id);
    for (const auto& gap : gaps)
      kernel_->forget_range(id, gap.begin, gap.end - gap.begin);
    notify(Lane::rest, id, "", [this, id] { kernel_->invalidate_inode(id); });
  }
  node->pages.dropped(drops);
}

void Filesystem::wait_for_drop(const Node& node) {
  static_cast<void>(notifier_.wait(Lane::pages, node.id, kDropTimeout));
}

void Filesystem::carry_out(PageCacheState::Drop drop, NodeId id) {
  if (drop == PageCacheState::Drop::nothing) return;
  if (const auto node = nodes_.find(id)) drop_pages(node);
}

void Filesystem::drop_head(const Node& node, const frame::FlatView& view) {
  const auto shared = nodes_.find(node.id);
  if (!shared) return;
  ++shared->stale_preambles;
  notify(Lane::ranges, node.id, "head", [this, shared, length = view.head().size()] {
    const int heads = shared->stale_preambles;
    kernel_->forget_range(shared->id, 0, length);
    shared->stale_preambles -= heads;
  });
}

void Filesystem::note_new_head(const Node& node, WriteBack& writer, bool may_wait) {
  if (!writer.take_new_head()) return;
  drop_head(node, writer.snapshot()->view());
  if (may_wait) static_cast<void>(is_head_dropped(node, kDropTimeout));
}

bool Filesystem::is_head_dropped(const Node& node, std::chrono::milliseconds patience) {
  return node.stale_preambles == 0 || notifier_.wait(Lane::ranges, node.id, patience);
}

void Filesystem::enter_page_cache(FileHandle& handle, const PageCacheState::Opening& opening) {
  const PageCacheState::Opened opened = handle.node->pages.opened(opening);
  handle.counted = true;
  handle.direct = opened.direct;
  handle.keep_pages = opened.keep_pages;
  handle.open_unconfirmed = !opened.keep_pages;
}

void Filesystem::confirm_open(FileHandle& handle) {
  if (!handle.open_unconfirmed.load(std::memory_order_relaxed)) return;
  if (handle.open_unconfirmed.exchange(false)) handle.node->pages.open_confirmed();
}

void Filesystem::leave_page_cache(FileHandle& handle) {
  if (!handle.counted) return;
  confirm_open(handle);
  carry_out(handle.node->pages.closed(handle.writable), handle.node->id);
}

void Filesystem::note_written(FileHandle& handle, std::uint64_t at, std::uint64_t place, std::uint64_t length) {
  // If an append behind the mount has moved the end of the file, the kernel has put the bytes into the wrong pages.
  const bool moved = place != at;
  const bool drops = length > 0 && (moved || handle.node->pages.must_drop_after_write(handle.open_unconfirmed));
  confirm_open(handle);
  if (!drops) return;
  const std::uint64_t begin = std::min(at, place);
  const std::uint64_t end = std::max(at, place) + length;
  notify(Lane::ranges, handle.node->id, std::to_string(begin) + "-" + std::to_string(end),
         [this, id = handle.node->id, begin, end] { kernel_->forget_range(id, begin, end - begin); });
}

}  // namespace cframefs::fs
