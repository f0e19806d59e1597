// The names that lie in watched directories, so that a look-up of a name that does not exist needs no look at the disk.
//
//            follow()           begin_listing()            end_listing()
//   (none) ───────────▶ counted ───────────────▶ listing ───────────────▶ listed
//                        ▲ ▲                       │                        │
//                        │ └── events were lost ───┴────────────────────────┤
//                        └──── most names were removed ─────────────────────┘
//
// While a directory is listed, the table has at least the names that were there at the last Watcher::catch_up(): names
// that appear are added; those that vanish stay, and cost one look at the disk. The table keeps digests of names, with
// a seed that no other program knows. Two names with one digest cost a look at the disk, too. A name of the mount may
// lead to a dozen names on disk, which differ in their suffixes: the digests of names without suffixes answer for all
// of them at once. Names of temporary files are not in the table, and no directory is said to lack one.
//
// A directory is listed once a listing costs less than the look-ups that found nothing in it. Directories of one mount
// have kMostNames together; one that has more is never listed.
//
// Thread safety: all members may be called concurrently. The watcher calls appeared(), vanished() and lose_track() in
// the order of the events. Ownership: values. Errors: throws std::bad_alloc, after which the caller must lose_track().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codec/base/mutex.h"

namespace cframefs::fs {

class WatchedNames {
 public:
  static constexpr std::size_t kMostNames = 262'144;
  static constexpr std::size_t kFewLooks = 512;  // looks at the disk before a directory is listed

  WatchedNames();

  /// Begins to count looks into a directory whose every change the watcher sees.
  void follow(std::uint64_t directory);
  void forget(std::uint64_t directory);

  bool follows(std::uint64_t directory) const;
  /// Returns whether the directory is listed, and so lacks() may be true after Watcher::catch_up().
  bool is_listed(std::uint64_t directory) const;
  /// Returns true if the directory has no entry of this name. REQUIRES: Watcher::catch_up() since the caller's begin.
  bool lacks(std::uint64_t directory, std::string_view name) const;
  /// Returns true if the directory has no entry that could show as `shown`, whatever its suffix. REQUIRES: as lacks().
  bool lacks_forms_of(std::uint64_t directory, std::string_view shown) const;
  /// Returns true if the directory has no entry whose shown name could depend on that of `name`, which is there.
  /// REQUIRES: as lacks().
  bool is_only_form(std::uint64_t directory, std::string_view name) const;

  /// Counts looks at the disk. Returns a number for end_listing() if the caller is to list the directory now, else 0.
  std::uint64_t begin_listing(std::uint64_t directory, std::size_t looks);
  /// Ends a listing with all names that the directory had after begin_listing(), or without a result (nullptr).
  /// `names`: may have names of temporary files.
  void end_listing(std::uint64_t directory, std::uint64_t number, const std::vector<std::string>* names);

  /// Not for temporary files.
  void appeared(std::uint64_t directory, std::string_view name);
  void vanished(std::uint64_t directory);
  /// Forgets the names of all directories: events were lost.
  void lose_track();

 private:
  enum class State : std::uint8_t { counted, listing, listed };
  struct Directory {
    State state = State::counted;
    std::size_t looks = 0;               // while counted
    std::size_t worthwhile = kFewLooks;  // looks after which a listing pays
    std::uint64_t listing = 0;           // number of the last one
    std::size_t vanished = 0;
    std::unordered_set<std::uint64_t> names;                 // digests
    std::unordered_map<std::uint64_t, std::uint32_t> stems;  // digests without suffixes: number of names
  };

  std::uint64_t digest(std::string_view name) const;
  void drop_names(Directory& directory) REQUIRES(mutex_);
  void add(Directory& directory, std::string_view name) REQUIRES(mutex_);
  /// Returns nullptr if the directory is not listed.
  const Directory* listed(std::uint64_t directory) const REQUIRES(mutex_);

  const std::uint64_t seed_;
  mutable codec::Mutex mutex_;
  std::unordered_map<std::uint64_t, Directory> directories_ GUARDED_BY(mutex_);
  std::size_t names_ GUARDED_BY(mutex_) = 0;  // of all directories
  std::uint64_t last_listing_ GUARDED_BY(mutex_) = 0;
};

}  // namespace cframefs::fs
