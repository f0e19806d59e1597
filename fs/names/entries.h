// The entries on disk to which names of the mount lead, for the changes of names.
//
// Thread safety: all members may be called concurrently; an entry stays what it is while the caller holds
// MountContext::changes. Ownership: entries share their directories. Errors: EROFS, EPERM, EEXIST, ENOENT; io.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "fs/mount/node_files.h"
#include "fs/names/name_finder.h"
#include "fs/write/write_back.h"

namespace cframefs::fs {

/// The entry on disk to which a name of the mount leads.
struct Entry {
  DirEntry place;
  HeldDirectory directory;
  EntryKind kind = EntryKind::none;
  frame::OpenFile handle() const { return directory->handle(); }
  const std::string& name() const { return place.name; }
};

inline constexpr const char* kOtherKind = "it would make a frame of a plain file, or the reverse";

/// Returns the error of a change that is refused. `cause`: what errno does not say.
inline codec::Failure refused(int why, const char* doing, const std::string& path = {}, const char* cause = "") {
  codec::Failure failure = codec::io_error(why, doing, cause);
  failure.value().path = path;
  return failure;
}

inline bool is_no_entry(const codec::Error& error) {
  return error.sys == ENOENT;
}

class Entries {
 public:
  explicit Entries(MountContext& mount) : mount_(mount), finder_(mount) {}

  /// Returns the directory. EROFS: read-only mount; EPERM: a directory in which nothing can be changed.
  codec::Result<HeldDirectory> directory_to_change(NodeId parent);
  /// As directory_to_change(), for a new entry `name`. EEXIST: the name is taken.
  codec::Result<HeldDirectory> directory_for_new(NodeId parent, const std::string& name);
  codec::Result<Entry> find_entry(NodeId parent, const HeldDirectory& directory, const std::string& name) const;
  /// Returns a new hidden name. `suffix`: that of the final name, because a source that is a mount goes by it.
  std::string temporary_name(std::string_view suffix = {});
  std::shared_ptr<WriteBack> write_back_at(const DirEntry& place) const;
  /// Returns the write-back of a frame that is being committed or synced. Returns nullptr if there is none.
  std::shared_ptr<WriteBack> committing_entry(NodeId parent, const std::string& name) const;

 private:
  MountContext& mount_;
  const NameFinder finder_;
  std::atomic<std::uint64_t> next_temporary_{1};
};

}  // namespace cframefs::fs
