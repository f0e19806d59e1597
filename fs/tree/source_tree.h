// What lies in the directories of the source (or what the one file is), seen through FileOps, and of which kind it is.
//
// An entry is one name in a directory that the caller holds open; "." is the directory itself. Thread safety: immutable
// after open(), but for what it remembers of spellings, which is synchronised. Ownership: keeps the source open.
// Errors: io with the name for a path; a damaged container is no error here but an EntryStat with `damage`.
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
#include "fs/util/options.h"

namespace cframefs::fs {

/// What one stat of the mount needs to know.
struct EntryStat {
  EntryKind kind = EntryKind::none;
  struct stat status {};          // of the file; for a sparse frame of its chunks.b2frame
  std::uint64_t entry_inode = 0;  // of the entry itself (a sparse frame: of the directory)
  std::uint64_t size = 0;         // as the mount shows it; of a container that cannot be opened what is stored
  std::int32_t chunksize = 0;
  std::optional<codec::Error> damage;  // why the container cannot be opened; holds for as long as `identity`
  frame::FileVersion identity;
};

/// What a call tells of a name that leads to nothing any more, or to another kind of file.
bool leads_elsewhere(const codec::Error& error);

class SourceTree {
 public:
  SourceTree(frame::FileOps& files, const MountOptions& options);

  /// Opens the source.
  codec::Result<void> open();
  /// The source is one file; it is the only entry of the tree, or the tree itself.
  bool is_single_file() const { return !single_name_.empty(); }
  /// REQUIRES: is_single_file().
  const std::string& single_name() const { return single_name_; }

  codec::Result<EntryStat> probe(int directory, const std::string& name) const;
  /// The same without a look into a container: its size and chunk size are left at those of the file.
  codec::Result<EntryStat> probe_entry(int directory, const std::string& name) const;
  /// As probe(), but takes the header's facts from `known` if the file has not changed since.
  codec::Result<EntryStat> revalidate(int directory, const std::string& name, const EntryStat& known) const;

  /// What the name stands for; none if nothing.
  codec::Result<EntryKind> kind_of(int directory, const std::string& name) const;
  /// Whether an entry of this kind would still be of that kind under that name.
  bool keeps_kind(EntryKind kind, const std::string& name) const;

  /// The stored name that shows as `shown`; ENOENT if there is none.
  codec::Result<std::string> resolve(int directory, const std::string& shown) const;
  codec::Result<std::vector<ShownEntry>> list(int directory) const;

  /// Opens an entry, without ever waiting; of a sparse frame its directory. `flags`: as open(2).
  codec::Result<std::shared_ptr<const frame::Descriptor>> open_entry(int directory, const std::string& name,
                                                                     int flags = O_RDONLY) const;
  /// The identity by which changes of the open container are noticed.
  codec::Result<frame::FileVersion> identity(int fd, EntryKind kind) const;
  /// What a link holds.
  codec::Result<std::string> target_of(int directory, const std::string& name) const;
  /// Where the target of a link in `directory` leads by its text, beneath the source and without ".."; none: elsewhere.
  std::optional<std::string> place_in_source(int directory, const std::string& target) const;
  /// The name on disk of a link that shows as `shown`.
  std::string link_name(int directory, const std::string& shown, const std::string& target) const;
  /// What a link shows that holds `target`. `kind_of_neighbour`: tells of a name in the directory that the target's
  /// last name lies in.
  std::string shown_target(const std::string& target, const NameMapper::KindOf& kind_of_neighbour) const;
  /// Where a frame begins in its file.
  frame::FileOffset frame_begin() const { return frame::FileOffset{options_.offset}; }
  frame::FileOps& files() const { return files_; }
  const NameMapper& rules() const { return rules_; }
  const std::shared_ptr<const frame::Descriptor>& root() const { return root_; }

 private:
  EntryKind link_kind(int directory, const std::string& name) const;
  std::string path_of(int fd) const;
  codec::Result<EntryKind> kind_from(int directory, const std::string& name, mode_t mode) const;
  bool may_be_container(const std::string& name) const;
  codec::Result<int> open_to_look(int directory, const std::string& name) const;
  codec::Result<bool> is_packed_array(int directory, const std::string& name) const;
  codec::Result<bool> has_index(int directory, const std::string& name) const;
  codec::Result<struct stat> sparse_status(int directory, const std::string& name) const;
  codec::Result<EntryStat> probe_container(int directory, const std::string& name, EntryStat probe) const;
  codec::Result<void> probe_view(bool is_array, const std::shared_ptr<const frame::Descriptor>& file,
                                 EntryStat& probe) const;

  frame::FileOps& files_;
  const MountOptions options_;
  const NameMapper rules_;
  const std::unique_ptr<NameSpelling> spelling_;
  std::shared_ptr<const frame::Descriptor> root_;
  std::string root_path_;
  std::string single_name_;
};

}  // namespace cframefs::fs
