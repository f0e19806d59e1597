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
#include "fs/write/mount_changes.h"

namespace cframefs::fs {
namespace {

// Attempts of a change of attributes while commits replace the file.
constexpr int kChangeAttempts = 5;

}  // namespace

codec::Result<void> Filesystem::with_self_change(Node& node, const std::function<codec::Result<struct stat>()>& status,
                                                 const std::function<codec::Result<void>()>& change) {
  const auto identity_of = [](const codec::Result<struct stat>& file) {
    return file ? std::optional(frame::FileVersion::of(*file)) : std::nullopt;
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

bool Filesystem::is_changed_behind(Node& node) {
  if (const std::shared_ptr<WriteBack> writer = write_back_of(node)) {
    // The write-back notifies the kernel itself of changes that it has not made.
    static_cast<void>(writer->refresh());
    return false;
  }
  // Not during a change by the mount itself.
  codec::MutexLock own(node.change_mutex);
  codec::SharedLock names(names_);
  const auto at = held_name_of(node);
  if (!at) return true;
  auto probe = tree_.probe_entry(at->fd(), at->name);
  if (!probe) return true;
  return node.pages.reported(probe->identity) == PageCacheState::Drop::pages;
}

codec::Result<Attributes> Filesystem::change_attributes(NodeId id, FileHandle* handle, const AttributeChanges& changes,
                                                        const Caller& caller, ChangePermit& permit) {
  if (read_only_) return codec::io_error(EROFS, "setattr");
  const std::shared_ptr<Node> node = nodes_.find(id);
  if (!node) return no_such_node();
  if (node->role != NodeRole::stored || is_made_up_root(*node)) return codec::io_error(EPERM, "setattr");
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
      auto done = MountChanges(*writer).change_file([&] {
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
    auto done = with_self_change(
        node, [&] { return files_.status(fd); },
        [&]() -> codec::Result<void> {
          // A new writer has taken over the state before the change: retry through that writer. See start_writing().
          has_writer = write_back_of(node) != nullptr;
          return has_writer ? codec::Result<void>() : change(fd);
        });
    if (has_writer) continue;
    if (!done || attempt == kChangeAttempts) return done;
    // A new writer may have replaced the file, with or without the change: retry on the new file.
    const auto changed = files_.status(fd);
    const auto now = find();
    const auto current = now ? files_.status((*now)->fd()) : codec::Failure(now.error());
    if (!changed || !current || (changed->st_ino == current->st_ino && changed->st_dev == current->st_dev)) return done;
  }
}

codec::Result<Filesystem::SharedFile> Filesystem::open_with_room(
    const std::function<codec::Result<SharedFile>()>& open) {
  auto file = open();
  const bool is_short =
      file ? reserve_.is_kept_back((*file)->fd()) : file.error().sys == EMFILE || file.error().sys == ENFILE;
  if (!is_short) return file;
  if (file) file->reset();  // its descriptor is from the reserve
  directories_.release_unused();
  return open();
}

codec::Result<Filesystem::SharedFile> Filesystem::open_file(const Node& node, int flags) {
  codec::SharedLock names(names_);
  const auto at = held_name_of(node);
  if (!at) return codec::Failure(at.error());
  auto file = tree_.open_entry(at->fd(), at->name, flags | O_NOFOLLOW);
  // stale makes the kernel look the path up again.
  if (!file && leads_elsewhere(file.error())) return codec::stale("its name leads to another entry");
  if (!file) return file;
  // The kernel cannot look the root up again, so the file that the source is now is opened without comparison.
  if (node.id == kRootNode) return file;
  const auto status = files_.status((*file)->fd());
  if (!status) return codec::Failure(status.error());
  if (!node.is_at(*status)) return codec::stale("another file has replaced it");
  return file;
}

codec::Result<Filesystem::SharedFile> Filesystem::attribute_file(Node& node) {
  // Prefer a descriptor that a program has open, which needs no name.
  if (const auto frame = open_frame_of(node)) {
    auto file = frame->file();
    const auto status = files_.status(file->fd());
    if (status && node.is_at(*status)) return file;
  }
  {
    codec::MutexLock lock(node.mutex);
    for (const auto& opened : node.opened) {
      if (auto file = opened.lock()) return file;
    }
  }
  // A held directory needs no second descriptor.
  if (node.kind == EntryKind::directory) return directories_.open(node.id);
  return open_file(node, O_PATH);
}

codec::Result<void> Filesystem::truncate(Node& node, FileHandle* handle, std::uint64_t size, ChangePermit& permit) {
  if (is_container(node.kind)) {
    const auto writer = handle != nullptr && handle->writable ? handle->frame->write_back() : nullptr;
    if (writer) {
      if (auto begun = permit.begin(); !begun) return begun;
      auto done = writer->resize(size, changer(*handle));
      if (done) note_new_head(node, *writer, true);
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
    auto opened = open_file(node, O_WRONLY | O_NONBLOCK | O_NOCTTY);
    if (!opened) return codec::Failure(opened.error());
    file = std::move(*opened);
  }
  return with_self_change(
      node, [&] { return files_.status(file->fd()); },
      [&] {
        const auto begun = permit.begin();
        return begun ? files_.truncate(file->fd(), size) : begun;
      });
}

codec::Result<std::unique_ptr<FileHandle>> Filesystem::open_plain(std::unique_ptr<FileHandle> handle, int flags) {
  Node& node = *handle->node;
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  const bool leaves_access_time = options_.no_access_times || (flags & O_NOATIME) != 0;
  const auto open_leaving = [&](int mode) {
    auto file = open_file(node, mode | O_NOCTTY | (leaves_access_time ? O_NOATIME : 0));
    return !file && leaves_access_time && file.error().sys == EPERM ? open_file(node, mode | O_NOCTTY) : file;
  };
  // O_RDWR for writers: the kernel reads a page before a program changes a part of it.
  auto file = open_with_room([&] { return open_leaving(writes ? O_RDWR : O_RDONLY); });
  if (!file && writes && file.error().sys == EACCES) file = open_leaving(O_WRONLY);
  if (!file) return codec::Failure(file.error());
  if (reserve_.is_kept_back((*file)->fd())) return codec::io_error(EMFILE, "open");
  handle->file = std::move(*file);
  handle->writable = writes;
  handle->append = (flags & O_APPEND) != 0;
  {
    // Not during a change by the mount itself: its intermediate state would look like a change behind the mount.
    codec::MutexLock own(node.change_mutex);
    auto status = files_.status(handle->file->fd());
    if (!status) return codec::Failure(status.error());
    // A pipe that has replaced the file may have the same inode number.
    if (!S_ISREG(status->st_mode)) return codec::stale("another file has replaced it");
    enter_page_cache(*handle, {frame::FileVersion::of(*status), writes});
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
  auto fd = files_.create_at(directory->fd(), name, O_WRONLY | O_EXCL, mode);
  if (!fd) return codec::Failure(fd.error());
  const frame::Descriptor file(files_, *fd);
  return files_.status(file.fd());
}

codec::Result<void> Filesystem::write_plain(FileHandle& handle, std::uint64_t at, codec::ByteView bytes, bool append) {
  const int fd = handle.file->fd();
  std::uint64_t place = at;
  auto done = with_self_change(
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
  return with_self_change(
      *handle.node, [&] { return files_.status(fd); },
      [&] { return files_.allocate(fd, mode, frame::FileOffset{at}, length); });
}

codec::Result<void> Filesystem::sync_directory(NodeId id) {
  auto directory = directories_.open(id);
  if (!directory) return codec::Failure(directory.error());
  auto readable = files_.reopen((*directory)->fd(), O_RDONLY | O_DIRECTORY);
  if (!readable) return codec::Failure(readable.error());
  const frame::Descriptor opened(files_, *readable);
  return files_.sync(opened.fd(), false);
}

codec::Result<void> Filesystem::set_attribute(NodeId id, const std::string& name, const std::string& value, int flags,
                                              const Caller& caller, ChangePermit& permit) {
  if (read_only_) return codec::io_error(EROFS, "setxattr");
  const std::shared_ptr<Node> node = nodes_.find(id);
  if (!node) return no_such_node();
  const bool has_file = node->kind != EntryKind::symlink && node->kind != EntryKind::other;
  if (node->role != NodeRole::stored || !has_file || is_made_up_root(*node)) return codec::io_error(EPERM, "setxattr");
  if (is_container(node->kind) && name.starts_with("user.blosc2."))
    return change_layer(*node, name, &value, flags, permit);
  return change_file(
      *node, [&] { return file_with_attribute(*node, name); },
      [&](int fd) {
        return name.starts_with(frame::kAclPrefix) ? change_acl(*node, fd, name, &value, caller)
                                                   : files_.set_attribute(fd, name, value, flags);
      },
      permit);
}

codec::Result<void> Filesystem::remove_attribute(NodeId id, const std::string& name, const Caller& caller,
                                                 ChangePermit& permit) {
  if (read_only_) return codec::io_error(EROFS, "removexattr");
  const std::shared_ptr<Node> node = nodes_.find(id);
  if (!node) return no_such_node();
  const bool has_file = node->kind != EntryKind::symlink && node->kind != EntryKind::other;
  if (node->role != NodeRole::stored || !has_file || is_made_up_root(*node))
    return codec::io_error(EPERM, "removexattr");
  if (is_container(node->kind) && name.starts_with("user.blosc2."))
    return change_layer(*node, name, nullptr, 0, permit);
  return change_file(
      *node, [&] { return file_with_attribute(*node, name); },
      [&](int fd) {
        return name.starts_with(frame::kAclPrefix) ? change_acl(*node, fd, name, nullptr, caller)
                                                   : files_.remove_attribute(fd, name);
      },
      permit);
}

}  // namespace cframefs::fs
