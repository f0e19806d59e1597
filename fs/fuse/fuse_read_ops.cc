// Requests that change nothing: names, attributes, directories, contents.
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/fuse/fuse_requests.h"

namespace cframefs::fs {
namespace {

void on_lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  reply_entry(request, this_filesystem().names().lookup(parent, name));
}

/// Returns the filesystem of a request that has no PendingRequest, because it gets no reply.
Filesystem& filesystem_of(fuse_req_t request) {
  return static_cast<FuseAdapter*>(fuse_req_userdata(request))->filesystem();
}

void on_forget(fuse_req_t request, fuse_ino_t node, std::uint64_t lookups) {
  try_in_memory([&] { filesystem_of(request).names().forget(node, lookups); });
  fuse_reply_none(request);
}

void on_forget_multi(fuse_req_t request, std::size_t count, fuse_forget_data* forgets) {
  for (std::size_t i = 0; i < count; ++i)
    try_in_memory([&] { filesystem_of(request).names().forget(forgets[i].ino, forgets[i].nlookup); });
  fuse_reply_none(request);
}

void on_getattr(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  FileHandle* handle = info != nullptr ? from_kernel<FileHandle>(info) : nullptr;
  auto attributes = this_filesystem().attributes().of(node, handle);
  if (!attributes) return reply_error(request, attributes.error());
  if (this_adapter().refuses_cached_writes() && S_ISREG(attributes->status.st_mode)) {
    reply_errno(request, ENOTCONN);
    return;
  }
  reply_with([&] { return fuse_reply_attr(request, &attributes->status, attributes->attr_timeout); });
}

void on_readlink(fuse_req_t request, fuse_ino_t node) {
  auto target = this_filesystem().links().read_link(node);
  if (!target) return reply_error(request, target.error());
  reply_with([&] { return fuse_reply_readlink(request, target->c_str()); });
}

void on_opendir(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  FuseAdapter& adapter = this_adapter();
  auto handle = adapter.filesystem().directories().open(node);
  if (!handle) return reply_error(request, handle.error());
  info->fh = to_kernel(adapter.directories().add(std::move(*handle)));
  if (reply_with([&] { return fuse_reply_open(request, info); }) == -ENOENT)
    adapter.directories().remove(from_kernel<DirectoryHandle>(info));
}

void on_releasedir(fuse_req_t request, fuse_ino_t /*node*/, fuse_file_info* info) {
  until_there_is_memory([&] { this_filesystem().directories().names_arrived(*from_kernel<DirectoryHandle>(info)); });
  this_adapter().directories().remove(from_kernel<DirectoryHandle>(info));
  reply_errno(request, 0);
}

unsigned mode_of(EntryKind kind) {
  switch (kind) {
    case EntryKind::directory:
      return S_IFDIR;
    case EntryKind::symlink:
    case EntryKind::frame_link:
      return S_IFLNK;
    case EntryKind::plain:
    case EntryKind::frame:
    case EntryKind::sparse_frame:
    case EntryKind::packed_array:
      return S_IFREG;
    case EntryKind::none:
    case EntryKind::other:
      break;
  }
  return 0;
}

// Entries 0 and 1 are "." and "..".
struct Listing {
  Filesystem& filesystem;
  DirectoryHandle& directory;
  /// Reads the entries at offset 0, so that rewinddir(3) lists the current state.
  codec::Result<void> begin(off_t offset) const REQUIRES(directory.mutex) {
    return offset == 0 || !directory.is_listed ? filesystem.directories().list(directory) : codec::Result<void>();
  }
  std::uint64_t inode(std::size_t i) const REQUIRES(directory.mutex) {
    if (i == 0) return Directories::own_inode(directory);
    return i == 1 ? filesystem.directories().parent_inode(directory)
                  : filesystem.directories().shown_inode(directory, directory.entries[i - 2].stored);
  }
  /// Takes a turn for a large directory. Returns an empty turn for a small one, if the caller is gone, and if the turns
  /// in use make no progress.
  codec::Turns::Turn take_turn() const {
    {
      codec::MutexLock lock(directory.mutex);
      if (!filesystem.directories().is_large(directory)) return {};
    }
    PendingRequest* const pending = PendingRequest::current();
    return this_adapter().listings().take_while_they_move(codec::Turns::kPatience,
                                                          [pending] { return pending->is_waited_for(); });
  }
  std::size_t size() const REQUIRES(directory.mutex) { return directory.entries.size() + 2; }
  const char* name(std::size_t i) const REQUIRES(directory.mutex) {
    return i == 0 ? "." : i == 1 ? ".." : directory.entries[i - 2].shown.c_str();
  }
  unsigned mode(std::size_t i) const REQUIRES(directory.mutex) {
    return i < 2 ? S_IFDIR : mode_of(directory.entries[i - 2].stored.kind);
  }
};

/// The answer to a request for entries. It is complete before it is sent, because the kernel may release the directory
/// after that.
struct EntryBuffer {
  std::vector<char> buffer;
  std::size_t used = 0;
  std::vector<NodeId> entered;  // nodes whose look-up the kernel will count
};

codec::Result<void> add_names(fuse_req_t request, const Listing& listing, off_t offset, EntryBuffer& to) {
  codec::MutexLock lock(listing.directory.mutex);
  if (auto begun = listing.begin(offset); !begun) return begun;
  for (auto i = static_cast<std::size_t>(offset); i < listing.size(); ++i) {
    struct stat status {};
    status.st_mode = listing.mode(i);
    status.st_ino = listing.inode(i);
    const std::size_t left = to.buffer.size() - to.used;
    const std::size_t length = fuse_add_direntry(request, to.buffer.data() + to.used, left, listing.name(i), &status,
                                                 static_cast<off_t>(i + 1));
    if (length > left) break;
    to.used += length;
  }
  return {};
}

codec::Result<void> add_entries(fuse_req_t request, const Listing& listing, fuse_ino_t node, off_t offset,
                                EntryBuffer& to) {
  Filesystem& filesystem = listing.filesystem;
  codec::MutexLock lock(listing.directory.mutex);
  if (auto begun = listing.begin(offset); !begun) return begun;
  for (auto i = static_cast<std::size_t>(offset); i < listing.size(); ++i) {
    const char* name = listing.name(i);
    fuse_entry_param entry{};
    entry.attr.st_mode = listing.mode(i);
    // An entry that was removed since is listed without attributes, as readdir(3) allows. So are the first entries: the
    // kernel asks for attributes at the beginning of each listing, and later if a program uses those of the entries.
    to.entered.reserve(to.entered.size() + 1);
    auto found = i < 2 || offset == 0 ? codec::Result<Attributes>(codec::io_error(ENOENT, "lookup"))
                                      : or_no_memory([&] { return filesystem.names().lookup(node, name); });
    if (found) {
      entry = entry_of(*found);
    } else {
      entry.attr.st_ino = listing.inode(i);
    }
    const std::size_t left = to.buffer.size() - to.used;
    const std::size_t length =
        fuse_add_direntry_plus(request, to.buffer.data() + to.used, left, name, &entry, static_cast<off_t>(i + 1));
    if (length > left) {
      if (entry.ino != 0) filesystem.names().forget(entry.ino, 1);
      break;
    }
    if (entry.ino != 0) to.entered.push_back(entry.ino);
    to.used += length;
  }
  return {};
}

void on_readdir(fuse_req_t request, fuse_ino_t /*node*/, std::size_t size, off_t offset, fuse_file_info* info) {
  const Listing listing{this_filesystem(), *from_kernel<DirectoryHandle>(info)};
  listing.filesystem.directories().names_arrived(listing.directory);
  const codec::Turns::Turn turn = listing.take_turn();
  EntryBuffer entries{std::vector<char>(size), 0, {}};
  if (auto added = add_names(request, listing, offset, entries); !added) return reply_error(request, added.error());
  reply_with([&] { return fuse_reply_buf(request, entries.buffer.data(), entries.used); });
}

void on_readdirplus(fuse_req_t request, fuse_ino_t node, std::size_t size, off_t offset, fuse_file_info* info) {
  Filesystem& filesystem = this_filesystem();
  const Listing listing{filesystem, *from_kernel<DirectoryHandle>(info)};
  filesystem.directories().names_arrived(listing.directory);
  if (offset > 0) filesystem.directories().begin_names(listing.directory);
  const codec::Turns::Turn turn = listing.take_turn();
  EntryBuffer entries{std::vector<char>(size), 0, {}};
  if (auto added = add_entries(request, listing, node, offset, entries); !added)
    return reply_error(request, added.error());
  if (reply_with([&] { return fuse_reply_buf(request, entries.buffer.data(), entries.used); }) == -ENOENT) {
    for (const NodeId id : entries.entered)
      try_in_memory([&] { filesystem.names().forget(id, 1); });
  }
}

void on_read(fuse_req_t request, fuse_ino_t /*node*/, std::size_t size, off_t offset, fuse_file_info* info) {
  PendingRequest* const pending = PendingRequest::current();
  Reply reply(ReadPermit([pending] { return pending->is_waited_for(); }));
  FileHandle& handle = *from_kernel<FileHandle>(info);
  const bool holds_pages = !handle.direct && (info->flags & O_DIRECT) == 0;
  auto done = this_filesystem().files().read(handle, static_cast<std::uint64_t>(offset), size, reply, holds_pages);
  if (!done) return reply_error(request, done.error());
  reply_with([&] { return fuse_reply_iov(request, reply.parts().data(), static_cast<int>(reply.parts().size())); });
}

void on_lseek(fuse_req_t request, fuse_ino_t /*node*/, off_t offset, int whence, fuse_file_info* info) {
  // With its write-back cache the kernel sends lseek before it has written dirty pages. ENOSYS makes it treat all as
  // data.
  if (this_filesystem().options().kernel_cache.writeback) {
    reply_errno(request, ENOSYS);
    return;
  }
  auto found =
      this_filesystem().files().seek(*from_kernel<FileHandle>(info), static_cast<std::uint64_t>(offset), whence);
  if (!found) return reply_error(request, found.error());
  reply_with([&] { return fuse_reply_lseek(request, static_cast<off_t>(*found)); });
}

void on_statfs(fuse_req_t request, fuse_ino_t /*node*/) {
  auto status = this_filesystem().filesystem_status();
  if (!status) return reply_error(request, status.error());
  reply_with([&] { return fuse_reply_statfs(request, &*status); });
}

/// With size 0 getxattr(2) and listxattr(2) request the size of the answer only.
void reply_attribute(fuse_req_t request, const std::string& value, std::size_t size) {
  if (size == 0) {
    reply_with([&] { return fuse_reply_xattr(request, value.size()); });
  } else if (value.size() > size) {
    reply_errno(request, ERANGE);
  } else {
    reply_with([&] { return fuse_reply_buf(request, value.data(), value.size()); });
  }
}

void on_getxattr(fuse_req_t request, fuse_ino_t node, const char* name, std::size_t size) {
  if (auto allowed = check_attribute(node, name, R_OK); !allowed) return reply_error(request, allowed.error());
  auto value = this_filesystem().extended_attributes().get(node, name);
  if (!value) return reply_error(request, value.error());
  reply_attribute(request, *value, size);
}

void on_listxattr(fuse_req_t request, fuse_ino_t node, std::size_t size) {
  auto names = this_filesystem().extended_attributes().list(node);
  if (!names) return reply_error(request, names.error());
  std::string list;
  for (const std::string& name : *names)
    list.append(name).push_back('\0');
  reply_attribute(request, list, size);
}

}  // namespace

void register_read_ops(fuse_lowlevel_ops& ops) {
  ops.lookup = answered_for_entry<on_lookup>;
  ops.forget = on_forget;
  ops.forget_multi = on_forget_multi;
  ops.getattr = answered<on_getattr>;
  ops.readlink = answered<on_readlink>;
  ops.opendir = answered<on_opendir>;
  ops.readdir = answered<on_readdir>;
  ops.readdirplus = answered<on_readdirplus>;
  ops.releasedir = answered<on_releasedir, Abandon::never>;
  ops.read = answered<on_read, Abandon::when_interrupted>;
  ops.lseek = answered<on_lseek>;
  ops.statfs = answered<on_statfs>;
  ops.getxattr = answered<on_getxattr>;
  ops.listxattr = answered<on_listxattr>;
}

}  // namespace cframefs::fs
