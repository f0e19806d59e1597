// Maps names in the mount to names on disk.
//
// With names=strip a container shows without its suffix (x.b2frame as x), an array with the suffix of what it shows
// (x.b2nd as x.npy, and x.blp if it holds an array). If another entry already has that name, the container shows under
// its full name. The rule for every case: assign names in order of length, then bytewise; each name on disk takes its
// short name if that is free, and its full name otherwise. resolve_shown() answers for one name without listing the
// directory, and agrees with show().
//
// Names of the mount's own temporary files begin with frame::kTemporaryPrefix. The source may be another mount (and a
// program in the mount may be `cframe`), which creates files with such names, too: `.cframefs-tmp.x` in the mount is
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
  none,  // the entry does not exist, or is never shown
  directory,
  plain,  // a file passed through unchanged
  symlink,
  frame_link,    // a symbolic link named like a container, whose target is in the source and named like one, too
  other,         // a device, socket or pipe
  frame,         // a file that holds a container of any kind, shown as its uncompressed bytes
  sparse_frame,  // a directory that is a sparse frame, shown as one file of its uncompressed bytes
  packed_array,  // a Bloscpack file of a NumPy array, shown as a .npy file
};

inline bool is_container(EntryKind kind) {
  return kind == EntryKind::frame || kind == EntryKind::sparse_frame || kind == EntryKind::packed_array;
}

/// Returns whether an entry of this kind shows without its suffix.
inline bool is_shortened(EntryKind kind) {
  return is_container(kind) || kind == EntryKind::frame_link;
}

struct StoredEntry {
  std::string name;
  EntryKind kind = EntryKind::none;
  std::uint64_t inode = 0;  // 0 if the directory does not tell it
};

struct ShownEntry {
  std::string shown;
  StoredEntry stored;
};

class NameMapper {
 public:
  /// The suffix that the lock file of a frame has beside the frame's name.
  static constexpr std::string_view kLockSuffix = ".b2lock";

  /// `npy_as_array`: a new file x.npy is stored as x.b2nd. REQUIRES: then names are stripped and arrays show as .npy.
  explicit NameMapper(Names names, ArrayView arrays = ArrayView::npy, bool npy_as_array = false)
      : names_(names), arrays_(arrays), npy_as_array_(npy_as_array) {}

  /// Returns whether the suffix is that of a container (frame/base/suffixes.h).
  static bool has_container_suffix(std::string_view name) { return !suffix_of(name).empty(); }
  /// Returns whether the suffix is that of an array (.b2nd).
  static bool has_array_suffix(std::string_view name);
  /// Returns whether the shown name depends on the content: Bloscpack files (.blp) may hold NumPy arrays.
  bool needs_content_probe(std::string_view name) const;
  /// Returns whether a name on disk is that of a temporary file of the mount, which is never shown.
  static bool is_temporary(std::string_view name);
  /// Returns the name on disk of an entry that is no container and shows as `shown`.
  static std::string on_disk(const std::string& shown);
  /// The inverse of on_disk(). REQUIRES: not is_temporary(stored).
  static std::string in_mount(const std::string& stored);
  /// Returns "x" for "x.b2lock", the lock file of "x"; returns "" for other names.
  static std::string_view locked_name(std::string_view name);

  /// Returns whether on_disk() may change the name, or change it once it has a suffix.
  static bool is_reserved(std::string_view name);
  /// Returns the name without its suffixes of containers, arrays and lock files. It is the same for a name of the mount
  /// and for each name on disk that resolve_shown() examines for it, unless the name is reserved.
  static std::string_view without_suffixes(std::string_view name);

  /// Returns the container suffix of a name on disk, "" if it has none.
  static std::string_view suffix_of(std::string_view name);
  /// Returns whether a new frame may have this name on disk: its suffix is not that of another format.
  bool names_new_frame(std::string_view name) const;
  /// Returns the name on disk of a file that is created as `shown`.
  std::string new_name(const std::string& shown) const;
  /// Returns the name on disk that a container called `stored` takes when it is renamed to `shown`. The name keeps the
  /// suffix. Returns "" if no such name shows as `shown`.
  std::string renamed_container(const StoredEntry& stored, const std::string& shown) const;
  /// Returns whether a link of this name with this target can be a frame_link: both lose their suffix in the same way.
  /// Links to Bloscpack files, whose shown name depends on the content, keep their names.
  bool shortens_link(std::string_view name, std::string_view target) const;
  /// Returns the target to store so that shown_target() returns `target`.
  std::string stored_target(const std::string& target) const;

  /// Returns the short name of a container of this name and kind, `name` itself if it has none.
  std::string short_name_of(const std::string& name, EntryKind kind = EntryKind::frame) const;

  /// Returns the entries with their shown names. `folds_case`: names that differ only by the case of letters are equal.
  std::vector<ShownEntry> show(std::vector<StoredEntry> entries, bool folds_case = false) const;

  /// Returns the entry on disk that shows as `shown`; kind none if there is none. `kind_of` examines one name on disk.
  using KindOf = std::function<codec::Result<EntryKind>(const std::string&)>;
  codec::Result<StoredEntry> resolve_shown(const std::string& shown, const KindOf& kind_of) const;

  /// Returns the target of a symbolic link as programs in the mount see it: a relative target that names a container
  /// loses its suffix. `kind`: the kind of the target.
  std::string shown_target(const std::string& target, EntryKind kind = EntryKind::frame) const;

 private:
  codec::Result<StoredEntry> owner_among(const std::string& shown, const KindOf& kind_of) const;
  /// Returns the suffix that replaces a container's suffix in the shown name.
  std::string_view replacement_of(std::string_view suffix, EntryKind kind) const;
  /// Returns the name with its container suffix replaced.
  std::string stripped(const std::string& name, EntryKind kind) const;
  std::string short_name(const StoredEntry& entry) const;
  /// Returns the names on disk whose short name may be `shown`, in the order in which they take precedence.
  std::vector<std::string> stored_names_of(std::string_view shown) const;

  const Names names_;
  const ArrayView arrays_;
  const bool npy_as_array_;
};

}  // namespace cframefs::fs
