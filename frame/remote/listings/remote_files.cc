#include "frame/remote/listings/remote_files.h"

#include <cerrno>
#include <ctime>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frame/base/xxh3.h"
#include "frame/remote/http/address.h"
#include "frame/remote/http/percent_encoding.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::io_error;

constexpr std::uint64_t kStatBlock = 512;  // of st_blocks
constexpr blksize_t kReadBytes = 65536;    // worth one request
constexpr std::size_t kMostOpen = 1'000'000;

dev_t device_of(std::string address) {
  // Device numbers of the kernel have 32 bits; some programs keep no more.
  const std::uint64_t hash = xxh3(codec::bytes_of(std::span(address.data(), address.size())));
  return (hash & 0xffffffffU) | 1U;
}

}  // namespace

RemoteFiles::RemoteFiles(CachingListing& listing, RemoteHeads& heads, const ObjectReading& reading, Named named)
    : ReadOnlyFiles("what is on a server cannot be changed"),
      tree_(listing, heads, reading),
      requests_(reading.requests),
      memory_(reading.memory),
      named_(std::move(named)),
      device_(device_of(named_.address)),
      user_(::geteuid()),
      group_(::getegid()),
      started_(std::time(nullptr)) {}

// ---- open files --------------------------------------------------------------------------------------------------

Result<RemoteFiles::Opened> RemoteFiles::opened(OpenFile file) const {
  const codec::MutexLock lock(mutex_);
  const auto found = opened_.find(file.value);
  if (found == opened_.end()) return io_error(EBADF, "remote file");
  return found->second;
}

Result<RemoteFiles::Node> RemoteFiles::readable(OpenFile file) const {
  auto found = opened(file);
  if (!found) return Failure(found.error());
  if (found->is_path) return io_error(EBADF, "read");
  return std::move(found->node);
}

Result<OpenFile> RemoteFiles::enter(Node node, int flags) {
  const bool is_path = (flags & O_PATH) != 0;
  if ((flags & O_DIRECTORY) != 0 && !node->is_directory) return io_error(ENOTDIR, "open");
  if (!is_path && ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0)) {
    return node->is_directory ? io_error(EISDIR, "open") : refused("open");
  }
  const codec::MutexLock lock(mutex_);
  if (opened_.size() >= kMostOpen) return io_error(ENFILE, "open");
  // Numbers are not used again soon, so that a caller's use after close() fails.
  do {
    last_ = last_ == std::numeric_limits<std::int32_t>::max() ? 0 : last_ + 1;
  } while (opened_.contains(last_));
  opened_.emplace(last_, Opened{std::move(node), is_path});
  return OpenFile{last_};
}

Result<OpenFile> RemoteFiles::open_at(OpenFile dir, const std::string& path, int flags) {
  const auto from = opened(dir);
  if (!from) return Failure(from.error());
  auto node = tree_.find(from->node, path);
  if (!node) return Failure(node.error());
  if ((flags & (O_PATH | O_NOATIME)) == 0) {
    if (auto confirmed = tree_.confirm(**node); !confirmed) return Failure(confirmed.error());
  }
  return enter(std::move(*node), flags);
}

/// Returns the path in this tree of what the caller names: the address of the source, one below it, or a path.
Result<std::string> RemoteFiles::path_of(const std::string& name) const {
  if (name == named_.address) return named_.path;
  const auto below = named_.path == "/" ? part_below(name, named_.address) : std::nullopt;
  if (!below) return name;
  const std::string_view path = below->ends_with('/') ? below->substr(0, below->size() - 1) : *below;
  return named_.is_web ? percent_decode(path) : std::string(path);
}

Result<OpenFile> RemoteFiles::open_named(const std::string& name, int flags) {
  const auto path = path_of(name);
  if (!path) return Failure(path.error());
  const std::size_t begin = path->find_first_not_of('/');
  auto node = tree_.find(tree_.root(), begin == std::string::npos ? "." : path->substr(begin));
  if (!node) return Failure(node.error());
  // No listing tells whether the root exists; a wrong address must not wait for the first reader.
  if ((*node)->is_directory && (flags & O_PATH) == 0) {
    if (const auto listed = tree_.list(**node); !listed) return Failure(listed.error());
  }
  if ((flags & (O_PATH | O_NOATIME)) == 0) {
    if (auto confirmed = tree_.confirm(**node); !confirmed) return Failure(confirmed.error());
  }
  return enter(std::move(*node), flags);
}

Result<OpenFile> RemoteFiles::reopen(OpenFile file, int flags) {
  auto found = opened(file);
  if (!found) return Failure(found.error());
  return enter(std::move(found->node), flags);
}

Result<std::vector<std::uint8_t>> RemoteFiles::handle_of(OpenFile /*file*/) {
  return io_error(EOPNOTSUPP, "handle");
}

Result<OpenFile> RemoteFiles::open_handle(OpenFile /*mount*/, ByteView /*handle*/, int /*flags*/) {
  return io_error(EOPNOTSUPP, "open");
}

