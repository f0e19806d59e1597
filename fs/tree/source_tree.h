// Reads the directories of the source (or the single file that is mounted) through ReadFileOps, and determines the kind
// of each entry.
//
// An entry is one name in a directory that the caller holds open; "." is the directory itself. Thread safety: immutable
// after open(), except for the synchronised memory of spellings. Ownership: keeps the source open.
// Errors: io with the name as path; a damaged container is not an error but an EntryStat with `damage`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>

#include "frame/io/file_ops.h"
#include "frame/open/open.h"
#include "fs/tree/name_mapping.h"
#include "fs/tree/name_spelling.h"
#include "fs/tree/source_links.h"
#include "fs/util/options.h"

namespace cframefs::fs {

/// The result of examining one entry.
struct EntryStat {
  EntryKind kind = EntryKind::none;
  struct stat status {};          // of the file; for a sparse frame of its chunks.b2frame
  std::uint64_t entry_inode = 0;  // of the entry itself (for a sparse frame, of the directory)
  std::uint64_t size = 0;         // as the mount shows it; the stored size if the container cannot be opened
  std::int32_t chunksize = 0;
  std::optional<codec::Error> damage;  // why the container cannot be opened; valid as long as `identity`
  frame::FileVersion identity;
};

/// An entry that was found by the name under which it shows.
struct FoundEntry {
  std::string name;  // on disk
  EntryStat stat;    // as SourceTree::probe_entry()
};

/// Returns the error for a name that leads to nothing.
codec::Failure no_entry(const std::string& name);
/// Returns whether the error means that a name leads to nothing any more, or to another kind of file.
bool leads_elsewhere(const codec::Error& error);

class SourceTree {
 public:
  SourceTree(frame::ReadFileOps& files, const MountOptions& options);

  /// Opens the source. `remote_root`: its path in the tree of a server; empty: the source is a path of the system.
  codec::Result<void> open(const std::string& remote_root = {});
  /// Returns whether the source is one file. The file is then the only entry of the tree, or the tree itself.
  bool is_single_file() const { return !single_name_.empty(); }
  /// REQUIRES: is_single_file().
  const std::string& single_name() const { return single_name_; }

  codec::Result<EntryStat> probe(frame::OpenFile directory, const std::string& name) const;
  /// As probe(), without opening containers: size is that of the stored file, chunksize 0.
  codec::Result<EntryStat> probe_entry(frame::OpenFile directory, const std::string& name) const;
  /// As probe(), but takes the values of the container's header from `known` if the file has not changed since.
  codec::Result<EntryStat> revalidate(frame::OpenFile directory, const std::string& name, const EntryStat& known) const;

  /// Returns whether the kind of a file of this name depends on its content.
  bool kind_depends_on_content(const std::string& name) const;
  /// Returns what probe() returns for an entry that was just created: a file without content, or a frame without data.
  static EntryStat new_entry(EntryKind kind, const struct stat& status, std::int32_t chunksize);

  /// Returns the kind of an entry; none if it does not exist.
  codec::Result<EntryKind> kind_of(frame::OpenFile directory, const std::string& name) const;
  /// Returns whether an entry of this kind would keep it under that name.
  bool keeps_kind(EntryKind kind, const std::string& name) const;

  /// Returns the entry that shows as `shown`; ENOENT if there is none. `lacks`: returns true for a name on disk that is
  /// known not to be in the directory, which is then not looked for; empty: all are.
  using Lacks = std::function<bool(const std::string&)>;
  codec::Result<FoundEntry> find(frame::OpenFile directory, const std::string& shown, const Lacks& lacks = {}) const;
  /// Returns the names in the directory; nothing if names there may differ only by case, if that cannot be told, or if
  /// the directory is very large.
  std::optional<std::vector<std::string>> exact_names(frame::OpenFile directory) const;
  codec::Result<std::vector<ShownEntry>> list(frame::OpenFile directory) const;

  /// Opens an entry, for a sparse frame its directory. Never blocks. `flags`: as open(2).
  codec::Result<std::shared_ptr<const frame::Descriptor>> open_entry(frame::OpenFile directory, const std::string& name,
                                                                     int flags = O_RDONLY) const;
  /// Returns the version of the open container, by which changes are detected.
  codec::Result<frame::FileVersion> identity(frame::OpenFile file, EntryKind kind) const;
  const SourceLinks& links() const { return links_; }
  /// Returns the offset of the frame in its file.
  frame::FileOffset frame_begin() const { return frame::FileOffset{options_.offset}; }
  frame::ReadFileOps& files() const { return files_; }
  const NameMapper& rules() const { return rules_; }
  const std::shared_ptr<const frame::Descriptor>& root() const { return root_; }

 private:
  codec::Result<EntryStat> entry_from(frame::OpenFile directory, const std::string& name, EntryKind kind,
                                      const struct stat& status) const;
  codec::Result<EntryKind> kind_from(frame::OpenFile directory, const std::string& name, mode_t mode) const;
  bool may_be_container(const std::string& name) const;
  codec::Result<frame::OpenFile> open_to_look(frame::OpenFile directory, const std::string& name) const;
  codec::Result<bool> is_packed_array(frame::OpenFile directory, const std::string& name) const;
  codec::Result<bool> has_index(frame::OpenFile directory, const std::string& name) const;
  codec::Result<frame::FileVersion> version_of_object(frame::OpenFile file, EntryKind kind) const;
  codec::Result<struct stat> sparse_status(frame::OpenFile directory, const std::string& name) const;
  codec::Result<EntryStat> probe_container(frame::OpenFile directory, const std::string& name, EntryStat probe) const;
  codec::Result<void> probe_view(bool is_array, const std::shared_ptr<const frame::Descriptor>& file,
                                 EntryStat& probe) const;

  frame::ReadFileOps& files_;
  const MountOptions options_;
  const NameMapper rules_;
  SourceLinks links_;
  const std::unique_ptr<NameSpelling> spelling_;
  std::shared_ptr<const frame::Descriptor> root_;
  std::string root_path_;
  std::string single_name_;
};

}  // namespace cframefs::fs
