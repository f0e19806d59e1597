#define FUSE_USE_VERSION 312

#include "fs/fuse_adapter.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fuse_lowlevel.h>
#include <sys/stat.h>

#include "fs/errno_table.h"
#include "fs/log.h"

namespace cframefs::fs {
namespace {

constexpr unsigned kMaxRequest = 1U << 20;
constexpr unsigned kMaxBackground = 64;

FuseAdapter& adapter_of(fuse_req_t request) {
  return *static_cast<FuseAdapter*>(fuse_req_userdata(request));
}
Filesystem& filesystem_of(fuse_req_t request) {
  return adapter_of(request).filesystem();
}

template <class Handle>
std::uint64_t to_kernel(std::unique_ptr<Handle> handle) {
  return reinterpret_cast<std::uint64_t>(handle.release());
}
template <class Handle>
Handle* from_kernel(const fuse_file_info* info) {
  return reinterpret_cast<Handle*>(info->fh);
}

void reply_error(fuse_req_t request, const codec::Error& error) {
  fuse_reply_err(request, to_errno(error));
}

fuse_entry_param entry_of(const Attributes& attributes) {
  fuse_entry_param entry{};
  entry.ino = attributes.node;
  entry.attr = attributes.status;
  entry.attr_timeout = attributes.attr_timeout;
  entry.entry_timeout = attributes.entry_timeout;
  return entry;
}

void on_init(void* userdata, fuse_conn_info* connection) {
  // Replies go from our buffers with one writev; splicing them through a pipe is slower.
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
  // Otherwise the kernel would ask for the attributes at every read, also of what it holds. Pages of an older state are
  // dropped at open, at stat, and when the watcher tells.
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_AUTO_INVAL_DATA);
  connection->max_read = kMaxRequest;
  // The kernel takes the lower of this and of what is set for the mount, which the daemon raises where it may.
  connection->max_readahead = kMaxRequest;
  connection->max_write = kMaxRequest;
  connection->max_background = kMaxBackground;
  connection->congestion_threshold = kMaxBackground * 3 / 4;
  connection->time_gran = 1;
  static_cast<FuseAdapter*>(userdata)->ready();
}

void on_lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  auto found = filesystem_of(request).lookup(parent, name);
  if (!found) return reply_error(request, found.error());
  const fuse_entry_param entry = entry_of(*found);
  // Interrupted: the kernel does not know of this look-up.
  if (fuse_reply_entry(request, &entry) == -ENOENT) filesystem_of(request).forget(entry.ino, 1);
}

void on_forget(fuse_req_t request, fuse_ino_t node, std::uint64_t lookups) {
  filesystem_of(request).forget(node, lookups);
  fuse_reply_none(request);
}

void on_forget_multi(fuse_req_t request, std::size_t count, fuse_forget_data* forgets) {
  for (std::size_t i = 0; i < count; ++i)
    filesystem_of(request).forget(forgets[i].ino, forgets[i].nlookup);
  fuse_reply_none(request);
}

void on_getattr(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  FileHandle* handle = info != nullptr ? from_kernel<FileHandle>(info) : nullptr;
  auto attributes = filesystem_of(request).attributes(node, handle);
  if (!attributes) return reply_error(request, attributes.error());
  fuse_reply_attr(request, &attributes->status, attributes->attr_timeout);
}

void on_readlink(fuse_req_t request, fuse_ino_t node) {
  auto target = filesystem_of(request).read_link(node);
  if (!target) return reply_error(request, target.error());
  fuse_reply_readlink(request, target->c_str());
}

void on_opendir(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  auto handle = filesystem_of(request).open_directory(node);
  if (!handle) return reply_error(request, handle.error());
  DirectoryHandle* raw = handle->get();
  info->fh = to_kernel(std::move(*handle));
  if (fuse_reply_open(request, info) == -ENOENT) delete raw;
}

void on_releasedir(fuse_req_t request, fuse_ino_t /*node*/, fuse_file_info* info) {
  delete from_kernel<DirectoryHandle>(info);
  fuse_reply_err(request, 0);
}

unsigned mode_of(EntryKind kind) {
  switch (kind) {
    case EntryKind::directory:
      return S_IFDIR;
    case EntryKind::symlink:
      return S_IFLNK;
    case EntryKind::plain:
    case EntryKind::frame:
    case EntryKind::sparse_frame:
      return S_IFREG;
    case EntryKind::none:
    case EntryKind::other:
      break;
  }
  return 0;
}

// Entries 0 and 1 are "." and "..".
struct Listing {
  const DirectoryHandle& directory;
  std::size_t size() const { return directory.entries.size() + 2; }
  const char* name(std::size_t i) const {
    return i == 0 ? "." : i == 1 ? ".." : directory.entries[i - 2].shown.c_str();
  }
  unsigned mode(std::size_t i) const { return i < 2 ? S_IFDIR : mode_of(directory.entries[i - 2].stored.kind); }
};

