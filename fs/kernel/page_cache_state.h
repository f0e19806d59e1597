// Tracks what the kernel may cache of one file (pages, size), and which version of the backing file that belongs to.
//
// The class decides whether an open may keep the cached pages, and when the kernel must drop them.
// fs/doc/page-cache.md describes the states, the transitions and the reason for each.
//
//   none --open--> held --another program's change, while handles can write--> racing --last writer closes--> held
//
// Rules: a change by the mount itself never drops pages, because a page that is dropped while a write is in flight is
// read again without that write and stays old. A change by another program always drops them. If handles can write at
// that moment, each write is followed by a drop of its own range until the last of these handles is closed.
//
// Thread safety: internally synchronised; its mutex comes before ToldSize's in the lock order. Ownership: plain values.
// The caller carries out the drop that a transition returns. Units: bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "codec/base/mutex.h"
#include "frame/io/file_version.h"
#include "fs/kernel/page_drops.h"
#include "fs/kernel/told_size.h"

namespace cframefs::fs {

class PageCacheState {
 public:
  enum class Pages : std::uint8_t {
    none,    // the kernel has no pages: no handle has been open, or the kernel reads the file itself
    held,    // pages are those of state_, with what programs have written since
    racing,  // as held, but a page may have been read before a write arrived that was in flight
  };
  /// What the caller must make the kernel drop. Opens keep no pages until drops() counts it as carried out.
  enum class Drop : std::uint8_t { nothing, pages };

  /// A marker taken before a look at the backing file. The result of the look counts only if the mount itself has not
  /// changed the file since.
  struct Look {
    std::uint64_t changes = 0;
    bool during_change = false;
    std::uint64_t size_look = 0;  // as ToldSize::begin_look()
  };

  struct Opening {
    frame::FileVersion file;
    bool writes = false;
    bool damaged = false;               // reads of this version are known to fail
    bool damage_shares_pages = false;   // a page may hold bytes of a damaged chunk and of a good one
    bool sees_foreign_changes = false;  // a write-back watches the file, so that its timestamps can be trusted
    bool has_old_head = false;          // a drop of the array header's pages is not carried out yet
  };
  struct Opened {
    bool keep_pages = false;
    bool same_state = false;  // no other version was opened since this one; attributes may be those of it
    bool direct = false;      // reads must bypass the page cache
  };

  Look begin_look() const;

  /// Records that a handle is opened on the version `opening.file`. Unless the answer keeps pages, the kernel drops
  /// them when it receives the answer.
  Opened opened(const Opening& opening);
  /// Records that a handle, opened without keeping pages, has sent a request: so the kernel has dropped them.
  void open_confirmed();
  /// Records that the kernel reads and writes the file itself through the handle that was just opened, and through all
  /// others. It has no pages then.
  void passed();
  /// Records that a handle is closed. `wrote`: the handle could write.
  Drop closed(bool wrote);

  /// Records that stat(2) reports `size` to the kernel. A kernel that sees another size than before drops the pages
  /// itself.
  Drop seen_by_stat(const Look& look, const frame::FileVersion& file, std::uint64_t size);
  /// Records that a read has found this version of the backing file.
  Drop seen_by_read(const Look& look, const frame::FileVersion& file);
  /// Records a change that the watcher has reported, after which the backing file has this version. REQUIRES: no change
  /// by the mount itself is in progress.
  Drop reported(const frame::FileVersion& file);
  /// Records that the watcher has lost events.
  void lost_track();

  /// Records that the mount itself begins to change the backing file. Until end_change() no look counts.
  void begin_change();
  /// `before`, `after`: the versions around the change; none: unknown.
  Drop end_change(const std::optional<frame::FileVersion>& before, const std::optional<frame::FileVersion>& after);
  /// Records that a commit has left the version `after`. `own`: the write-back made the change; otherwise the commit
  /// follows a change by another program.
  Drop committed(const frame::FileVersion& before, const frame::FileVersion& after, bool own);
  /// Records that bytes that programs wrote are discarded; pages may hold them. The version is unknown then.
  Drop discarded();
  /// Records a rename, which changes the timestamps and not the content.
  void renamed(const frame::FileVersion& before, const frame::FileVersion& after);

  /// Records that a read of the current version has failed.
  void note_damage();

  /// Returns the drops that the transitions have returned. The caller records there which it has carried out.
  PageDrops& drops() { return drops_; }

  /// Returns the size that the kernel was told.
  ToldSize& end_of_file() { return told_size_; }

  /// Returns whether the range of a write that has just been made must be dropped. `unconfirmed`: open_confirmed() has
  /// not been called for the handle that wrote.
  bool must_drop_after_write(bool unconfirmed) const;
  /// Returns whether the last change by the mount has left this version, and the pages belong to it.
  bool is_own(const frame::FileVersion& file) const;
  Pages pages() const;

 private:
  bool counts(const Look& look) const REQUIRES(mutex_);
  void adopt_foreign(const frame::FileVersion& file) REQUIRES(mutex_);
  Drop foreign(const frame::FileVersion& file) REQUIRES(mutex_);
  Drop drop() REQUIRES(mutex_);

  mutable codec::Mutex mutex_;
  Pages pages_ GUARDED_BY(mutex_) = Pages::none;
  frame::FileVersion state_ GUARDED_BY(mutex_);     // the version that the pages belong to; empty: unknown
  frame::FileVersion last_own_ GUARDED_BY(mutex_);  // the version that the last change by the mount has left
  bool trusted_ GUARDED_BY(mutex_) = false;         // no change within the timestamp of state_ has been missed
  bool damaged_ GUARDED_BY(mutex_) = false;         // a read of state_ has failed
  ToldSize told_size_;
  unsigned writers_ GUARDED_BY(mutex_) = 0;       // handles that can write
  unsigned unconfirmed_ GUARDED_BY(mutex_) = 0;   // handles whose open may not have dropped pages yet
  unsigned changing_ GUARDED_BY(mutex_) = 0;      // changes by the mount that are in progress
  std::uint64_t changes_ GUARDED_BY(mutex_) = 0;  // changes by the mount that have ended
  PageDrops drops_;                               // requested under the mutex
};

}  // namespace cframefs::fs
