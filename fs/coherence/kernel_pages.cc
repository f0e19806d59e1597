#include "fs/coherence/kernel_pages.h"

#include <algorithm>
#include <optional>
#include <string>

#include "frame/io/system_version.h"

namespace cframefs::fs {
namespace {

using Lane = Notifier::Lane;

// How long an answer waits until the kernel has dropped the pages of an older state of the same file. The drop does not
// wait for pages of reads in progress, but for those of a write, or of a request that no thread has taken yet.
constexpr std::chrono::milliseconds kDropTimeout{250};

/// Returns whether a change by the mount alone can have made one version of the other.
bool may_be_ours(KernelPages::SelfChange what, const frame::FileVersion& before, frame::FileVersion after) {
  if (what == KernelPages::SelfChange::content) return true;
  if (what == KernelPages::SelfChange::times) after.mtime_ns = before.mtime_ns;
  return after.has_content_of(before);
}

}  // namespace

void KernelPages::enter(FileHandle& handle, const PageCacheState::Opening& opening) {
  const PageCacheState::Opened opened = handle.node->pages.opened(opening);
  handle.counted = true;
  handle.opened_state = opening.file;
  handle.direct = opened.direct;
  handle.keep_pages = opened.keep_pages;
  handle.same_state = opened.same_state;
  handle.open_unconfirmed = !opened.keep_pages;
}

void KernelPages::confirm_open(FileHandle& handle) {
  if (!handle.open_unconfirmed.load(std::memory_order_relaxed)) return;
  if (handle.open_unconfirmed.exchange(false)) handle.node->pages.open_confirmed();
}

bool KernelPages::may_be_short(Node& node, ToldSize::Read read, std::uint64_t length) {
  read.inode = node.id;
  read.is_page = length <= page_size_;
  return node.pages.end_of_file().may_be_short(read, notices_.kernel().gate());
}

void KernelPages::leave(FileHandle& handle) {
  if (!handle.counted) return;
  confirm_open(handle);
  carry_out(handle.node->pages.closed(handle.writable), handle.node->id);
}

void KernelPages::note_written(FileHandle& handle, std::uint64_t at, std::uint64_t place, std::uint64_t length) {
  // If an append behind the mount has moved the end of the file, the kernel has put the bytes into the wrong pages.
  const bool moved = place != at;
  const bool drops = length > 0 && (moved || handle.node->pages.must_drop_after_write(handle.open_unconfirmed));
  confirm_open(handle);
  if (!drops) return;
  const std::uint64_t begin = std::min(at, place);
  const std::uint64_t end = std::max(at, place) + length;
  const auto forget = [this, id = handle.node->id, begin, end] {
    notices_.kernel().forget_range(id, begin, end - begin);
  };
  until_there_is_memory(
      [&] { notices_.post(Lane::ranges, handle.node->id, std::to_string(begin) + "-" + std::to_string(end), forget); });
}

codec::Result<void> KernelPages::with_self_change(Node& node, SelfChange what,
                                                  const std::function<codec::Result<struct stat>()>& status,
                                                  const std::function<codec::Result<void>()>& change) {
  const auto identity_of = [](const codec::Result<struct stat>& file) {
    return file ? std::optional(frame::version_of(*file)) : std::nullopt;
  };
  codec::MutexLock own(node.change_mutex);
  auto before = status();
  if (!before) return codec::Failure(before.error());
  const auto state_before = identity_of(before);
  node.pages.begin_change();
  auto done = change();
  auto state_after = identity_of(status());
  if (state_after && !may_be_ours(what, *state_before, *state_after)) state_after.reset();
  carry_out(node.pages.end_change(state_before, state_after), node.id);
  return done;
}

void KernelPages::carry_out(PageCacheState::Drop drop, NodeId id) {
  if (drop == PageCacheState::Drop::nothing) return;
  if (const auto node = nodes_.find(id)) drop_pages(node);
}

void KernelPages::drop_pages(const std::shared_ptr<Node>& node) {
  const NodeId id = node->id;
  // Attributes come first if the notification of an earlier change waits for pages.
  if (notices_.is_busy(Lane::pages, id))
    notices_.post(Lane::attributes, id, "", [this, id] { notices_.kernel().forget_attributes(id); });
  notices_.post(Lane::pages, id, "", [this, node] { drop_around_reads(node); });
}

void KernelPages::drop_around_reads(const std::shared_ptr<Node>& node) {
  const NodeId id = node->id;
  const std::uint64_t drops = node->pages.drops().requested();
  const auto gaps = node->reads.gaps();
  if (ReadsUnderWay::is_all(gaps)) {
    notices_.kernel().invalidate_inode(id);
  } else {
    notices_.kernel().forget_attributes(id);
    for (const auto& gap : gaps)
      notices_.kernel().forget_range(id, gap.begin, gap.end - gap.begin);
    notices_.post(Lane::rest, id, "", [this, id] { notices_.kernel().invalidate_inode(id); });
  }
  node->pages.drops().carried_out(drops);
}

void KernelPages::wait_for_drop(const Node& node) {
  static_cast<void>(notices_.wait(Lane::pages, node.id, kDropTimeout));
  // The kernel ignores an answer that crosses a notification.
  static_cast<void>(notices_.wait(Lane::attributes, node.id, kDropTimeout));
}

void KernelPages::drop_head(const Node& node, const frame::FlatView& view) {
  const auto shared = nodes_.find(node.id);
  if (!shared) return;
  ++shared->stale_preambles;
  notices_.post(Lane::ranges, node.id, "head", [this, shared, length = view.head().size()] {
    const int heads = shared->stale_preambles;
    notices_.kernel().forget_range(shared->id, 0, length);
    shared->stale_preambles -= heads;
  });
}

void KernelPages::note_new_head(const Node& node, WriteBack& writer, bool may_wait) {
  if (!writer.take_new_head()) return;
  drop_head(node, writer.snapshot()->view());
  if (may_wait) static_cast<void>(is_head_dropped(node, kDropTimeout));
}

bool KernelPages::is_head_dropped(const Node& node, std::chrono::milliseconds patience) {
  return node.stale_preambles == 0 || notices_.wait(Lane::ranges, node.id, patience);
}

}  // namespace cframefs::fs