void on_readdir(fuse_req_t request, fuse_ino_t /*node*/, std::size_t size, off_t offset, fuse_file_info* info) {
  const Listing listing{*from_kernel<DirectoryHandle>(info)};
  std::vector<char> buffer(size);
  std::size_t used = 0;
  for (auto i = static_cast<std::size_t>(offset); i < listing.size(); ++i) {
    struct stat status {};
    status.st_mode = listing.mode(i);
    status.st_ino = static_cast<ino_t>(-1);  // unknown without a look-up
    const std::size_t length = fuse_add_direntry(request, buffer.data() + used, size - used, listing.name(i), &status,
                                                 static_cast<off_t>(i + 1));
    if (length > size - used) break;
    used += length;
  }
  fuse_reply_buf(request, buffer.data(), used);
}

void on_readdirplus(fuse_req_t request, fuse_ino_t node, std::size_t size, off_t offset, fuse_file_info* info) {
  const Listing listing{*from_kernel<DirectoryHandle>(info)};
  Filesystem& filesystem = filesystem_of(request);
  std::vector<char> buffer(size);
  std::vector<NodeId> entered;
  std::size_t used = 0;
  for (auto i = static_cast<std::size_t>(offset); i < listing.size(); ++i) {
    fuse_entry_param entry{};
    entry.attr.st_mode = listing.mode(i);
    entry.attr.st_ino = static_cast<ino_t>(-1);
    if (i >= 2) {
      // One that went away meanwhile is listed without attributes, as readdir(3) allows.
      if (auto found = filesystem.lookup(node, listing.name(i))) entry = entry_of(*found);
    }
    const std::size_t length = fuse_add_direntry_plus(request, buffer.data() + used, size - used, listing.name(i),
                                                      &entry, static_cast<off_t>(i + 1));
    if (length > size - used) {
      if (entry.ino != 0) filesystem.forget(entry.ino, 1);
      break;
    }
    if (entry.ino != 0) entered.push_back(entry.ino);
    used += length;
  }
  if (fuse_reply_buf(request, buffer.data(), used) == -ENOENT) {
    for (const NodeId id : entered)
      filesystem.forget(id, 1);
  }
}

void on_open(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  if ((info->flags & O_ACCMODE) != O_RDONLY || (info->flags & O_TRUNC) != 0) {
    fuse_reply_err(request, EROFS);
    return;
  }
  auto handle = filesystem_of(request).open(node);
  if (!handle) return reply_error(request, handle.error());
  info->keep_cache = (*handle)->keep_pages ? 1 : 0;
  info->direct_io = (*handle)->direct ? 1 : 0;
  info->noflush = 1;
  const bool fresh = !(*handle)->keep_pages;
  FileHandle* raw = handle->get();
  info->fh = to_kernel(std::move(*handle));
  // The size that the kernel remembers belongs to an older state; without pages this cannot wait for anybody.
  if (fresh) adapter_of(request).forget_node_attributes(node);
  if (fuse_reply_open(request, info) == -ENOENT) delete raw;
}

void on_release(fuse_req_t request, fuse_ino_t /*node*/, fuse_file_info* info) {
  delete from_kernel<FileHandle>(info);
  fuse_reply_err(request, 0);
}

void on_read(fuse_req_t request, fuse_ino_t /*node*/, std::size_t size, off_t offset, fuse_file_info* info) {
  Reply reply;
  auto done =
      filesystem_of(request).read(*from_kernel<FileHandle>(info), static_cast<std::uint64_t>(offset), size, reply);
  if (!done) return reply_error(request, done.error());
  fuse_reply_iov(request, reply.parts().data(), static_cast<int>(reply.parts().size()));
}

void on_lseek(fuse_req_t request, fuse_ino_t /*node*/, off_t offset, int whence, fuse_file_info* info) {
  auto found = filesystem_of(request).seek(*from_kernel<FileHandle>(info), static_cast<std::uint64_t>(offset), whence);
  if (!found) return reply_error(request, found.error());
  fuse_reply_lseek(request, static_cast<off_t>(*found));
}

void on_statfs(fuse_req_t request, fuse_ino_t /*node*/) {
  auto status = filesystem_of(request).filesystem_status();
  if (!status) return reply_error(request, status.error());
  fuse_reply_statfs(request, &*status);
}

/// getxattr(2) and listxattr(2) ask with size 0 how large the answer is.
void reply_attribute(fuse_req_t request, const std::string& value, std::size_t size) {
  if (size == 0) {
    fuse_reply_xattr(request, value.size());
  } else if (value.size() > size) {
    fuse_reply_err(request, ERANGE);
  } else {
    fuse_reply_buf(request, value.data(), value.size());
  }
}

