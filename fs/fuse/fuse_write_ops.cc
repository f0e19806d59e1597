// Requests that open files or change something.
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/fuse/fuse_requests.h"
#include "fs/fuse/open_answers.h"
#include "fs/fuse/passed_files.h"

namespace cframefs::fs {
namespace {

constexpr mode_t kPrivileges = S_ISUID | S_ISGID;
constexpr const char* kCapability = "security.capability";

/// Returns true if writes through the handle may bypass the kernel's page cache. The kernel neither syncs after direct
/// writes nor clears privileges, so handles with O_DSYNC and files with privileges use the page cache. `mode_of_new`:
/// of a file that was created for the handle, and has no capability.
bool may_write_directly(FuseAdapter& adapter, const fuse_file_info& info, FileHandle& handle,
                        std::optional<mode_t> mode_of_new) {
  if (!adapter.writes_directly() || handle.frame == nullptr) return false;
  if ((info.flags & O_ACCMODE) != O_WRONLY || (info.flags & O_DSYNC) != 0) return false;
  if (mode_of_new) return (*mode_of_new & kPrivileges) == 0;
  const NodeId node = handle.node->id;
  const auto attributes = adapter.filesystem().attributes().of(node, &handle);
  return attributes && (attributes->status.st_mode & kPrivileges) == 0 &&
         !adapter.filesystem().extended_attributes().get(node, kCapability);
}

/// Returns the bits to clear in a file's mode.
using Taken = mode_t (*)(const struct stat&);

mode_t all_privileges(const struct stat&) {
  return kPrivileges;
}

/// The bits that the kernel clears when it truncates a file itself. Without execute permission for the group the
/// set-group-id bit gives no privilege.
mode_t privileges_to_execute(const struct stat& file) {
  return (file.st_mode & S_IXGRP) != 0 ? kPrivileges : S_ISUID;
}
mode_t no_privileges(const struct stat&) {
  return 0;
}

/// Removes a file's capability and the mode bits that `taken` returns. The kernel keeps them for a privileged writer;
/// the daemon does not know which writers are privileged.
codec::Result<void> drop_privileges(Filesystem& filesystem, FileHandle& handle, const Caller& caller, Taken taken) {
  const NodeId node = handle.node->id;
  const auto attributes = filesystem.attributes().of(node, &handle);
  if (!attributes) return codec::Failure(attributes.error());
  if (filesystem.extended_attributes().get(node, kCapability)) {
    if (auto removed = filesystem.extended_attributes().remove(node, kCapability); !removed) return removed;
  }
  const mode_t mode = attributes->status.st_mode;
  const mode_t lent = taken(attributes->status) & mode;
  if (lent == 0) return {};
  AttributeChanges changes;
  changes.mode = mode & ~lent;
  const auto changed = filesystem.attributes().change(node, &handle, changes, caller);
  return changed ? codec::Result<void>() : codec::Failure(changed.error());
}

/// Fills what open_answers.h sends as the answer to an open, and transfers the handle to the open handles.
/// `mode_of_new`: as may_write_directly().
void fill_open(FuseAdapter& adapter, fuse_file_info* info, std::unique_ptr<FileHandle> handle,
               std::optional<mode_t> mode_of_new = std::nullopt) {
  info->keep_cache = handle->keep_pages ? 1 : 0;
  try_in_memory([&] { handle->direct = handle->direct || may_write_directly(adapter, *info, *handle, mode_of_new); });
  info->direct_io = handle->direct ? 1 : 0;
  info->noflush = handle->writable ? 0 : 1;
  try {
    info->fh = to_kernel(adapter.files().add(std::move(handle)));
  } catch (...) {
    adapter.filesystem().files().release(std::move(handle));
    throw;
  }
}

void close_handle(FuseAdapter& adapter, const fuse_file_info* info) {
  if (auto handle = adapter.files().remove(from_kernel<FileHandle>(info)))
    adapter.filesystem().files().release(std::move(handle));
}

// The flag by which the kernel opens a program that execve(2) is to run.
constexpr int kOpensToExecute = 040;

int rights_to_open(int flags) {
  // A user may have the right to execute a program without the right to read it.
  if ((flags & kOpensToExecute) != 0) return X_OK;
  const int mode = flags & O_ACCMODE;
  const int truncates = (flags & O_TRUNC) != 0 ? W_OK : 0;
  return truncates | (mode != O_WRONLY ? R_OK : 0) | (mode != O_RDONLY ? W_OK : 0);
}

/// Opens a file for the caller, whose rights are checked if the kernel could not.
codec::Result<std::unique_ptr<FileHandle>> open_as_allowed(Filesystem& filesystem, fuse_ino_t node, int flags) {
  const auto check = [&](const FileHandle* opened) {
    return filesystem.rights().check_caller(node, this_caller(), rights_to_open(flags), opened);
  };
  const bool truncates = (flags & O_TRUNC) != 0;
  if (truncates) {
    // Before the open, because that truncates.
    if (auto allowed = check(nullptr); !allowed) return codec::Failure(allowed.error());
  }
  auto handle = filesystem.files().open(node, flags);
  if (!handle || truncates) return handle;
  auto allowed = check(handle->get());
  if (allowed) return handle;
  filesystem.files().release(std::move(*handle));
  return codec::Failure(allowed.error());
}

void on_open(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  FuseAdapter& adapter = this_adapter();
  // claim(): an abandoned open must not truncate after another program has written.
  if ((info->flags & O_TRUNC) != 0 && !PendingRequest::current()->claim()) return;
  auto handle = open_as_allowed(adapter.filesystem(), node, info->flags);
  if (!handle) return reply_error(request, handle.error());
  if ((info->flags & O_TRUNC) != 0) {
    // The kernel leaves the clearing of privileges to the daemon, as it does the truncation.
    const Caller caller = this_caller();
    const auto dropped = drop_privileges(adapter.filesystem(), **handle, caller,
                                         caller.user == 0 ? no_privileges : privileges_to_execute);
    if (!dropped) {
      adapter.filesystem().files().release(std::move(*handle));
      return reply_error(request, dropped.error());
    }
  }
  if (auto passed = pass_to_kernel(adapter, **handle, info->flags); !passed) {
    adapter.filesystem().files().release(std::move(*handle));
    return reply_error(request, passed.error());
  }
  const bool is_passed = (*handle)->backing && (*handle)->backing->has_id();
  const bool is_same = is_passed ? (*handle)->same_state && !(*handle)->writable : (*handle)->keep_pages;
  // The attributes that the kernel keeps may belong to an older state, and those of a file that the kernel writes
  // itself are not kept from now on. A notification of attributes never waits.
  const bool fresh = !is_same || !(*handle)->node->kept.are_of((*handle)->opened_state);
  if (fresh) (*handle)->node->kept.take();
  fill_open(adapter, info, std::move(*handle));
  if (fresh) until_there_is_memory([&] { adapter.kernel().forget_attributes(node); });
  if (reply_with([&] { return reply_opened(request, *info); }) == -ENOENT)
    try_in_memory([&] { close_handle(adapter, info); });
}

/// Returns the mode of a new file, without set-ID bits if the mount shows owners that are not those of the source.
mode_t mode_of_new(mode_t mode) {
  return this_filesystem().options().shown.are_set() ? mode & ~kSetIds : mode;
}

void on_create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* info) {
  FuseAdapter& adapter = this_adapter();
  auto created = adapter.filesystem().names().create(parent, name, info->flags, mode_of_new(mode), this_caller(),
                                                     *PendingRequest::current());
  if (!created) return reply_error(request, created.error());
  const fuse_entry_param entry = entry_of(created->attributes);
  if (auto passed = pass_to_kernel(adapter, *created->handle, info->flags); !passed) {
    adapter.filesystem().files().release(std::move(created->handle));
    try_in_memory([&] { adapter.filesystem().names().forget(entry.ino, 1); });
    return reply_error(request, passed.error());
  }
  fill_open(adapter, info, std::move(created->handle), created->attributes.status.st_mode);
  if (reply_with([&] { return reply_created(request, entry, *info); }) == -ENOENT) {
    try_in_memory([&] { close_handle(adapter, info); });
    try_in_memory([&] { adapter.filesystem().names().forget(entry.ino, 1); });
  }
}

void on_flush(fuse_req_t request, fuse_ino_t /*node*/, fuse_file_info* info) {
  // If a signal ends the program during this call, the file is still committed, at the latest at RELEASE.
  reply_result(request, this_filesystem().files().flush(*from_kernel<FileHandle>(info)));
}

void on_release(fuse_req_t request, fuse_ino_t /*node*/, fuse_file_info* info) {
  close_handle(this_adapter(), info);
  reply_errno(request, 0);
}

void on_mkdir(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  reply_entry(request,
              this_filesystem().names().make_directory(parent, name, mode, this_caller(), *PendingRequest::current()));
}

void on_mknod(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  reply_entry(request, this_filesystem().names().make_node(parent, name, mode_of_new(mode), device, this_caller(),
                                                           *PendingRequest::current()));
}

void on_symlink(fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) {
  reply_entry(request,
              this_filesystem().names().make_symlink(parent, name, target, this_caller(), *PendingRequest::current()));
}

void on_link(fuse_req_t request, fuse_ino_t node, fuse_ino_t parent, const char* name) {
  reply_entry(request, this_filesystem().names().link(node, parent, name, *PendingRequest::current()));
}

void on_unlink(fuse_req_t request, fuse_ino_t parent, const char* name) {
  reply_result(request, this_filesystem().names().remove(parent, name, false, *PendingRequest::current()));
}

void on_rmdir(fuse_req_t request, fuse_ino_t parent, const char* name) {
  reply_result(request, this_filesystem().names().remove(parent, name, true, *PendingRequest::current()));
}

void on_rename(fuse_req_t request, fuse_ino_t from_parent, const char* from, fuse_ino_t to_parent, const char* to,
               unsigned flags) {
  reply_result(request,
               this_filesystem().names().rename(from_parent, from, to_parent, to, flags, *PendingRequest::current()));
}

AttributeChanges changes_of(const struct stat& wanted, int what) {
  AttributeChanges changes;
  if ((what & FUSE_SET_ATTR_MODE) != 0) changes.mode = wanted.st_mode;
  if ((what & FUSE_SET_ATTR_UID) != 0) changes.user = wanted.st_uid;
  if ((what & FUSE_SET_ATTR_GID) != 0) changes.group = wanted.st_gid;
  if ((what & FUSE_SET_ATTR_SIZE) != 0) changes.size = static_cast<std::uint64_t>(wanted.st_size);
  constexpr int kTimes = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;
  if ((what & kTimes) != 0) {
    const auto time = [what](int set, int now, const struct timespec& value) {
      if ((what & now) != 0) return timespec{0, UTIME_NOW};
      return (what & set) != 0 ? value : timespec{0, UTIME_OMIT};
    };
    changes.times = {time(FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, wanted.st_atim),
                     time(FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, wanted.st_mtim)};
  }
  return changes;
}

/// Checks that a file to be truncated by name is writable, and so is a file whose times are set to now, unless the
/// caller owns it.
codec::Result<void> check_change(fuse_ino_t node, int what) {
  const bool truncates = (what & FUSE_SET_ATTR_SIZE) != 0;
  const bool touches = (what & FUSE_SET_ATTR_MTIME_NOW) != 0;
  if (!truncates && !touches) return {};
  const Caller caller = this_caller();
  auto allowed = this_filesystem().rights().check_caller(node, caller, W_OK);
  if (allowed || truncates) return allowed;
  const auto attributes = this_filesystem().attributes().of(node, nullptr);
  return attributes && attributes->status.st_uid == caller.user ? codec::Result<void>() : allowed;
}

void on_setattr(fuse_req_t request, fuse_ino_t node, struct stat* wanted, int what, fuse_file_info* info) {
  FileHandle* handle = info != nullptr ? from_kernel<FileHandle>(info) : nullptr;
  const auto allowed = handle == nullptr ? check_change(node, what) : codec::Result<void>();
  if (!allowed) return reply_error(request, allowed.error());
  if ((what & FUSE_SET_ATTR_MODE) != 0 && (wanted->st_mode & kPrivileges) != 0) this_adapter().note_privileges();
  auto attributes = this_filesystem().attributes().change(node, handle, changes_of(*wanted, what), this_caller(),
                                                          *PendingRequest::current());
  if (!attributes) return reply_error(request, attributes.error());
  reply_with([&] { return fuse_reply_attr(request, &attributes->status, attributes->attr_timeout); });
}

codec::Result<void> sync(FileHandle& handle, bool data_only) {
  PendingRequest::current()->waits_for_disk();
  return this_filesystem().files().sync(handle, data_only);
}

void on_write(fuse_req_t request, fuse_ino_t /*node*/, const char* bytes, std::size_t size, off_t offset,
              fuse_file_info* info) {
  Filesystem& filesystem = this_filesystem();
  FileHandle& handle = *from_kernel<FileHandle>(info);
  if (handle.direct && this_adapter().knows_of_privileges()) {
    if (auto dropped = drop_privileges(filesystem, handle, this_caller(), all_privileges); !dropped)
      return reply_error(request, dropped.error());
  }
  auto done = filesystem.files().write(handle, static_cast<std::uint64_t>(offset), bytes_of(bytes, size),
                                       info->writepage != 0, *PendingRequest::current());
  if (!done) return reply_error(request, done.error());
  // The kernel leaves O_SYNC, O_DSYNC, RWF_SYNC, RWF_DSYNC and the mount option sync of direct writes to the daemon.
  if (handle.direct && (info->flags & O_DSYNC) != 0) {
    const bool data_only = (info->flags & O_SYNC) != O_SYNC;
    if (auto synced = sync(handle, data_only); !synced) return reply_error(request, synced.error());
  }
  reply_with([&] { return fuse_reply_write(request, size); });
}

void on_fsync(fuse_req_t request, fuse_ino_t /*node*/, int data_only, fuse_file_info* info) {
  reply_result(request, sync(*from_kernel<FileHandle>(info), data_only != 0));
}

void on_fsyncdir(fuse_req_t request, fuse_ino_t node, int /*data_only*/, fuse_file_info* /*info*/) {
  PendingRequest::current()->waits_for_disk();
  reply_result(request, this_filesystem().directories().sync(node));
}

void on_fallocate(fuse_req_t request, fuse_ino_t /*node*/, int mode, off_t offset, off_t length, fuse_file_info* info) {
  reply_result(request, this_filesystem().files().allocate(*from_kernel<FileHandle>(info), mode,
                                                           static_cast<std::uint64_t>(offset),
                                                           static_cast<std::uint64_t>(length)));
}

void on_copy_file_range(fuse_req_t request, fuse_ino_t /*from_node*/, off_t from_at, fuse_file_info* from,
                        fuse_ino_t /*to_node*/, off_t to_at, fuse_file_info* to, std::size_t length, int /*flags*/) {
  auto copied = this_filesystem().files().copy_range(
      *from_kernel<FileHandle>(from), static_cast<std::uint64_t>(from_at), *from_kernel<FileHandle>(to),
      static_cast<std::uint64_t>(to_at), length, *PendingRequest::current());
  if (!copied) return reply_error(request, copied.error());
  reply_with([&] { return fuse_reply_write(request, *copied); });
}

void on_setxattr(fuse_req_t request, fuse_ino_t node, const char* name, const char* value, std::size_t size,
                 int flags) {
  if (std::string_view(name) == kCapability) this_adapter().note_privileges();
  if (auto allowed = check_attribute(node, name, W_OK); !allowed) return reply_error(request, allowed.error());
  reply_result(request, this_filesystem().extended_attributes().set(node, name, std::string(value, size), flags,
                                                                    this_caller(), *PendingRequest::current()));
}

void on_removexattr(fuse_req_t request, fuse_ino_t node, const char* name) {
  if (auto allowed = check_attribute(node, name, W_OK); !allowed) return reply_error(request, allowed.error());
  reply_result(request,
               this_filesystem().extended_attributes().remove(node, name, this_caller(), *PendingRequest::current()));
}

}  // namespace

void register_write_ops(fuse_lowlevel_ops& ops) {
  ops.open = answered<on_open>;
  ops.create = answered_for_entry<on_create>;
  ops.flush = answered<on_flush, Abandon::when_interrupted>;
  ops.release = answered<on_release, Abandon::never>;
  ops.mkdir = answered_for_entry<on_mkdir>;
  ops.mknod = answered_for_entry<on_mknod>;
  ops.symlink = answered_for_entry<on_symlink>;
  ops.link = answered<on_link>;
  ops.unlink = answered_for_entry<on_unlink>;
  ops.rmdir = answered_for_entry<on_rmdir>;
  ops.rename = answered_for_entry<on_rename>;
  ops.setattr = answered<on_setattr>;
  ops.write = answered<on_write>;
  ops.fsync = answered<on_fsync, Abandon::when_interrupted>;
  ops.fsyncdir = answered<on_fsyncdir, Abandon::when_interrupted>;
  ops.fallocate = answered<on_fallocate, Abandon::never>;
  ops.copy_file_range = answered<on_copy_file_range, Abandon::when_interrupted>;
  ops.setxattr = answered<on_setxattr>;
  ops.removexattr = answered<on_removexattr>;
}

}  // namespace cframefs::fs
