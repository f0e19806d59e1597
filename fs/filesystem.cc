#include "fs/filesystem.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <thread>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fs/util/memory_limits.h"
#include "fs/util/no_memory.h"

namespace cframefs::fs {
namespace {

constexpr std::size_t kMaxDirectories = 4096;
// Attempts of a look-up while commits replace the file.
constexpr int kLookupAttempts = 5;

}  // namespace

Filesystem::Filesystem(frame::FileOps& files, const MountOptions& options)
    : mount_(files, options, [this](const Watcher::Change& change) { source_changes_.changed(change); }),
      ahead_(mount_.read_path, mount_.workers, options.readahead, ahead_threads(options) + 1),
      encoders_(mount_.workers, ahead_threads(options), mount_.statistics) {
  const auto milliseconds = [](double seconds) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  };
  write_back_.became_dirty = [this] { flusher_.note_dirty(); };
  write_back_.interval = milliseconds(options.commit_interval);
  write_back_.lock_timeout = milliseconds(options.lock_timeout);
  write_back_.dirty_limit = options.dirty_limit.value_or(default_dirty_limit(mount_.memory));
}

Filesystem::~Filesystem() {
  stop();
}

/// Fails if the one file of a single-file mount is damaged: such a mount would show nothing.
codec::Result<void> Filesystem::check_single_source() const {
  if (!mount_.tree.is_single_file()) return {};
  auto probe = mount_.tree.probe(mount_.tree.root()->fd(), mount_.tree.single_name());
  if (!probe) return codec::Failure(probe.error());
  if (!probe->damage) return {};
  codec::Error error = *probe->damage;
  error.path = mount_.options.source;
  if (error.kind != codec::ErrorKind::io && !error.file_offset) error.file_offset = mount_.tree.frame_begin().value;
  return codec::Failure(std::move(error));
}

/// Fails if /proc is missing: every call on the mount would then fail.
codec::Result<void> Filesystem::check_reopening() {
  const auto root = mount_.files.open_named("/", O_PATH);
  if (!root) return codec::Failure(root.error());
  const frame::Descriptor held(mount_.files, *root);
  const auto again = mount_.files.reopen(held.fd(), O_PATH);
  if (!again) return codec::Failure(again.error());
  const frame::Descriptor closed(mount_.files, *again);
  return {};
}

codec::Result<void> Filesystem::open_source(bool root_is_file) {
  if (auto checked = check_reopening(); !checked) return checked;
  if (auto opened = mount_.tree.open(); !opened) return opened;
  if (root_is_file && !mount_.tree.is_single_file()) {
    codec::Failure failure = codec::invalid("the mount point is a file, but the source is a directory");
    failure.value().path = mount_.options.mountpoint;
    return failure;
  }
  if (auto checked = check_single_source(); !checked) return checked;
  mount_.root_is_file = root_is_file;
  mount_.directories.start(mount_.tree.root(), most_directories());
  auto probe = mount_.tree.probe(mount_.tree.root()->fd(), root_is_file ? mount_.tree.single_name() : ".");
  if (!probe) return codec::Failure(probe.error());
  auto root = std::make_shared<Node>(kRootNode, NodeRole::stored, probe->kind);
  root->device = probe->status.st_dev;
  mount_.nodes.numbers().set_home(root->device);
  root->shown_inode = mount_.nodes.numbers().shown(root->device, probe->entry_inode);
  root->inode = probe->entry_inode;
  mount_.nodes.set_root(std::move(root));
  auto beneath = mount_.files.filesystem_status(mount_.tree.root()->fd());
  const bool source_is_read_only = beneath && (beneath->f_flag & ST_RDONLY) != 0;
  mount_.read_only = mount_.options.read_only || mount_.options.offset != 0 || source_is_read_only;
  return {};
}

void Filesystem::start(KernelInvalidator& kernel, const KernelReadahead& readahead) {
  ahead_.kernel = readahead;
  notices_.start(kernel, mount_.options.entry_timeout.value_or(0) > 0);
  mount_.watcher.start();
  mount_.workers.start(ahead_threads(mount_.options));
  mount_.workers.post([cache = mount_.index_cache] { cache->warm_up(); });
  mount_.read_path.cache().prepare_with([this](std::function<void()> task) { mount_.workers.post(std::move(task)); });
  flusher_.start();
}

void Filesystem::stop() {
  mount_.watcher.stop();
  notices_.stop();
  flusher_.stop();
  flusher_.commit_all(
      [this](WriteBack& file, const codec::Error& reason) { drop_rest(file, reason, [] { return true; }); });
  mount_.workers.stop();
}

std::size_t Filesystem::most_directories() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMaxDirectories;
  return std::clamp<std::size_t>(limit.rlim_cur / 4, 1, kMaxDirectories);
}

codec::Result<Attributes> Filesystem::lookup(NodeId parent, const std::string& name) {
  mount_.statistics.lookups.fetch_add(1, std::memory_order_relaxed);
  const std::shared_ptr<Node> node = mount_.nodes.find(parent);
  if (!node) return no_such_node();
  if (node->role == NodeRole::control_directory ||
      (parent == kRootNode && mount_.options.statistics && name == ".cframefs")) {
    return lookup_control(parent, name);
  }
  auto directory = mount_.directories.open(parent);
  if (!directory) return codec::Failure(directory.error());
  node_files_.watch(*node);
  for (int attempt = 1;; ++attempt) {
    auto found = lookup_stored(parent, *directory, name);
    // stale: a commit has replaced the file between two look-ups of the name.
    const bool is_stale = !found && found.error().kind == codec::ErrorKind::stale;
    // A file with a name of this length cannot be created either.
    if (!found && found.error().sys == ENOENT && name.size() > longest_name())
      return codec::io_error(ENAMETOOLONG, "lookup");
    if (!is_stale) return found;
    if (attempt == kLookupAttempts) return codec::io_error(ENOENT, "lookup");
  }
}

