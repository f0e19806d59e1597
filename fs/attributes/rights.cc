#include "fs/attributes/rights.h"

#include <cerrno>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frame/cframe/sparse_frame.h"
#include "frame/io/posix_acl.h"
#include "frame/io/system_version.h"
#include "fs/caller/caller_state.h"
#include "fs/write/mount_changes.h"

namespace cframefs::fs {
namespace {

constexpr const char* kNotOwner = "the caller does not own the sparse frame";

/// Returns true if the caller may change the file's rights. A daemon of an ordinary user cannot act as others; there
/// the source decides.
bool acts_for_owner(const Caller& caller, const struct stat& file) {
  return caller.user == 0 || caller.user == file.st_uid || !ActingAs::is_possible();
}

/// Returns the permissions that a directory needs for given rights to its frame: execute (enter) for each read bit, and
/// execute for each write bit, because writing creates files in the directory.
constexpr mode_t with_entering(mode_t rights) {
  return rights | (rights & 0444U) >> 2U | (rights & 0222U) >> 1U;
}

/// Returns true if the kernel may not know of a change. The system reports changes within milliseconds; more is for a
/// busy machine. A time ahead of the clock counts, too.
bool has_just_changed(std::int64_t ctime_ns) {
  constexpr std::int64_t settled_ns = 10'000'000'000;
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  return ctime_ns > now.tv_sec * 1'000'000'000 + now.tv_nsec - settled_ns;
}

/// Returns true if the caller has the rights as the owner of the file. An ACL does not alter those.
bool is_permitted_owner(const struct stat& file, const Caller& caller, int rights) {
  const auto wanted = static_cast<mode_t>(rights) << 6U;
  return file.st_uid == caller.user && (file.st_mode & wanted) == wanted;
}

}  // namespace

codec::Result<void> Rights::check_caller(NodeId id, const Caller& caller, int rights, const FileHandle* opened) {
  if (caller.user == 0 || mount_.options.shown.are_set() || mount_.files.is_remote()) return {};
  const std::shared_ptr<Node> node = mount_.nodes.find(id);
  if (!node || node->role != NodeRole::stored || !ActingAs::is_possible()) return {};
  if (node->kind == EntryKind::sparse_frame) return check_sparse(*node, caller, rights);
  if (opened != nullptr && !has_just_changed(opened->opened_state.ctime_ns)) return {};
  NodeFiles::SharedFile file;
  if (opened != nullptr) {
    file = opened->frame ? opened->frame->file() : opened->file;
  } else if (auto named = attribute_files_.file_with_rights(*node)) {
    file = std::move(*named);
  }
  // A file without a name is open already.
  if (!file) return {};
  const auto status = mount_.files.status(file->handle());
  if (!status) return codec::Failure(status.error());
  if (!has_just_changed(frame::version_of(*status).ctime_ns) || is_permitted_owner(*status, caller, rights)) return {};
  return check_as(caller, file->handle(), rights);
}

codec::Result<void> Rights::check_sparse(Node& node, const Caller& caller, int rights) {
  const auto directory = attribute_files_.attribute_file(node);
  if (!directory) return codec::Failure(directory.error());
  const auto index = attribute_files_.file_with_rights(node);
  if (!index) return codec::Failure(index.error());
  const std::string acl(frame::kAccessAcl);
  const auto is_for_daemon = [&](frame::OpenFile file) {
    const auto status = mount_.files.status(file);
    return (status && has_just_changed(frame::version_of(*status).ctime_ns)) || mount_.files.get_attribute(file, acl);
  };
  if (!is_for_daemon((*directory)->handle()) && !is_for_daemon((*index)->handle())) return {};
  // Writing a sparse frame creates files in its directory.
  if (auto enters = check_as(caller, (*directory)->handle(), X_OK | (rights & W_OK)); !enters) return enters;
  return check_as(caller, (*index)->handle(), rights);
}

codec::Result<void> Rights::check_owner(frame::OpenFile file, const Caller& caller, std::optional<mode_t> only_mode) {
  if (mount_.options.shown.are_set()) return {};
  const auto status = mount_.files.status(file);
  if (!status) return codec::Failure(status.error());
  if (acts_for_owner(caller, *status) || !has_just_changed(frame::version_of(*status).ctime_ns)) return {};
  // The kernel clears bits of the mode when a caller writes who need not be the owner.
  const bool clears_bits = only_mode && (*only_mode & ~status->st_mode) == 0;
  if (clears_bits || may_act_as_owner(caller.process)) return {};
  return codec::io_error(EPERM, "change of rights", "the caller does not own the file");
}

codec::Result<void> Rights::check_as(const Caller& caller, frame::OpenFile file, int rights) {
  codec::Result<void> allowed;
  {
    const ActingAs acting(caller, ActingAs::Groups::all, ActingAs::Rights::callers);
    allowed = mount_.files.check_rights(file, rights);
  }
  // What a capability permits is the kernel's decision.
  return allowed || may_bypass_rights(caller.process) ? codec::Result<void>() : allowed;
}

codec::Result<void> Rights::change_rights(Node& node, const AttributeChanges& changes, const Caller& caller,
                                          ChangePermit& permit) {
  const auto change = [&](frame::OpenFile file) -> codec::Result<void> {
    codec::Result<void> done;
    if (node.kind == EntryKind::sparse_frame && (changes.mode || changes.user || changes.group)) {
      const auto directory = attribute_files_.attribute_file(node);
      if (!directory) return codec::Failure(directory.error());
      done = change_sparse_rights(node, {(*directory)->handle(), file}, changes, caller);
      if (done && changes.user) {
        // attribute_files_.change_file() may repeat the change, on a file that belongs to the new user by then.
        codec::MutexLock lock(node.mutex);
        node.known.status.st_uid = *changes.user;
      }
    } else if (node.kind == EntryKind::sparse_frame) {
      if (const auto index = check_index(node, file); !index) return codec::Failure(index.error());
    } else {
      const bool is_only_mode = !changes.user && !changes.group;
      if (changes.mode || !is_only_mode) done = check_owner(file, caller, is_only_mode ? changes.mode : std::nullopt);
      if (done) done = change_rights_of(file, changes, {});
    }
    if (!done || !changes.times) return done;
    done = mount_.files.set_times(file, *changes.times);
    if (const auto writer = done ? write_back_of(node) : nullptr) MountChanges(*writer).note_times((*changes.times)[1]);
    return done;
  };
  const auto what = changes.times ? KernelPages::SelfChange::times : KernelPages::SelfChange::ctime;
  return attribute_files_.change_file(
      node, what, [&] { return attribute_files_.file_with_rights(node); }, change, permit);
}

codec::Result<void> Rights::change_rights_of(frame::OpenFile file, const AttributeChanges& changes,
                                             const Caller& caller) {
  codec::Result<void> done;
  if (changes.user || changes.group) {
    done = mount_.files.change_owner(file, changes.user.value_or(static_cast<uid_t>(-1)),
                                     changes.group.value_or(static_cast<gid_t>(-1)));
  }
  if (!done || !changes.mode) return done;
  // The kernel has checked the caller against the group that the node showed, which may have changed since.
  const mode_t mode = *changes.mode & 07777U;
  if ((mode & S_ISGID) == 0) return mount_.files.change_mode(file, mode);
  return as_caller(caller, mode, [&] { return mount_.files.change_mode(file, mode); });
}

codec::Result<struct stat> Rights::check_index(Node& node, frame::OpenFile index) {
  auto status = mount_.files.status(index);
  if (!status) return status;
  codec::MutexLock lock(node.mutex);
  const bool is_same = S_ISREG(status->st_mode) && status->st_uid == node.known.status.st_uid;
  return is_same ? status : codec::stale("another index has replaced it");
}

codec::Result<void> Rights::change_sparse_rights(Node& node, const SparseFiles& frame, const AttributeChanges& changes,
                                                 const Caller& caller) {
  const auto index = check_index(node, frame.index);
  if (!index) return codec::Failure(index.error());
  if (!acts_for_owner(caller, *index)) {
    // A writer that does not own the file may only clear set-ID bits, which the kernel does in its name.
    if (!changes.mode || changes.user || changes.group) return codec::io_error(EPERM, "setattr", kNotOwner);
    return mount_.files.change_mode(frame.index, index->st_mode & (*changes.mode | ~kSetIds) & 07777U);
  }
  AttributeChanges of_chunks = changes;
  AttributeChanges of_directory = changes;
  if (changes.mode) {
    // Files of chunks get no set-ID bits.
    of_chunks.mode = *changes.mode & 0777U;
    of_directory.mode = with_entering(*changes.mode & 0777U) | (*changes.mode & S_ISGID);
  }
  return change_sparse(frame, *index,
                       {[&](frame::OpenFile file) { return change_rights_of(file, changes, caller); },
                        [&](frame::OpenFile file) { return change_rights_of(file, of_chunks, {}); },
                        [&](frame::OpenFile file) { return change_rights_of(file, of_directory, caller); }});
}

codec::Result<void> Rights::change_sparse(const SparseFiles& frame, const struct stat& index,
                                          const SparseChange& change) {
  const auto directory = mount_.files.status(frame.directory);
  if (!directory) return codec::Failure(directory.error());
  const bool is_owners = directory->st_uid == index.st_uid;
  if (is_owners || directory->st_uid == 0) {
    if (auto done = change_chunk_files(frame.directory, index, change.chunk); !done) return done;
  }
  if (is_owners) {
    if (auto done = change.directory(frame.directory); !done) return done;
  }
  return change.index(frame.index);
}

/// Changes the files of chunks, because other programs read them. Skips files that may not be the frame's own: a file
/// of another user, and a file with a second name.
codec::Result<void> Rights::change_chunk_files(frame::OpenFile directory, const struct stat& index,
                                               const ChangeFile& change) {
  const auto entries = mount_.files.list(directory);
  if (!entries) return codec::Failure(entries.error());
  for (const frame::DirectoryEntry& entry : *entries) {
    const auto file = mount_.tree.open_entry(directory, entry.name, O_PATH | O_NOFOLLOW);
    if (!file) continue;  // a commit has removed it
    const auto status = mount_.files.status((*file)->handle());
    if (!status || !S_ISREG(status->st_mode) || status->st_uid != index.st_uid || status->st_nlink != 1) continue;
    if (status->st_ino == index.st_ino && status->st_dev == index.st_dev) continue;
    if (auto done = change((*file)->handle()); !done) return done;
  }
  return {};
}

codec::Result<void> Rights::change_acl(Node& node, frame::OpenFile opened, const std::string& name,
                                       const std::string* value, const Caller& caller) {
  const auto set = [&](frame::OpenFile file, const std::string& acl) {
    // As the caller: whether a new ACL clears the set-group-id bit depends on the caller's groups.
    return as_caller(caller, S_ISGID, [&] { return mount_.files.set_attribute(file, name, acl, 0); });
  };
  const auto change = [&](frame::OpenFile file) {
    return value ? set(file, *value) : mount_.files.remove_attribute(file, name);
  };
  if (node.kind != EntryKind::sparse_frame) {
    const auto owned = check_owner(opened, caller);
    return owned ? change(opened) : owned;
  }
  const auto index = check_index(node, opened);
  if (!index) return codec::Failure(index.error());
  if (!acts_for_owner(caller, *index)) return codec::io_error(EPERM, "setxattr", kNotOwner);
  const auto directory = attribute_files_.attribute_file(node);
  if (!directory) return codec::Failure(directory.error());
  const auto change_or_none = [&](frame::OpenFile file, const std::string& acl) {
    if (value) return set(file, acl);
    auto removed = mount_.files.remove_attribute(file, name);
    return !removed && removed.error().sys == ENODATA ? codec::Result<void>() : removed;
  };
  const std::string of_directory = value ? frame::with_permissions(*value, with_entering) : std::string();
  return change_sparse(
      {(*directory)->handle(), opened}, *index,
      {change, [&](frame::OpenFile file) { return change_or_none(file, value ? *value : std::string()); },
       [&](frame::OpenFile file) { return change_or_none(file, of_directory); }});
}

}  // namespace cframefs::fs
