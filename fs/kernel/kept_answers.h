// Whether the kernel may keep attributes of a file, and of which version, and a name of it. A change of the file is
// passed on to the kernel only if it may keep some.
//
//               answered(version)                     answered(another version)
//   nothing ───────────────────────▶ of one version ───────────────────────────▶ of several
//      ▲                                   │                                        │
//      └───────────────take()──────────────┴────────────────────────────────────────┘
//
// begin_answer() comes before the file is examined, and take() after it has changed. So either the examination sees the
// change, or the kernel does not keep the answer: answered() fails if take() was called since begin_answer(). No
// notification follows from an answer on its way: the kernel ignores an answer that crosses one, and goes by the
// attributes that it had before.
//
// Thread safety: internally synchronised; a leaf in the lock order. Ownership: plain values.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "codec/base/mutex.h"
#include "frame/io/file_version.h"

namespace cframefs::fs {

class KeptAnswers {
 public:
  /// A marker taken before a look at the file for an answer that the kernel may keep.
  struct Look {
    std::uint64_t changes = 0;
  };

  Look begin_answer() {
    codec::MutexLock lock(mutex_);
    is_answer_begun_ = true;
    return {changes_};
  }
  /// Records what the answer tells. Returns false if the kernel must not keep it, because take() was called since the
  /// look or another answer tells of another version.
  bool answered(const Look& look, const frame::FileVersion& version) {
    codec::MutexLock lock(mutex_);
    if (look.changes != changes_) return false;
    are_several_ = are_several_ || (version_ && !(*version_ == version));
    version_ = version;
    return !are_several_;
  }
  /// Called after a change. Returns true if the kernel may keep attributes; the caller makes the kernel forget them.
  bool take() {
    codec::MutexLock lock(mutex_);
    const bool were_kept = version_.has_value();
    ++changes_;
    is_answer_begun_ = are_several_ = false;
    version_.reset();
    return were_kept;
  }
  /// Returns true if no attributes are kept or on their way to the kernel, or only those of this version are kept.
  bool are_of(const frame::FileVersion& version) const {
    codec::MutexLock lock(mutex_);
    return version_ ? !are_several_ && version_->still_matches(version) : !is_answer_begun_;
  }

  /// Records that the kernel may keep the name by which the file was looked up.
  void name_answered() { is_name_kept_ = true; }
  /// Returns true if the kernel may keep a name. The caller makes the kernel look names up again.
  bool take_name() { return is_name_kept_.exchange(false); }

 private:
  std::atomic<bool> is_name_kept_{false};
  mutable codec::Mutex mutex_;
  std::uint64_t changes_ GUARDED_BY(mutex_) = 0;     // calls of take()
  bool is_answer_begun_ GUARDED_BY(mutex_) = false;  // since take()
  bool are_several_ GUARDED_BY(mutex_) = false;      // answers of different versions: the kernel may keep an older one
  std::optional<frame::FileVersion> version_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