void RemoteFiles::close(OpenFile file) {
  Opened gone;  // destroyed after the lock is released, because its object may have requests to end
  const codec::MutexLock lock(mutex_);
  const auto found = opened_.find(file.value);
  if (found == opened_.end()) return;
  gone = std::move(found->second);
  opened_.erase(found);
}

// ---- reads -------------------------------------------------------------------------------------------------------

Result<std::size_t> RemoteFiles::pread(OpenFile file, ByteSpan into, FileOffset at) {
  const auto node = readable(file);
  if (!node) return Failure(node.error());
  return tree_.read(**node, into, at);
}

void RemoteFiles::prefetch(OpenFile file, FileOffset at, std::uint64_t length) {
  if (const auto node = readable(file)) tree_.prefetch(**node, at, length);
}

void RemoteFiles::expect(OpenFile file, FileOffset at, std::uint64_t length) {
  if (const auto node = readable(file)) tree_.expect(**node, at, length);
}

Result<void> RemoteFiles::fetch(OpenFile file, FileOffset at, std::uint64_t length) {
  const auto node = readable(file);
  if (!node) return Failure(node.error());
  return tree_.fetch(**node, at, length);
}

Result<FileOffset> RemoteFiles::seek(OpenFile file, FileOffset from, int whence) {
  const auto node = readable(file);
  if (!node) return Failure(node.error());
  if ((*node)->is_directory || (whence != SEEK_DATA && whence != SEEK_HOLE)) return io_error(EINVAL, "lseek");
  const std::uint64_t length = (*node)->state.length;
  if (from.value >= length) return io_error(ENXIO, "lseek");
  return whence == SEEK_DATA ? from : FileOffset{length};
}

Result<std::vector<DirectoryEntry>> RemoteFiles::list(OpenFile dir) {
  const auto found = opened(dir);
  if (!found) return Failure(found.error());
  return tree_.list(*found->node);
}

// ---- attributes --------------------------------------------------------------------------------------------------

struct stat RemoteFiles::status_of(const RemoteNode& node) const {
  struct stat status {};
  status.st_dev = device_;
  status.st_ino = node.inode;
  status.st_mode = node.is_directory ? S_IFDIR | 0555U : S_IFREG | 0444U;
  status.st_nlink = 1;
  status.st_uid = user_;
  status.st_gid = group_;
  status.st_size = static_cast<off_t>(node.state.length);
  status.st_blksize = kReadBytes;
  status.st_blocks = static_cast<blkcnt_t>(node.state.length / kStatBlock + (node.state.length % kStatBlock != 0));
  status.st_mtim.tv_sec = node.is_directory ? started_ : static_cast<time_t>(node.state.last_modified);
  status.st_atim = status.st_mtim;
  status.st_ctim = status.st_mtim;
  return status;
}

Result<struct stat> RemoteFiles::status(OpenFile file) {
  const auto found = opened(file);
  if (!found) return Failure(found.error());
  return status_of(*found->node);
}

Result<struct stat> RemoteFiles::status_at(OpenFile dir, const std::string& path) {
  const auto from = opened(dir);
  if (!from) return Failure(from.error());
  const auto node = tree_.find(from->node, path);
  if (!node) return Failure(node.error());
  return status_of(**node);
}

Result<FileVersion> RemoteFiles::version(OpenFile file) {
  const auto found = opened(file);
  if (!found) return Failure(found.error());
  const RemoteNode& node = *found->node;
  if (!node.is_directory) return version_of(node.url, node.state);
  FileVersion version;
  version.device = device_;
  version.inode = node.inode;
  version.modified.tv_sec = started_;
  version.racy = false;
  return version;
}

Result<struct statvfs> RemoteFiles::filesystem_status(OpenFile file) {
  if (const auto found = opened(file); !found) return Failure(found.error());
  struct statvfs status {};
  status.f_bsize = kReadBytes;
  status.f_frsize = 4096;  // a server tells no sizes: no block is used, and none is free
  status.f_fsid = device_;
  status.f_flag = ST_RDONLY | ST_NOSUID | ST_NODEV;
  status.f_namemax = 255;
  return status;
}

Result<std::string> RemoteFiles::read_link(OpenFile file) {
  if (const auto found = opened(file); !found) return Failure(found.error());
  return io_error(EINVAL, "readlink");
}

Result<void> RemoteFiles::check_rights(OpenFile file, int rights) {
  const auto found = opened(file);
  if (!found) return Failure(found.error());
  if ((rights & W_OK) != 0) return refused("access");
  if ((rights & X_OK) != 0 && !found->node->is_directory) return io_error(EACCES, "access");
  return {};
}

Result<std::vector<std::string>> RemoteFiles::list_attributes(OpenFile file) {
  if (const auto found = opened(file); !found) return Failure(found.error());
  return std::vector<std::string>();
}

Result<std::string> RemoteFiles::get_attribute(OpenFile file, const std::string& /*name*/) {
  if (const auto found = opened(file); !found) return Failure(found.error());
  return io_error(ENODATA, "getxattr");
}

Result<bool> RemoteFiles::try_lock(OpenFile file, int /*operation*/) {
  // Locks of other readers of the server are not known, and no writer is.
  if (const auto found = opened(file); !found) return Failure(found.error());
  return true;
}

}  // namespace cframefs::frame
