// Keeps the kernel's pages of files as new as fs/doc/page-cache.md promises. PageCacheState decides what is old; this
// class records opens, closes and changes there, and makes the kernel drop what the decision names. It also has the
// kernel fill pages.
//
// Thread safety: all members may be called concurrently. Locks: with_self_change() holds Node::change_mutex; drops are
// posted and need no lock. Errors: none, but for those of the callbacks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "fs/coherence/kernel_notices.h"
#include "fs/coherence/page_filler.h"
#include "fs/mount/handles.h"
#include "fs/write/write_back.h"

namespace cframefs::fs {

class KernelPages {
 public:
  KernelPages(NodeTable& nodes, KernelNotices& notices, std::uint64_t page_size)
      : nodes_(nodes), notices_(notices), page_size_(page_size) {}

  /// Registers a handle that is opened on the state `opening.file`, and decides whether open(2) keeps pages.
  static void enter(FileHandle& handle, const PageCacheState::Opening& opening);
  /// Called at a request of the handle, which proves that the kernel has carried out the answer to its open.
  static void confirm_open(FileHandle& handle);
  /// As ToldSize::may_be_short(), for a read of `length` bytes.
  bool may_be_short(Node& node, ToldSize::Read read, std::uint64_t length);
  /// Called when the handle is closed.
  void leave(FileHandle& handle);
  /// Called after a write whose bytes the kernel has put into the pages at `at` and the daemon at `place`. Drops its
  /// pages if they may be older than the write.
  void note_written(FileHandle& handle, std::uint64_t at, std::uint64_t place, std::uint64_t length);
  /// What a change by the mount itself may change: all, the times, or the ctime alone. If more is different after it,
  /// another program has changed the file.
  enum class SelfChange : std::uint8_t { content, times, ctime };
  /// Makes a change by the mount itself to the file of `node`, so that valid pages in the kernel stay valid. `status`:
  /// stats the file; `change`: makes the change.
  codec::Result<void> with_self_change(Node& node, SelfChange what,
                                       const std::function<codec::Result<struct stat>()>& status,
                                       const std::function<codec::Result<void>()>& change);

  /// Makes the kernel drop pages, without waiting for it.
  void carry_out(PageCacheState::Drop drop, NodeId id);
  /// Makes the kernel drop attributes and pages of a file. Does not wait for pages of reads in progress that check the
  /// file once more.
  void drop_pages(const std::shared_ptr<Node>& node);
  /// Makes the kernel forget the attributes of a node that it knows, before it takes the caller's answer.
  void forget_attributes(NodeId id) {
    until_there_is_memory([&] { notices_.kernel().forget_attributes(id); });
  }
  /// Delays an answer that shows a state of the file until no page of an older state is left, at most 250 ms.
  void wait_for_drop(const Node& node);

  /// Sets what fills pages; nullptr: nothing does. REQUIRES: called before the mount serves.
  void fill_by(PageFiller* filler) { filler_ = filler; }
  bool can_fill() const { return filler_ != nullptr; }
  /// Has the kernel read the bytes [at, at + length) of a file, without waiting for it. `state`: as PageFiller::fill().
  /// Returns false if that cannot be requested now. REQUIRES: can_fill().
  bool fill(const Node& node, std::uint64_t state, std::uint64_t at, std::uint64_t length) {
    return filler_->fill(node.id, state, at, length);
  }

  /// Drops the kernel's pages of an array's header if a change of the number of rows has changed the header.
  /// `may_wait`: may wait for the drop, because the kernel holds no page of this request locked.
  void note_new_head(const Node& node, WriteBack& writer, bool may_wait);
  void drop_head(const Node& node, const frame::FlatView& view);
  /// Waits until the kernel has dropped an old header. Returns false if it has not within `patience`.
  bool is_head_dropped(const Node& node, std::chrono::milliseconds patience);

 private:
  /// Carries out drop_pages(), on a thread of the notifier.
  void drop_around_reads(const std::shared_ptr<Node>& node);

  NodeTable& nodes_;
  KernelNotices& notices_;
  const std::uint64_t page_size_;  // bytes
  PageFiller* filler_ = nullptr;
};

}  // namespace cframefs::fs
