// Changes of passed-through files, and of the attributes of any file.
//
// A change through the mount leaves the kernel's pages valid although the state on disk differs afterwards:
// with_self_change() records the new state. Thread safety: the node's change_mutex serialises a file's changes. Errors:
// io with the system's errno.
#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "frame/io/posix_acl.h"
#include "fs/filesystem.h"

namespace cframefs::fs {
namespace {

// Attempts of a change of attributes while commits replace the file.
constexpr int kChangeAttempts = 5;

}  // namespace

codec::Result<Attributes> Filesystem::change_attributes(NodeId id, FileHandle* handle, const AttributeChanges& changes,
                                                        const Caller& caller, ChangePermit& permit) {
  if (mount_.read_only) return codec::io_error(EROFS, "setattr");
  const std::shared_ptr<Node> node = mount_.nodes.find(id);
  if (!node) return no_such_node();
  if (node->role != NodeRole::stored || node_files_.is_made_up_root(*node)) return codec::io_error(EPERM, "setattr");
  if (changes.size) {
    if (auto done = truncate(*node, handle, *changes.size, permit); !done) return codec::Failure(done.error());
  }
  if (changes.mode || changes.user || changes.group || changes.times) {
    if (auto done = change_rights(*node, changes, caller, permit); !done) return codec::Failure(done.error());
  }
  return describe_node(id, handle);
}

codec::Result<void> Filesystem::change_file(Node& node, const FindFile& find, const ChangeFile& wanted,
                                            ChangePermit& permit) {
  const auto change = [&](int fd) {
    const auto begun = permit.begin();
    return begun ? wanted(fd) : begun;
  };
  for (int attempt = 1;; ++attempt) {
    if (const auto writer = write_back_of(node)) {
      bool is_closed = false;
      // Find the file between two commits, because each may replace it.
      auto done = writer->change_file([&] {
        // A closed writer does not tell the next writer that the change is the mount's own. A writer that comes later
        // waits for the change, and takes over the state after it: start_writing().
        codec::MutexLock own(node.change_mutex);
        is_closed = write_back_of(node) != writer;
        if (is_closed) return codec::Result<void>();
        const auto file = find();
        return file ? change((*file)->fd()) : codec::Failure(file.error());
      });
      if (is_closed) continue;
      return done;
    }
    const auto file = find();
    if (!file) return codec::Failure(file.error());
    const int fd = (*file)->fd();
    bool has_writer = false;
    auto done = pages_.with_self_change(
        node, [&] { return mount_.files.status(fd); },
        [&]() -> codec::Result<void> {
          // A new writer has taken over the state before the change: retry through that writer. See start_writing().
          has_writer = write_back_of(node) != nullptr;
          return has_writer ? codec::Result<void>() : change(fd);
        });
    if (has_writer) continue;
    if (!done || attempt == kChangeAttempts) return done;
    // A new writer may have replaced the file, with or without the change: retry on the new file.
    const auto changed = mount_.files.status(fd);
    const auto now = find();
    const auto current = now ? mount_.files.status((*now)->fd()) : codec::Failure(now.error());
    if (!changed || !current || (changed->st_ino == current->st_ino && changed->st_dev == current->st_dev)) return done;
  }
}

codec::Result<NodeFiles::SharedFile> Filesystem::attribute_file(Node& node) {
  // Prefer a descriptor that a program has open, which needs no name.
  if (const auto frame = open_frame_of(node)) {
    auto file = frame->file();
    const auto status = mount_.files.status(file->fd());
    if (status && node.is_at(*status)) return file;
  }
  {
    codec::MutexLock lock(node.mutex);
    for (const auto& opened : node.opened) {
      if (auto file = opened.lock()) return file;
    }
  }
  // A held directory needs no second descriptor.
  if (node.kind == EntryKind::directory) return mount_.directories.open(node.id);
  return node_files_.open_file(node, O_PATH);
}

codec::Result<void> Filesystem::truncate(Node& node, FileHandle* handle, std::uint64_t size, ChangePermit& permit) {
  if (is_container(node.kind)) {
    const auto writer = handle != nullptr && handle->writable ? handle->frame->write_back() : nullptr;
    if (writer) {
      if (auto begun = permit.begin(); !begun) return begun;
      auto done = writer->resize(size, changer(*handle));
      if (done) pages_.note_new_head(node, *writer, true);
      return done;
    }
    const Work work = [size, &work, &permit](WriteBack& file) {
      const auto begun = permit.begin();
      auto done = begun ? file.resize(size, &work) : begun;
      // Programs now see the new size. The commit may wait for a lock, and goes on if the caller leaves.
      permit.end();
      return done;
    };
    return with_temporary_writer(node, work);
  }
  std::shared_ptr<const frame::Descriptor> file;
  if (handle != nullptr && handle->writable) {
    file = handle->file;
  } else {
    auto opened = node_files_.open_file(node, O_WRONLY | O_NONBLOCK | O_NOCTTY);
    if (!opened) return codec::Failure(opened.error());
    file = std::move(*opened);
  }
  return pages_.with_self_change(
      node, [&] { return mount_.files.status(file->fd()); },
      [&] {
        const auto begun = permit.begin();
        return begun ? mount_.files.truncate(file->fd(), size) : begun;
      });
}

codec::Result<std::unique_ptr<FileHandle>> Filesystem::open_plain(std::unique_ptr<FileHandle> handle, int flags) {
  Node& node = *handle->node;
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  const bool leaves_access_time = mount_.options.no_access_times || (flags & O_NOATIME) != 0;
  const auto open_leaving = [&](int mode) {
    auto file = node_files_.open_file(node, mode | O_NOCTTY | (leaves_access_time ? O_NOATIME : 0));
    return !file && leaves_access_time && file.error().sys == EPERM ? node_files_.open_file(node, mode | O_NOCTTY)
                                                                    : file;
  };
  // O_RDWR for writers: the kernel reads a page before a program changes a part of it.
  auto file = node_files_.open_with_room([&] { return open_leaving(writes ? O_RDWR : O_RDONLY); });
  if (!file && writes && file.error().sys == EACCES) file = open_leaving(O_WRONLY);
  if (!file) return codec::Failure(file.error());
  if (mount_.reserve.is_kept_back((*file)->fd())) return codec::io_error(EMFILE, "open");
  handle->file = std::move(*file);
  handle->writable = writes;
  handle->append = (flags & O_APPEND) != 0;
  {
    // Not during a change by the mount itself: its intermediate state would look like a change behind the mount.
    codec::MutexLock own(node.change_mutex);
    auto status = mount_.files.status(handle->file->fd());
    if (!status) return codec::Failure(status.error());
    // A pipe that has replaced the file may have the same inode number.
    if (!S_ISREG(status->st_mode)) return codec::stale("another file has replaced it");
    pages_.enter(*handle, {frame::FileVersion::of(*status), writes});
    codec::MutexLock lock(node.mutex);
    std::erase_if(node.opened, [](const auto& opened) { return opened.expired(); });
    node.opened.push_back(handle->file);
  }
  if (writes && (flags & O_TRUNC) != 0) {
    if (auto cut = truncate(node, handle.get(), 0, free_permit()); !cut) {
      release(std::move(handle));
      return codec::Failure(cut.error());
    }
  }
  return handle;
}

codec::Result<struct stat> Filesystem::create_plain(const HeldDirectory& directory, const std::string& name,
                                                    mode_t mode) {
  auto fd = mount_.files.create_at(directory->fd(), name, O_WRONLY | O_EXCL, mode);
  if (!fd) return codec::Failure(fd.error());
  const frame::Descriptor file(mount_.files, *fd);
  return mount_.files.status(file.fd());
}

codec::Result<void> Filesystem::write_plain(FileHandle& handle, std::uint64_t at, codec::ByteView bytes, bool append) {
  const int fd = handle.file->fd();
  std::uint64_t place = at;
  auto done = pages_.with_self_change(
      *handle.node, [&] { return mount_.files.status(fd); },
      [&]() -> codec::Result<void> {
        if (append) {
          auto status = mount_.files.status(fd);
          if (!status) return codec::Failure(status.error());
          place = static_cast<std::uint64_t>(status->st_size);
        }
        return mount_.files.pwrite(fd, bytes, frame::FileOffset{place});
      });
  pages_.note_written(handle, at, place, bytes.size());
  return done;
}

codec::Result<void> Filesystem::allocate_plain(FileHandle& handle, int mode, std::uint64_t at, std::uint64_t length) {
  const int fd = handle.file->fd();
  return pages_.with_self_change(
      *handle.node, [&] { return mount_.files.status(fd); },
      [&] { return mount_.files.allocate(fd, mode, frame::FileOffset{at}, length); });
}

codec::Result<void> Filesystem::sync_directory(NodeId id) {
  auto directory = mount_.directories.open(id);
  if (!directory) return codec::Failure(directory.error());
  auto readable = mount_.files.reopen((*directory)->fd(), O_RDONLY | O_DIRECTORY);
  if (!readable) return codec::Failure(readable.error());
  const frame::Descriptor opened(mount_.files, *readable);
  return mount_.files.sync(opened.fd(), false);
}

codec::Result<void> Filesystem::set_attribute(NodeId id, const std::string& name, const std::string& value, int flags,
                                              const Caller& caller, ChangePermit& permit) {
  if (mount_.read_only) return codec::io_error(EROFS, "setxattr");
  const std::shared_ptr<Node> node = mount_.nodes.find(id);
  if (!node) return no_such_node();
  const bool has_file = node->kind != EntryKind::symlink && node->kind != EntryKind::other;
  if (node->role != NodeRole::stored || !has_file || node_files_.is_made_up_root(*node))
    return codec::io_error(EPERM, "setxattr");
  if (is_container(node->kind) && name.starts_with("user.blosc2."))
    return change_layer(*node, name, &value, flags, permit);
  return change_file(
      *node, [&] { return file_with_attribute(*node, name); },
      [&](int fd) {
        return name.starts_with(frame::kAclPrefix) ? change_acl(*node, fd, name, &value, caller)
                                                   : mount_.files.set_attribute(fd, name, value, flags);
      },
      permit);
}

codec::Result<void> Filesystem::remove_attribute(NodeId id, const std::string& name, const Caller& caller,
                                                 ChangePermit& permit) {
  if (mount_.read_only) return codec::io_error(EROFS, "removexattr");
  const std::shared_ptr<Node> node = mount_.nodes.find(id);
  if (!node) return no_such_node();
  const bool has_file = node->kind != EntryKind::symlink && node->kind != EntryKind::other;
  if (node->role != NodeRole::stored || !has_file || node_files_.is_made_up_root(*node))
    return codec::io_error(EPERM, "removexattr");
  if (is_container(node->kind) && name.starts_with("user.blosc2."))
    return change_layer(*node, name, nullptr, 0, permit);
  return change_file(
      *node, [&] { return file_with_attribute(*node, name); },
      [&](int fd) {
        return name.starts_with(frame::kAclPrefix) ? change_acl(*node, fd, name, nullptr, caller)
                                                   : mount_.files.remove_attribute(fd, name);
      },
      permit);
}

}  // namespace cframefs::fs
