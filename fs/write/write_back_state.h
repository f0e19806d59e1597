// The states of a write-back, in two orthogonal parts: what it knows of its frame (Standing), and which change by the
// mount is in progress (Progress).
//
//   Standing
//     current ──── another program has changed the frame, and a reload would lose data ────▶ stale ── close() ──▶
//     closed
//        └────────────────────────────────────────── close() ───────────────────────────────────────────────────────▲
//
//   Progress
//               a commit or compaction          begin_change()
//     idle ────────────────────────▶ preparing ────────────────▶ writing, writing_over
//      │                               ▲    │                        │   │
//      │                               └────│── a part is adopted ───┘   │
//      │                                    └────────────────────────────┴── end_change() ──▶ idle
//      ├─▶ own_change ──────────────────────────────────────────────────────────────────────▶ idle
//      │                    begin_change()
//      └─▶ copying ───────────────────────▶ copy_writing, copy_writing_over ──▶ idle
//               └──────────────────────────────────────────────────────────────▶ idle
//
// Facts that follow from other members, and are no states: the file is dirty if its dirty layer differs from what lies
// below; a commit of layers is in progress while there is a layer that is being committed; the frame has failed if its
// writer has.
//
// Thread safety: none; a write-back guards it by its mutex.
#pragma once

#include <cassert>
#include <cstdint>

namespace cframefs::fs {

/// What a write-back knows of its frame.
enum class Standing : std::uint8_t {
  current,  // the frame on disk is the committed version, as far as anything was seen
  stale,    // the committed version is gone while there are, or may be, data over it: the frame is left alone
  closed,   // the writer has let go of the frame; as stale, for programs that come too late
};

/// Which change by the mount is in progress. One at a time: a change holds the lock of commits.
enum class Progress : std::uint8_t {
  idle,
  preparing,     // a commit or compaction before it has its lock: a change of the file is another program's
  own_change,    // attributes, name, holes: may be changing the file from its beginning on
  writing,       // the file was in its known version: its new version is the change's
  writing_over,  // another program has changed the file, whose header is unchanged
  copying,       // as own_change, for ChunkCopy: changes by programs wait
  copy_writing,
  copy_writing_over,
};

constexpr bool is_copy(Progress progress) {
  return progress == Progress::copying || progress == Progress::copy_writing || progress == Progress::copy_writing_over;
}

/// Returns true if begin_change() has looked at the file.
constexpr bool has_begun(Progress progress) {
  return progress == Progress::writing || progress == Progress::writing_over || progress == Progress::copy_writing ||
         progress == Progress::copy_writing_over;
}

constexpr bool is_legal(Standing from, Standing to) {
  return from == to || (from != Standing::closed && to != Standing::current);
}

constexpr bool is_legal(Progress from, Progress to) {
  switch (to) {
    case Progress::idle:
      return from != Progress::idle;
    case Progress::preparing:
      return from == Progress::idle || from == Progress::preparing || from == Progress::writing ||
             from == Progress::writing_over;
    case Progress::own_change:
    case Progress::copying:
      return from == Progress::idle;
    case Progress::writing:
    case Progress::writing_over:
      return from == Progress::preparing;
    case Progress::copy_writing:
    case Progress::copy_writing_over:
      return from == Progress::copying;
  }
  return false;
}

class WriteBackState {
 public:
  void enter(Standing next) {
    assert(is_legal(standing_, next));
    standing_ = next;
  }
  void enter(Progress next) {
    assert(is_legal(progress_, next));
    progress_ = next;
  }
  /// The committed version is gone. Keeps `closed`.
  void lose_track() {
    if (standing_ == Standing::current) enter(Standing::stale);
  }
  /// Called when the change in progress looks at the file for the first time. `is_known`: the file is in its known
  /// version.
  void begin_writing(bool is_known) {
    if (is_copy(progress_)) return enter(is_known ? Progress::copy_writing : Progress::copy_writing_over);
    enter(is_known ? Progress::writing : Progress::writing_over);
  }

  bool is_usable() const { return standing_ == Standing::current; }
  bool is_busy() const { return progress_ != Progress::idle; }
  bool is_copying() const { return is_copy(progress_); }
  bool has_begun_writing() const { return has_begun(progress_); }
  /// Returns true if the new version of the file is the change's alone.
  bool writes_known_file() const { return progress_ == Progress::writing || progress_ == Progress::copy_writing; }
  /// Returns true if the new version of the file contains a change by another program.
  bool writes_over_other() const {
    return progress_ == Progress::writing_over || progress_ == Progress::copy_writing_over;
  }
  /// Returns true if the change in progress may be changing the version of the file.
  bool may_change_file() const { return is_busy() && progress_ != Progress::preparing; }

 private:
  Standing standing_ = Standing::current;
  Progress progress_ = Progress::idle;
};

}  // namespace cframefs::fs
