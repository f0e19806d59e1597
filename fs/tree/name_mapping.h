// Which name of the mount stands for which name on disk.
//
// With names=strip a container shows without its suffix (x.b2frame as x), an array with that of what it shows (x.b2nd
// as x.npy, and x.blp if it holds one); a name that something else has already stays with it, and the container shows
// under its full name. The rule that settles every case: names on disk get their turn shortest first (then in byte
// order), each takes its short name if that is free, else its full one. resolve_shown() answers for one name without
// listing the directory, and agrees with show().
//
// The mount's own temporary files have names that begin with frame::kTemporaryPrefix. The source may be another mount
// (and a program in the mount may be `cframe`), which makes files of such names, too: `.cframefs-tmp.x` in the mount is
// `.cframefs-tmp+.x` on disk, `.cframefs-tmp+.x` is `.cframefs-tmp++.x`, and so on.
//
// Thread safety: immutable. Errors: those of the `kind_of` that the caller passes in.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/base/error.h"
#include "fs/util/options.h"

namespace cframefs::fs {

enum class EntryKind : std::uint8_t {
  none,  // there is no such entry, or it is never shown
  directory,
  plain,  // a file passed through as it is
  symlink,
  frame_link,    // a symbolic link that is named as a container and leads to a name of such a one in the source
  other,         // a device, socket or pipe
  frame,         // a file that holds a container of any kind, shown as its plain bytes
  sparse_frame,  // a directory that is a sparse frame, shown as one file of its plain bytes
  packed_array,  // a Bloscpack file of a NumPy array, shown as a .npy file
};

inline bool is_container(EntryKind kind) {
  return kind == EntryKind::frame || kind == EntryKind::sparse_frame || kind == EntryKind::packed_array;
}

/// What shows without its suffix.
inline bool is_shortened(EntryKind kind) {
  return is_container(kind) || kind == EntryKind::frame_link;
}

struct StoredEntry {
  std::string name;
  EntryKind kind = EntryKind::none;
  std::uint64_t inode = 0;  // where the directory tells it
};

struct ShownEntry {
  std::string shown;
  StoredEntry stored;
};

class NameMapper {
 public:
  explicit NameMapper(Names names, ArrayView arrays = ArrayView::npy) : names_(names), arrays_(arrays) {}

  /// Whether the suffix says that this is a container (frame/base/suffixes.h).
  bool has_container_suffix(std::string_view name) const { return !suffix_of(name).empty(); }
  /// Whether the suffix says that this is an array (.b2nd).
  static bool has_array_suffix(std::string_view name);
  /// Whether what is in the file decides its name: Bloscpack files (.blp) may hold NumPy arrays.
  bool needs_content_probe(std::string_view name) const;
  /// Our own temporary files on disk; never shown.
  static bool is_temporary(std::string_view name);
  /// The name on disk of what is no container and shows as `shown`.
  static std::string on_disk(const std::string& shown);
  /// What on_disk() was given. REQUIRES: not is_temporary(stored).
  static std::string in_mount(const std::string& stored);
  /// "x.b2lock" is the lock side-car of "x"; empty if `name` is none.
  static std::string_view locked_name(std::string_view name);

  /// The container suffix of a name on disk; empty if it has none.
  static std::string_view suffix_of(std::string_view name);
  /// Whether a new frame may have such a name on disk: the suffix does not promise something else.
  static bool names_new_frame(std::string_view name);
  /// The name on disk of a file that is created as `shown`.
  std::string new_name(const std::string& shown) const;
  /// The name on disk that a container called `stored` takes when it is renamed to `shown`; empty if no name that keeps
  /// its suffix shows as that.
  std::string renamed_container(const StoredEntry& stored, const std::string& shown) const;
  /// Whether a link of this name with this target can be a frame_link: both would lose their suffix in the same way.
  /// Links to Bloscpack files, whose content decides what they show as, keep their names.
  bool shortens_link(std::string_view name, std::string_view target) const;
  /// What to store so that shown_target() gives `target`.
  std::string stored_target(const std::string& target) const;

  /// The short name that a container of this name and kind may show under; `name` itself if it has none.
  std::string short_name_of(const std::string& name, EntryKind kind = EntryKind::frame) const;

  /// `folds_case`: two names that differ by the case of letters alone are one.
  std::vector<ShownEntry> show(std::vector<StoredEntry> entries, bool folds_case = false) const;

  /// The entry on disk that shows as `shown`; kind none if there is none. `kind_of` tells of one name on disk.
  using KindOf = std::function<codec::Result<EntryKind>(const std::string&)>;
  codec::Result<StoredEntry> resolve_shown(const std::string& shown, const KindOf& kind_of) const;

  /// The target of a symbolic link as programs in the mount must see it: a relative target that names a container loses
  /// its suffix. `kind`: of what it names.
  std::string shown_target(const std::string& target, EntryKind kind = EntryKind::frame) const;

 private:
  codec::Result<StoredEntry> owner_among(const std::string& shown, const KindOf& kind_of) const;
  /// What takes the place of a container's suffix.
  std::string_view replacement_of(std::string_view suffix, EntryKind kind) const;
  /// Without container suffix, and with what takes its place.
  std::string stripped(const std::string& name, EntryKind kind) const;
  std::string short_name(const StoredEntry& entry) const;
  /// The names on disk that `shown` can be the short one of, in the order in which they get it.
  std::vector<std::string> stored_names_of(std::string_view shown) const;

  const Names names_;
  const ArrayView arrays_;
};

}  // namespace cframefs::fs
