// The folder (or the one file) that is mounted, seen through FileOps: what lies there, and of which kind it is.
//
// Paths are relative to the source, "" for the source itself, and never leave it. Thread safety: immutable after
// open(). Ownership: keeps the source open. Errors: io with path filled in; a damaged container is no error here but a
// Probe with `damage`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>

#include "frame/file_ops.h"
#include "frame/open.h"
#include "fs/names.h"
#include "fs/options.h"

namespace cframefs::fs {

/// What one stat of the mount needs to know.
struct Probe {
  EntryKind kind = EntryKind::none;
  struct stat status {};          // of the file; for a sparse frame of its chunks.b2frame
  std::uint64_t entry_inode = 0;  // of the entry itself (a sparse frame: of the folder)
  std::uint64_t size = 0;         // as the mount shows it; of a container that cannot be opened what is stored
  std::int32_t chunksize = 0;
  std::optional<codec::Error> damage;  // why the container cannot be opened; holds for as long as `identity`
  frame::Identity identity;
};

class SourceTree {
 public:
  SourceTree(frame::FileOps& files, const MountOptions& options);

  /// Opens the source.
  codec::Result<void> open();
  /// The source is one file; it is the only entry of the tree, or the tree itself.
  bool is_single_file() const { return !single_name_.empty(); }
  /// REQUIRES: is_single_file().
  const std::string& single_name() const { return single_name_; }

  codec::Result<Probe> probe(const std::string& path) const;
  /// The same without a look into a container: its size and chunk size are left at those of the file.
  codec::Result<Probe> probe_entry(const std::string& path) const;
  /// As probe(path), but takes the header's facts from `known` if the file has not changed since.
  codec::Result<Probe> probe_again(const std::string& path, const Probe& known) const;

  /// What lies at `path`; none if nothing does.
  codec::Result<EntryKind> kind_of(const std::string& path) const;
  /// Whether an entry of this kind would still be of that kind under the name `path`.
  bool keeps_kind(EntryKind kind, const std::string& path) const;
  /// The file whose mode, owner and times are those of the entry: of a sparse frame its index.
  static std::string attribute_path(const std::string& path, EntryKind kind);
  /// The lock side-car of a container.
  static std::string lock_path(const std::string& path, EntryKind kind);

  /// The stored name in folder `directory` that shows as `shown`; ENOENT if there is none.
  codec::Result<std::string> resolve(const std::string& directory, const std::string& shown) const;
  codec::Result<std::vector<ShownEntry>> list(const std::string& directory) const;

  /// Opens whatever is at `path`, without ever waiting; for a sparse frame its folder. `flags`: as open(2).
  codec::Result<std::shared_ptr<const frame::Descriptor>> open_entry(const std::string& path,
                                                                     int flags = O_RDONLY) const;
  /// The identity by which changes of the open container are noticed.
  codec::Result<frame::Identity> identity(int fd, EntryKind kind) const;
  /// The target as it is shown.
  codec::Result<std::string> read_link(const std::string& path) const;
  /// Where a frame begins in its file.
  frame::FileOffset frame_begin() const { return frame::FileOffset{options_.offset}; }
  frame::FileOps& files() const { return files_; }
  const NameRules& rules() const { return rules_; }
  int root_fd() const { return root_.fd(); }

  static std::string join(const std::string& directory, const std::string& name);

 private:
  codec::Result<EntryKind> kind_from(const std::string& path, mode_t mode) const;
  bool may_be_container(const std::string& path) const;
  /// What a link in `folder` shows that holds `target`.
  std::string shown_target(const std::string& folder, const std::string& target) const;
  codec::Result<bool> is_packed_array(const std::string& path) const;
  codec::Result<Probe> probe_container(const std::string& path, Probe probe) const;
  codec::Result<void> probe_view(bool is_array, const std::shared_ptr<const frame::Descriptor>& file,
                                 Probe& probe) const;

  frame::FileOps& files_;
  const MountOptions options_;
  const NameRules rules_;
  frame::Descriptor root_;
  std::string root_path_;
  std::string single_name_;
};

}  // namespace cframefs::fs
