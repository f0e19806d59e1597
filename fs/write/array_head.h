// The header of a .npy file whose array is written: what a program that truncated it still owes, and whether programs
// know its bytes, which the number of rows changes.
//
//   Awaited   none ─── truncated to 0 ──▶ header ─────────── the header, or the wait for it, is over ──▶ none
//             none ─── truncated to 0, rows are fixed ──▶ array ─── the wait is over ──▶ array_late
//             array, array_late ─── the header of a new array is written ──▶ none
//
//   Shown     known ─── the header changes ──▶ changed ─── take_change() ──▶ unseen ─── a read ──▶ known
//             changed ─── a read ──▶ changed_known ─── take_change() ──▶ known
//             changed_known ─── the header changes ──▶ changed; unseen stays
//
// Thread safety: none; a write-back guards it by its mutex.
#pragma once

#include <cstdint>

namespace cframefs::fs {

class ArrayHead {
 public:
  /// The array was truncated. `to_nothing`: to 0 bytes, its header included.
  void truncated(bool to_nothing) {
    if (to_nothing) {
      awaited_ = awaits_array() ? Awaited::array : Awaited::header;
    } else {
      awaited_ = awaits_array() ? Awaited::array_late : Awaited::none;
    }
  }
  /// The truncated array cannot be empty: only a new array makes the truncation valid. REQUIRES: truncated(true).
  void require_array() { awaited_ = Awaited::array; }
  /// Page writes wait no longer for the header. Returns false if they did not wait.
  bool stop_waiting() {
    if (!delays_pages()) return false;
    awaited_ = awaits_array() ? Awaited::array_late : Awaited::none;
    return true;
  }
  /// A write to the array has succeeded.
  void array_came() {
    if (awaited_ == Awaited::array) awaited_ = Awaited::header;
    if (awaited_ == Awaited::array_late) awaited_ = Awaited::none;
  }
  /// Returns true if page writes wait for the header.
  bool delays_pages() const { return awaited_ == Awaited::header || awaited_ == Awaited::array; }
  bool awaits_array() const { return awaited_ == Awaited::array || awaited_ == Awaited::array_late; }

  void read() {
    if (shown_ == Shown::unseen) shown_ = Shown::known;
    if (shown_ == Shown::changed) shown_ = Shown::changed_known;
  }
  void changed() {
    if (shown_ != Shown::unseen) shown_ = Shown::changed;
  }
  /// Returns true once after the header has changed since programs read it.
  bool take_change() {
    const bool is_changed = shown_ == Shown::changed || shown_ == Shown::changed_known;
    if (is_changed) shown_ = shown_ == Shown::changed ? Shown::unseen : Shown::known;
    return is_changed;
  }

 private:
  enum class Awaited : std::uint8_t {
    none,
    header,      // truncated to 0, and not written since: page writes wait for the header
    array,       // as header, and the rows are fixed: a new array must follow
    array_late,  // as array, but page writes wait no longer
  };
  enum class Shown : std::uint8_t {
    known,          // programs may have read the header as it is
    changed,        // they have read another header, which is not reported yet
    unseen,         // reported, and not read since
    changed_known,  // as changed, but they have read the header since
  };

  Awaited awaited_ = Awaited::none;
  Shown shown_ = Shown::known;
};

}  // namespace cframefs::fs