codec::Result<Attributes> Filesystem::lookup_stored(NodeId parent, const HeldDirectory& directory,
                                                    const std::string& name) {
  std::shared_ptr<Node> node;
  {
    // Under mount_.names: a rename in between would enter the node at its old place.
    codec::SharedLock names(mount_.names);
    auto stored = mount_.tree.resolve(directory->fd(), name);
    if (!stored) return codec::Failure(stored.error());
    auto entry = mount_.tree.probe_entry(directory->fd(), *stored);
    if (!entry) return codec::Failure(entry.error());
    // While a commit replaces the file, the name belongs to the node of the old file.
    node = committing_at(DirEntry{parent, *stored});
    node = node ? mount_.nodes.enter_again(node->id) : nullptr;
    if (!node) node = mount_.nodes.enter(parent, *stored, NodeRole::stored, *entry);
  }
  auto found = or_no_memory([&]() -> codec::Result<Attributes> {
    auto probe = probe_node(*node);
    if (!probe) return codec::Failure(probe.error());
    return describe(*node, *probe);
  });
  if (!found) node_files_.forget(node->id, 1);
  return found;
}

codec::Result<std::unique_ptr<FileHandle>> Filesystem::open(NodeId id, int flags) {
  mount_.statistics.opens.fetch_add(1, std::memory_order_relaxed);
  auto handle = std::make_unique<FileHandle>();
  handle->node = mount_.nodes.find(id);
  if (!handle->node) return no_such_node();
  Node& node = *handle->node;
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
  if (writes && (mount_.read_only || node.role != NodeRole::stored)) return codec::io_error(EROFS, "open");
  if (node.role == NodeRole::control_file) {
    const std::string path = node_files_.path_of(id);
    handle->content = control_content(path.substr(path.rfind('/') + 1));
    handle->direct = true;
    return handle;
  }
  if (!is_container(node.kind)) return open_plain(std::move(handle), flags);
  return open_frame(std::move(handle), flags, {});
}

codec::Result<void> Filesystem::read(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply,
                                     bool holds_pages) {
  mount_.statistics.reads.fetch_add(1, std::memory_order_relaxed);
  pages_.confirm_open(handle);
  if (holds_pages && length > 0 && is_container(handle.node->kind)) {
    reply.mark() = ReadsUnderWay::begin({handle.node, &handle.node->reads}, at, length);
  }
  codec::Result<void> done;
  if (handle.node->role == NodeRole::control_file) {
    if (at < handle.content.size()) {
      const std::size_t size = std::min<std::size_t>(length, handle.content.size() - at);
      Buffer buffer = mount_.read_path.pool().get(size);
      std::copy_n(handle.content.begin() + static_cast<std::ptrdiff_t>(at), size, buffer.bytes().begin());
      reply.add(std::move(buffer), size);
    }
  } else {
    done =
        is_container(handle.node->kind) ? read_frame(handle, at, length, reply) : read_plain(handle, at, length, reply);
  }
  if (done) {
    reply.coalesce(mount_.read_path.pool());
    mount_.statistics.bytes_served.fetch_add(reply.size(), std::memory_order_relaxed);
  } else {
    mount_.statistics.errors.fetch_add(1, std::memory_order_relaxed);
  }
  return done;
}

codec::Result<void> Filesystem::read_plain(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply) {
  Buffer buffer = mount_.read_path.pool().get(length);
  auto got = mount_.files.pread(handle.file->fd(), buffer.bytes(), frame::FileOffset{at});
  if (!got) return codec::Failure(got.error());
  reply.add(std::move(buffer), *got);
  return {};
}

codec::Result<std::uint64_t> Filesystem::seek(FileHandle& handle, std::uint64_t from, int whence) {
  const bool hole = whence == SEEK_HOLE;
  if (whence != SEEK_DATA && !hole) return codec::invalid("lseek: only SEEK_DATA and SEEK_HOLE reach a filesystem");
  if (!is_container(handle.node->kind)) {
    if (!handle.file) return codec::io_error(ENXIO, "lseek");
    auto found = mount_.files.seek(handle.file->fd(), frame::FileOffset{from}, whence);
    if (!found) return codec::Failure(found.error());
    return found->value;
  }
  return seek_frame(handle, from, hole);
}

std::size_t Filesystem::longest_name() const {
  // A new file becomes a frame, whose name on disk has a suffix.
  return mount_.read_only ? NAME_MAX : NAME_MAX - mount_.tree.rules().new_name("").size();
}

codec::Result<struct statvfs> Filesystem::filesystem_status() {
  auto status = mount_.files.filesystem_status(mount_.tree.root()->fd());
  if (status) status->f_namemax = std::min<unsigned long>(status->f_namemax, longest_name());
  return status;
}

}  // namespace cframefs::fs
