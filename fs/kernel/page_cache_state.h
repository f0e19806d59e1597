// What the kernel may hold of one file (pages, size), and which state of the backing file that belongs to.
//
// The class decides two things: whether an open may keep the pages that the kernel has, and when the kernel must drop
// them. The states, the transitions and the reason for each stand in fs/doc/page-cache.md.
//
//   unknown --open--> held --change behind the mount, while handles can write--> racing --last writer closes--> held
//
// Rules: a change that the mount makes itself never drops pages, because a page that is dropped while a write is on its
// way to the daemon is read again without it and stays old. A change behind the mount always drops them. If handles can
// write at that moment, each write is followed by a drop of its own range until the last of these handles is closed.
//
// Thread safety: internally synchronised; a leaf in the lock order. Ownership: plain values. The caller carries out the
// drop that a transition answers. Units: bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "codec/base/mutex.h"
#include "frame/io/byte_source.h"

namespace cframefs::fs {

class PageCacheState {
 public:
  enum class Pages : std::uint8_t {
    unknown,  // the kernel holds nothing, or pages of a state that is not known: the next open drops them
    held,     // pages are those of state(), with what programs have written since
    racing,   // as held, but a page may have been read before a write arrived that was on its way
  };
  /// What the caller has the kernel drop. Until dropped() says that it has, opens keep no pages.
  enum class Drop : std::uint8_t { nothing, pages };

  /// Taken before the backing file is looked at. What the look shows counts only if the mount has changed nothing
  /// meanwhile.
  struct Look {
    std::uint64_t changes = 0;
    bool during_change = false;
  };

  struct Opening {
    frame::FileVersion file;
    bool writes = false;
    bool damaged = false;               // reads of this state are known to fail
    bool damage_shares_pages = false;   // a page may hold bytes of a damaged chunk and of a good one
    bool sees_foreign_changes = false;  // a write-back watches the file, so that its stamps can be trusted
    bool has_old_head = false;          // the kernel is still being told to drop the header of an array
  };
  struct Opened {
    bool keep_pages = false;
    bool direct = false;  // reads must come through as they are
  };

  Look begin_look() const;

  /// A handle is opened on the state `opening.file`. Unless pages are kept, the kernel drops them when it takes the
  /// answer.
  Opened opened(const Opening& opening);
  /// The handle was opened without keeping pages, and a request of it shows that the kernel has dropped them.
  void open_confirmed();
  Drop closed(bool wrote);

  /// stat(2) is about to tell the kernel `size`. A kernel that is told another size than before drops the pages itself.
  Drop seen_by_stat(const Look& look, const frame::FileVersion& file, std::uint64_t size);
  /// stat(2) tells `size` of a file whose write-back knows the state of the backing file.
  void told_size(std::uint64_t size);
  /// A read has found the backing file in this state.
  Drop seen_by_read(const Look& look, const frame::FileVersion& file);
  /// The watcher reports a change, after which the file is in this state. REQUIRES: no change of the mount's own is
  /// under way.
  Drop reported(const frame::FileVersion& file);
  /// The watcher has lost events.
  void lost_track();

  /// The mount itself changes the backing file: between the two calls no look counts.
  void begin_change();
  /// `before`, `after`: the states around the change; none: not known.
  Drop end_change(const std::optional<frame::FileVersion>& before, const std::optional<frame::FileVersion>& after);
  /// A commit has left the state `after`. `own`: the write-back made it; else it follows a change behind the mount.
  Drop committed(const frame::FileVersion& before, const frame::FileVersion& after, bool own);
  /// Something that programs wrote is given up: pages may hold it.
  Drop discarded();
  /// A rename has left the content alone.
  void renamed(const frame::FileVersion& before, const frame::FileVersion& after);

  /// A read of the present state has failed.
  void note_damage();

  /// How many drops have been answered until now.
  std::uint64_t drops() const;
  /// Those that had been when drops() said so have been carried out.
  void dropped(std::uint64_t drops);
  /// Whether pages may be older than the state.
  bool is_dropping() const;

  /// Whether the range of a write that was just made must be dropped. `unconfirmed`: open_confirmed() is still to come
  /// for the handle that wrote.
  bool must_drop_after_write(bool unconfirmed) const;
  /// Whether the last change by the mount has left this state, to which the pages belong.
  bool is_own(const frame::FileVersion& file) const;
  Pages pages() const;

 private:
  bool counts(const Look& look) const REQUIRES(mutex_);
  void adopt_foreign(const frame::FileVersion& file) REQUIRES(mutex_);
  Drop foreign(const frame::FileVersion& file) REQUIRES(mutex_);
  Drop drop() REQUIRES(mutex_);

  mutable codec::Mutex mutex_;
  Pages pages_ GUARDED_BY(mutex_) = Pages::unknown;
  frame::FileVersion state_ GUARDED_BY(mutex_);     // that the pages belong to; empty: not known
  frame::FileVersion last_own_ GUARDED_BY(mutex_);  // that the last change by the mount has left
  bool trusted_ GUARDED_BY(mutex_) = false;         // no change within the stamp of state_ has been missed
  bool damaged_ GUARDED_BY(mutex_) = false;         // a read of state_ has failed
  std::uint64_t told_size_ GUARDED_BY(mutex_) = 0;
  unsigned writers_ GUARDED_BY(mutex_) = 0;      // handles that can write
  unsigned unconfirmed_ GUARDED_BY(mutex_) = 0;  // handles whose open may be about to drop pages
  unsigned changing_ GUARDED_BY(mutex_) = 0;     // changes by the mount that are under way
  std::uint64_t changes_ GUARDED_BY(mutex_) = 0;
  std::uint64_t drops_ GUARDED_BY(mutex_) = 0;    // answered
  std::uint64_t dropped_ GUARDED_BY(mutex_) = 0;  // of these, carried out
};

}  // namespace cframefs::fs