void on_getxattr(fuse_req_t request, fuse_ino_t node, const char* name, std::size_t size) {
  auto value = filesystem_of(request).get_attribute(node, name);
  if (!value) return reply_error(request, value.error());
  reply_attribute(request, *value, size);
}

void on_listxattr(fuse_req_t request, fuse_ino_t node, std::size_t size) {
  auto names = filesystem_of(request).list_attributes(node);
  if (!names) return reply_error(request, names.error());
  std::string list;
  for (const std::string& name : *names)
    list.append(name).push_back('\0');
  reply_attribute(request, list, size);
}

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops ops{};
  ops.init = on_init;
  ops.lookup = on_lookup;
  ops.forget = on_forget;
  ops.forget_multi = on_forget_multi;
  ops.getattr = on_getattr;
  ops.readlink = on_readlink;
  ops.opendir = on_opendir;
  ops.readdir = on_readdir;
  ops.readdirplus = on_readdirplus;
  ops.releasedir = on_releasedir;
  ops.open = on_open;
  ops.read = on_read;
  ops.release = on_release;
  ops.lseek = on_lseek;
  ops.statfs = on_statfs;
  ops.getxattr = on_getxattr;
  ops.listxattr = on_listxattr;
  return ops;
}

// libfuse tells why a mount failed only through its log; kept for our one line.
std::string& last_message() {
  static std::string message;
  return message;
}

__attribute__((format(printf, 2, 0))) void keep_message(fuse_log_level /*level*/, const char* format,
                                                        va_list arguments) {
  char line[1024];
  std::vsnprintf(line, sizeof line, format, arguments);
  std::string text = line;
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  if (text.starts_with("fuse: ")) text.erase(0, 6);
  log_debug(text);
  last_message() = std::move(text);
}

codec::Failure mount_failure(const std::string& mountpoint) {
  std::string reason = "cannot mount";
  if (!last_message().empty()) reason += ": " + last_message();
  codec::Error error{codec::ErrorKind::io, EIO, reason};
  error.path = mountpoint;
  return codec::Failure(std::move(error));
}

}  // namespace

FuseAdapter::FuseAdapter(Filesystem& filesystem, std::function<void()> ready)
    : filesystem_(filesystem), ready_(std::move(ready)) {}

FuseAdapter::~FuseAdapter() {
  if (session_ != nullptr) fuse_session_destroy(session_);
}

codec::Result<void> FuseAdapter::mount(const std::string& mountpoint, const std::vector<std::string>& arguments,
                                       bool debug) {
  std::vector<std::string> words = {"cframefs"};
  for (const std::string& argument : arguments)
    words.push_back("-o" + argument);
  if (debug) words.emplace_back("-d");
  std::vector<char*> pointers;
  for (std::string& word : words)
    pointers.push_back(word.data());
  fuse_args args = FUSE_ARGS_INIT(static_cast<int>(pointers.size()), pointers.data());
  if (!debug) fuse_set_log_func(keep_message);
  const fuse_lowlevel_ops ops = operations();
  session_ = fuse_session_new(&args, &ops, sizeof ops, this);
  fuse_opt_free_args(&args);
  if (session_ == nullptr) return mount_failure(mountpoint);
  if (fuse_session_mount(session_, mountpoint.c_str()) != 0) return mount_failure(mountpoint);
  return {};
}

codec::Result<void> FuseAdapter::serve(unsigned threads) {
  if (fuse_set_signal_handlers(session_) != 0) return codec::io_error(errno, "set signal handlers");
  int result = 0;
  if (threads <= 1) {
    result = fuse_session_loop(session_);
  } else {
    fuse_loop_config* config = fuse_loop_cfg_create();
    fuse_loop_cfg_set_clone_fd(config, 1);
    fuse_loop_cfg_set_max_threads(config, threads);
    fuse_loop_cfg_set_idle_threads(config, threads);
    result = fuse_session_loop_mt(session_, config);
    fuse_loop_cfg_destroy(config);
  }
  fuse_remove_signal_handlers(session_);
  // Positive: ended by a signal, which is how a mount is meant to end.
  if (result < 0) return codec::io_error(-result, "serve");
  return {};
}

void FuseAdapter::unmount() {
  fuse_session_unmount(session_);
}

void FuseAdapter::forget_node(NodeId node) {
  fuse_lowlevel_notify_inval_inode(session_, node, 0, 0);
}

void FuseAdapter::forget_node_attributes(NodeId node) {
  fuse_lowlevel_notify_inval_inode(session_, node, -1, 0);
}

void FuseAdapter::forget_name(NodeId parent, const std::string& name) {
  fuse_lowlevel_notify_inval_entry(session_, parent, name.c_str(), name.size());
}

}  // namespace cframefs::fs
