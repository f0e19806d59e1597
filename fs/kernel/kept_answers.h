// Whether the kernel may keep attributes of a file, and of which version, and a name of it. A change of the file is
// passed on to the kernel only if it may keep some.
//
//   nothing ──begin_answer()──▶ kept ──answered(version)──▶ kept, of that version or of several
//      ▲                         │
//      └────────take()───────────┘
//
// begin_answer() comes before the file is examined, and take() after it has changed. So either the examination sees the
// change, or take() returns true and the caller tells the kernel.
//
// Thread safety: internally synchronised; a leaf in the lock order. Ownership: plain values.
#pragma once

#include <atomic>
#include <optional>

#include "codec/base/mutex.h"
#include "frame/io/file_version.h"

namespace cframefs::fs {

class KeptAnswers {
 public:
  /// Called before a look at the file for an answer that the kernel may keep.
  void begin_answer() {
    codec::MutexLock lock(mutex_);
    is_kept_ = true;
  }
  /// Records what the answer tells. Returns false if the kernel must not keep it, because take() was called since or
  /// another answer tells of another version.
  bool answered(const frame::FileVersion& version) {
    codec::MutexLock lock(mutex_);
    if (!is_kept_) return false;
    are_several_ = are_several_ || (version_ && !(*version_ == version));
    version_ = version;
    return !are_several_;
  }
  /// Returns true if the kernel may keep attributes. The caller makes the kernel forget them.
  bool take() {
    codec::MutexLock lock(mutex_);
    const bool was_kept = is_kept_;
    is_kept_ = are_several_ = false;
    version_.reset();
    return was_kept;
  }
  /// Returns true if no attributes are kept, or only those of this version.
  bool are_of(const frame::FileVersion& version) const {
    codec::MutexLock lock(mutex_);
    return !is_kept_ || (version_ && !are_several_ && version_->still_matches(version));
  }

  /// Records that the kernel may keep the name by which the file was looked up.
  void name_answered() { is_name_kept_ = true; }
  /// Returns true if the kernel may keep a name. The caller makes the kernel look names up again.
  bool take_name() { return is_name_kept_.exchange(false); }

 private:
  std::atomic<bool> is_name_kept_{false};
  mutable codec::Mutex mutex_;
  bool is_kept_ GUARDED_BY(mutex_) = false;
  bool are_several_ GUARDED_BY(mutex_) = false;  // answers of different versions: the kernel may keep an older one
  std::optional<frame::FileVersion> version_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
