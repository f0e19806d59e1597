// Changes of files that are passed through, and of the attributes of any file.
//
// The kernel's pages of a file that programs change through the mount stay right, although its state on disk is another
// one afterwards: change_own() keeps the two together. Thread safety: a file's changes are serialised by its node's
// change_mutex. Errors: io with the system's errno.
#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "fs/filesystem.h"

namespace cframefs::fs {
namespace {

codec::Failure no_such_node() {
  return codec::stale("the kernel asked for a file that it had forgotten");
}

}  // namespace

codec::Result<void> Filesystem::change_own(Node& node, const std::function<codec::Result<struct stat>()>& status,
                                           const std::function<codec::Result<void>()>& change) {
  const auto identity_of = [](const codec::Result<struct stat>& file) {
    return file ? std::optional(frame::Identity::of(*file)) : std::nullopt;
  };
  codec::MutexLock own(node.change_mutex);
  auto before = status();
  if (!before) return codec::Failure(before.error());
  const auto state_before = identity_of(before);
  node.pages.begin_change();
  auto done = change();
  carry_out(node.pages.end_change(state_before, identity_of(status())), node.id);
  return done;
}

codec::Result<std::string> Filesystem::attribute_path_of(const Node& node) const {
  auto path = path_of(node.id);
  if (!path) return path;
  return path->empty() ? "." : SourceTree::attribute_path(*path, node.kind);
}

bool Filesystem::is_changed_behind(Node& node) {
  if (const std::shared_ptr<WriteBack> writer = write_back_of(node)) {
    // The write-back tells the kernel itself of changes that it has not made.
    static_cast<void>(writer->follow());
    return false;
  }
  // Without a change of the mount's own under way.
  codec::MutexLock own(node.change_mutex);
  codec::SharedLock names(names_);
  const auto path = attribute_path_of(node);
  if (!path) return true;
  auto status = files_.status_at(tree_.root_fd(), *path);
  if (!status) return true;
  return node.pages.reported(frame::Identity::of(*status)) == PageCacheState::Drop::pages;
}

codec::Result<Attributes> Filesystem::change_attributes(NodeId id, FileHandle* handle,
                                                        const AttributeChanges& changes) {
  if (read_only_) return codec::io_error(EROFS, "setattr");
  const std::shared_ptr<Node> node = nodes_.find(id);
  if (!node) return no_such_node();
  if (node->role != NodeRole::stored) return codec::io_error(EPERM, "setattr");
  if (changes.size) {
    if (auto done = truncate(*node, handle, *changes.size); !done) return codec::Failure(done.error());
  }
  if (changes.mode || changes.user || changes.group || changes.times) {
    // What lies there must still be this file.
    if (auto probe = probe_node(*node); !probe) return codec::Failure(probe.error());
    const int root = tree_.root_fd();
    const auto change = [&]() -> codec::Result<void> {
      codec::SharedLock names(names_);
      const auto file = attribute_path_of(*node);
      if (!file) return codec::Failure(file.error());
      codec::Result<void> done;
      if (changes.user || changes.group) {
        done = files_.change_owner_at(root, *file, changes.user.value_or(static_cast<uid_t>(-1)),
                                      changes.group.value_or(static_cast<gid_t>(-1)));
      }
      if (done && changes.mode) done = files_.change_mode_at(root, *file, *changes.mode & 07777U);
      if (done && changes.times) done = files_.set_times_at(root, *file, *changes.times);
      return done;
    };
    const auto status = [&]() -> codec::Result<struct stat> {
      codec::SharedLock names(names_);
      const auto file = attribute_path_of(*node);
      if (!file) return codec::Failure(file.error());
      return files_.status_at(root, *file);
    };
    codec::Result<void> done;
    if (const auto writer = write_back_of(*node)) {
      done = writer->change_file([&] {
        auto changed = change();
        if (changed && changes.times) writer->note_times((*changes.times)[1]);
        return changed;
      });
    } else {
      done = change_own(*node, status, change);
    }
    if (!done) return codec::Failure(done.error());
  }
  return describe_node(id, handle);
}

codec::Result<std::shared_ptr<const frame::Descriptor>> Filesystem::open_file(const Node& node, int flags) const {
  codec::SharedLock names(names_);
  auto path = path_of(node.id);
  if (!path) return codec::Failure(path.error());
  return tree_.open_entry(*path, flags);
}

codec::Result<void> Filesystem::truncate(Node& node, FileHandle* handle, std::uint64_t size) {
  if (is_container(node.kind)) {
    const auto writer = handle != nullptr && handle->writable ? handle->frame->write_back() : nullptr;
    if (writer) {
      auto done = writer->resize(size);
      if (done) note_new_head(node, *writer, true);
      return done;
    }
    return write_for_once(node, [size](WriteBack& file) { return file.resize(size); });
  }
  std::shared_ptr<const frame::Descriptor> file;
  if (handle != nullptr && handle->writable) {
    file = handle->file;
  } else {
    auto opened = open_file(node, O_WRONLY | O_NONBLOCK | O_NOCTTY);
    if (!opened) return codec::Failure(opened.error());
    file = std::move(*opened);
  }
  return change_own(
      node, [&] { return files_.status(file->fd()); }, [&] { return files_.truncate(file->fd(), size); });
}

codec::Result<std::unique_ptr<FileHandle>> Filesystem::open_plain(std::unique_ptr<FileHandle> handle, int flags) {
  Node& node = *handle->node;
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  // For reading, too: a page that a program changes in part is read first.
  auto file = open_file(node, writes ? O_RDWR | O_NOCTTY : O_RDONLY);
  if (!file && writes && file.error().sys == EACCES) file = open_file(node, O_WRONLY | O_NOCTTY);
  if (!file) return codec::Failure(file.error());
  handle->file = std::move(*file);
  handle->writable = writes;
  handle->append = (flags & O_APPEND) != 0;
  {
    // The state must not be one in the middle of a change of the mount's own: it would look like a change behind it.
    codec::MutexLock own(node.change_mutex);
    auto status = files_.status(handle->file->fd());
    if (!status) return codec::Failure(status.error());
    // A pipe that was made in its place may have got its inode number, too.
    if (!S_ISREG(status->st_mode) || status->st_dev != node.device || status->st_ino != node.inode) {
      return codec::stale("another file has taken its place");
    }
    enter_page_cache(*handle, {frame::Identity::of(*status), writes});
    codec::MutexLock lock(node.mutex);
    std::erase_if(node.opened, [](const auto& opened) { return opened.expired(); });
    node.opened.push_back(handle->file);
  }
  if (writes && (flags & O_TRUNC) != 0) {
    if (auto cut = truncate(node, handle.get(), 0); !cut) {
      release(std::move(handle));
      return codec::Failure(cut.error());
    }
  }
  return handle;
}

codec::Result<void> Filesystem::create_plain(const std::string& path, mode_t mode) {
  auto fd = files_.create_at(tree_.root_fd(), path, O_WRONLY | O_EXCL, mode & 07777U);
  if (!fd) return codec::Failure(fd.error());
  files_.close(*fd);
  return {};
}

codec::Result<void> Filesystem::write_plain(FileHandle& handle, std::uint64_t at, codec::ByteView bytes, bool append) {
  const int fd = handle.file->fd();
  std::uint64_t place = at;
  auto done = change_own(
      *handle.node, [&] { return files_.status(fd); },
      [&]() -> codec::Result<void> {
        if (append) {
          auto status = files_.status(fd);
          if (!status) return codec::Failure(status.error());
          place = static_cast<std::uint64_t>(status->st_size);
        }
        return files_.pwrite(fd, bytes, frame::FileOffset{place});
      });
  note_written(handle, at, place, bytes.size());
  return done;
}

codec::Result<void> Filesystem::allocate_plain(FileHandle& handle, int mode, std::uint64_t at, std::uint64_t length) {
  const int fd = handle.file->fd();
  return change_own(
      *handle.node, [&] { return files_.status(fd); },
      [&] { return files_.allocate(fd, mode, frame::FileOffset{at}, length); });
}

codec::Result<void> Filesystem::sync_folder(NodeId id) {
  auto path = nodes_.path_of(id);
  if (!path) return codec::Failure(path.error());
  auto folder = tree_.open_entry(*path, O_RDONLY | O_DIRECTORY);
  if (!folder) return codec::Failure(folder.error());
  return files_.sync((*folder)->fd(), false);
}

codec::Result<void> Filesystem::set_attribute(NodeId id, const std::string& name, const std::string& value, int flags) {
  if (read_only_) return codec::io_error(EROFS, "setxattr");
  const std::shared_ptr<Node> node = nodes_.find(id);
  if (!node) return no_such_node();
  const bool has_file = node->kind != EntryKind::symlink && node->kind != EntryKind::other;
  if (node->role != NodeRole::stored || !has_file) return codec::io_error(EPERM, "setxattr");
  if (is_container(node->kind) && name.starts_with("user.blosc2.")) return change_layer(*node, name, &value, flags);
  auto file = open_file(*node, O_RDONLY);
  if (!file) return codec::Failure(file.error());
  const int fd = (*file)->fd();
  return change_own(
      *node, [&] { return files_.status(fd); }, [&] { return files_.set_attribute(fd, name, value, flags); });
}

codec::Result<void> Filesystem::remove_attribute(NodeId id, const std::string& name) {
  if (read_only_) return codec::io_error(EROFS, "removexattr");
  const std::shared_ptr<Node> node = nodes_.find(id);
  if (!node) return no_such_node();
  const bool has_file = node->kind != EntryKind::symlink && node->kind != EntryKind::other;
  if (node->role != NodeRole::stored || !has_file) return codec::io_error(EPERM, "removexattr");
  if (is_container(node->kind) && name.starts_with("user.blosc2.")) return change_layer(*node, name, nullptr, 0);
  auto file = open_file(*node, O_RDONLY);
  if (!file) return codec::Failure(file.error());
  const int fd = (*file)->fd();
  return change_own(
      *node, [&] { return files_.status(fd); }, [&] { return files_.remove_attribute(fd, name); });
}

}  // namespace cframefs::fs
