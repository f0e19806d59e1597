#include "fs/files/open_files.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include <unistd.h>

namespace cframefs::fs {

codec::Result<std::unique_ptr<FileHandle>> OpenFiles::open(NodeId id, int flags) {
  mount_.statistics.opens.fetch_add(1, std::memory_order_relaxed);
  const Stopwatch watch(mount_.statistics.open_time);
  auto opened = open_any(id, flags);
  if (!opened) mount_.statistics.errors.add(Operation::open, opened.error());
  return opened;
}

codec::Result<std::unique_ptr<FileHandle>> OpenFiles::open_any(NodeId id, int flags) {
  auto handle = std::make_unique<FileHandle>();
  handle->node = mount_.nodes.find(id);
  if (!handle->node) return no_such_node();
  Node& node = *handle->node;
  if (node.role == NodeRole::control_file) {
    const std::string path = node_files_.path_of(id);
    if (auto opened = control_.open(*handle, path.substr(path.rfind('/') + 1), flags); !opened)
      return codec::Failure(opened.error());
    return handle;
  }
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
  if (writes && node.role != NodeRole::stored)
    return codec::io_error(EROFS, "open", "the file is made up by the mount");
  if (writes) {
    if (auto writable = mount_.check_writable("open"); !writable) return codec::Failure(writable.error());
  }
  // The kernel then looks up the name once more.
  if (!node_files_.is_of_its_kind(node)) return codec::stale("it is of another kind now");
  if (node_files_.has_lost_name(node)) return codec::stale("another file has taken its name, or it was removed");
  // Shared, because a failed open destroys the handle before the truncation ends.
  const std::shared_ptr<Node> truncated = (flags & O_TRUNC) != 0 ? handle->node : nullptr;
  std::optional<ToldSize::Truncation> truncation;
  if (truncated) truncation.emplace(truncated->pages.end_of_file());
  auto opened =
      is_container(node.kind) ? frames_.open(std::move(handle), flags, {}) : plain_.open(std::move(handle), flags);
  if (opened && !(*opened)->keep_pages) source_changes_.look_into_other_forms(node);
  if (opened && truncation) truncation->succeeded(0);
  if (opened && writes && mount_.options.shown.are_set()) {
    if (auto cleared = clear_set_ids(**opened); !cleared) {
      release(std::move(*opened));
      return codec::Failure(cleared.error());
    }
  }
  return opened;
}

codec::Result<void> OpenFiles::clear_set_ids(const FileHandle& handle) {
  const std::shared_ptr<const frame::Descriptor> file = handle.frame ? handle.frame->file() : handle.file;
  const auto status = mount_.files.status(file->handle());
  if (!status) return codec::Failure(status.error());
  if ((status->st_mode & kSetIds) == 0) return {};
  return mount_.files.change_mode(file->handle(), status->st_mode & 07777U & ~kSetIds);
}

codec::Result<void> OpenFiles::read(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply,
                                    bool holds_pages) {
  // Reads of the statistics would drown those of a mount at rest.
  if (handle.node->role == NodeRole::control_file) return read_control(handle, at, length, reply);
  mount_.statistics.reads.fetch_add(1, std::memory_order_relaxed);
  const Stopwatch watch(mount_.statistics.read_time);
  KernelPages::confirm_open(handle);
  const ToldSize::Begin begun = handle.node->pages.end_of_file().begin_read();
  if (holds_pages && length > 0 && is_container(handle.node->kind)) {
    const std::uint64_t page_size = mount_.options.kernel_cache.page_size;
    reply.mark() = ReadsUnderWay::begin({handle.node, &handle.node->reads}, at, length, page_size);
  }
  auto done = counted(Operation::read, is_container(handle.node->kind) ? frames_.read(handle, at, length, reply)
                                                                       : plain_.read(handle, at, length, reply));
  if (!done) return done;
  reply.coalesce(mount_.read_path.pool());
  if (holds_pages && reply.size() < length && !pages_.may_be_short(*handle.node, {at, reply.size(), begun}, length))
    return codec::io_error(EIO, "read", "the file has just become smaller");
  mount_.statistics.bytes_served.fetch_add(reply.size(), std::memory_order_relaxed);
  note_traffic(handle, {reply.size(), 0});
  if (holds_pages && handle.frame) frames_.note_pages_read(handle, at, reply);
  return done;
}

codec::Result<void> OpenFiles::read_control(const FileHandle& handle, std::uint64_t at, std::size_t length,
                                            Reply& reply) {
  if (at < handle.content.size()) {
    const std::size_t size = std::min<std::size_t>(length, handle.content.size() - at);
    Buffer buffer = mount_.read_path.pool().get(size);
    std::copy_n(handle.content.begin() + static_cast<std::ptrdiff_t>(at), size, buffer.bytes().begin());
    reply.add(std::move(buffer), size);
  }
  return {};
}

codec::Result<void> OpenFiles::counted(Operation operation, codec::Result<void> done) {
  if (!done) mount_.statistics.errors.add(operation, done.error());
  return done;
}

void OpenFiles::note_traffic(const FileHandle& handle, const BusyFiles::Traffic& traffic) {
  if (!mount_.options.statistics || handle.node->role != NodeRole::stored) return;
  mount_.statistics.busy_files.note(handle.node->id, traffic, [this](NodeId id) { return node_files_.path_of(id); });
}

codec::Result<std::uint64_t> OpenFiles::seek(FileHandle& handle, std::uint64_t from, int whence) {
  const bool hole = whence == SEEK_HOLE;
  if (whence != SEEK_DATA && !hole) return codec::invalid("lseek: only SEEK_DATA and SEEK_HOLE reach a filesystem");
  if (!is_container(handle.node->kind)) {
    if (!handle.file) return codec::io_error(ENXIO, "lseek");
    auto found = mount_.files.seek(handle.file->handle(), frame::FileOffset{from}, whence);
    if (!found) return codec::Failure(found.error());
    return found->value;
  }
  return frames_.seek(handle, from, hole);
}

codec::Result<void> OpenFiles::write(FileHandle& handle, std::uint64_t at, codec::ByteView bytes, bool from_page_cache,
                                     ChangePermit& permit) {
  const Stopwatch watch(mount_.statistics.write_time);
  auto done = counted(Operation::write, write_any(handle, at, bytes, from_page_cache, permit));
  if (done) note_traffic(handle, {0, bytes.size()});
  return done;
}

codec::Result<void> OpenFiles::write_any(FileHandle& handle, std::uint64_t at, codec::ByteView bytes,
                                         bool from_page_cache, ChangePermit& permit) {
  if (!handle.writable) return codec::io_error(EBADF, "write");
  if (handle.node->role == NodeRole::control_file) return control_.write(bytes);
  const bool append = handle.append && !from_page_cache && !mount_.options.kernel_cache.writeback;
  if (handle.frame) return frames_.write(handle, at, bytes, from_page_cache, append, permit);
  if (auto begun = permit.begin(); !begun) return begun;
  return plain_.write(handle, at, bytes, append);
}

codec::Result<void> OpenFiles::allocate(FileHandle& handle, int mode, std::uint64_t at, std::uint64_t length) {
  if (!handle.writable) return codec::io_error(EBADF, "fallocate");
  return handle.frame ? frames_.allocate(handle, mode, at, length) : plain_.allocate(handle, mode, at, length);
}

codec::Result<void> OpenFiles::truncate(Node& node, FileHandle* handle, std::uint64_t size, ChangePermit& permit) {
  ToldSize::Truncation truncation(node.pages.end_of_file());
  auto done =
      is_container(node.kind) ? frames_.resize(node, handle, size, permit) : plain_.resize(node, handle, size, permit);
  if (done) truncation.succeeded(size);
  return done;
}

codec::Result<void> OpenFiles::flush(FileHandle& handle) {
  if (!handle.writable) return {};
  const Stopwatch watch(mount_.statistics.sync_time);
  if (handle.frame) return counted(Operation::sync, frames_.flush(handle));
  return handle.file ? counted(Operation::sync, mount_.files.flush(handle.file->handle())) : codec::Result<void>();
}

void OpenFiles::release(std::unique_ptr<FileHandle> handle) {
  if (handle->frame) return frames_.release(std::move(handle));
  pages_.leave(*handle);
}

codec::Result<void> OpenFiles::sync(FileHandle& handle, bool data_only) {
  const Stopwatch watch(mount_.statistics.sync_time);
  if (handle.file) return counted(Operation::sync, mount_.files.sync(handle.file->handle(), data_only));
  return handle.frame ? counted(Operation::sync, frames_.sync(handle, data_only)) : codec::Result<void>();
}

}  // namespace cframefs::fs
