#include "fs/files/plain_files.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "frame/io/system_version.h"

namespace cframefs::fs {

codec::Result<std::unique_ptr<FileHandle>> PlainFiles::open(std::unique_ptr<FileHandle> handle, int flags) {
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
  if (mount_.reserve.is_kept_back(mount_.files, (*file)->handle())) return codec::io_error(EMFILE, "open");
  handle->file = std::move(*file);
  handle->writable = writes;
  handle->append = (flags & O_APPEND) != 0;
  {
    // Not during a change by the mount itself: its intermediate state would look like a change behind the mount.
    codec::MutexLock own(node.change_mutex);
    auto status = mount_.files.status(handle->file->handle());
    if (!status) return codec::Failure(status.error());
    // A pipe that has replaced the file may have the same inode number.
    if (!S_ISREG(status->st_mode)) return codec::stale("another file has replaced it");
    KernelPages::enter(*handle, {frame::version_of(*status), writes});
    codec::MutexLock lock(node.mutex);
    std::erase_if(node.open_plain.descriptors, [](const auto& opened) { return opened.expired(); });
    node.open_plain.descriptors.push_back(handle->file);
  }
  if (writes && (flags & O_TRUNC) != 0) {
    if (auto cut = resize(node, handle.get(), 0, free_permit()); !cut) {
      pages_.leave(*handle);
      return codec::Failure(cut.error());
    }
  }
  return handle;
}

codec::Result<void> PlainFiles::read(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply) {
  Buffer buffer = mount_.read_path.pool().get(length);
  auto got = mount_.files.pread(handle.file->handle(), buffer.bytes(), frame::FileOffset{at});
  if (!got) return codec::Failure(got.error());
  reply.add(std::move(buffer), *got);
  return {};
}

codec::Result<void> PlainFiles::write(FileHandle& handle, std::uint64_t at, codec::ByteView bytes, bool append) {
  const frame::OpenFile opened = handle.file->handle();
  std::uint64_t place = at;
  auto done = pages_.with_self_change(
      *handle.node, KernelPages::SelfChange::content, [&] { return mount_.files.status(opened); },
      [&]() -> codec::Result<void> {
        if (append) {
          auto status = mount_.files.status(opened);
          if (!status) return codec::Failure(status.error());
          place = static_cast<std::uint64_t>(status->st_size);
        }
        return mount_.files.pwrite(opened, bytes, frame::FileOffset{place});
      });
  pages_.note_written(handle, at, place, bytes.size());
  return done;
}

codec::Result<void> PlainFiles::allocate(FileHandle& handle, int mode, std::uint64_t at, std::uint64_t length) {
  const frame::OpenFile opened = handle.file->handle();
  return pages_.with_self_change(
      *handle.node, KernelPages::SelfChange::content, [&] { return mount_.files.status(opened); },
      [&] { return mount_.files.allocate(opened, mode, frame::FileOffset{at}, length); });
}

codec::Result<void> PlainFiles::resize(Node& node, FileHandle* handle, std::uint64_t size, ChangePermit& permit) {
  NodeFiles::SharedFile file;
  if (handle != nullptr && handle->writable) {
    file = handle->file;
  } else {
    auto opened = node_files_.open_file(node, O_WRONLY | O_NONBLOCK | O_NOCTTY);
    if (!opened) return codec::Failure(opened.error());
    file = std::move(*opened);
  }
  return pages_.with_self_change(
      node, KernelPages::SelfChange::content, [&] { return mount_.files.status(file->handle()); },
      [&] {
        const auto begun = permit.begin();
        return begun ? mount_.files.truncate(file->handle(), size) : begun;
      });
}

}  // namespace cframefs::fs
