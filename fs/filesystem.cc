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

/// Returns the number of threads that decode ahead. One less than decoders, because the thread that serves the reader
/// decodes, too: with two processors this was measured to be a quarter faster.
unsigned ahead_threads(const MountOptions& options) {
  const unsigned threads = options.workers != 0 ? options.workers : std::thread::hardware_concurrency();
  return std::max(2U, threads) - 1;
}

}  // namespace

Filesystem::Filesystem(frame::FileOps& files, const MountOptions& options)
    : files_(files),
      options_(options),
      memory_(usable_memory(MemorySources::of_system())),
      read_path_(options.cache_size.value_or(default_cache_size(memory_)), statistics_, once_,
                 ahead_threads(options) + 1),
      tree_(files, options),
      index_cache_(std::make_shared<frame::IndexCache>()),
      ahead_(read_path_, workers_, options.readahead, ahead_threads(options) + 1),
      watcher_([this](const Watcher::Change& change) { changed(change); }),
      encoders_(workers_, ahead_threads(options), statistics_) {
  const auto milliseconds = [](double seconds) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  };
  write_back_.interval = milliseconds(options.commit_interval);
  write_back_.lock_timeout = milliseconds(options.lock_timeout);
  write_back_.dirty_limit = options.dirty_limit.value_or(default_dirty_limit(memory_));
}

Filesystem::~Filesystem() {
  stop();
}

/// Fails if the one file of a single-file mount is damaged: such a mount would show nothing.
codec::Result<void> Filesystem::check_single_source() const {
  if (!tree_.is_single_file()) return {};
  auto probe = tree_.probe(tree_.root()->fd(), tree_.single_name());
  if (!probe) return codec::Failure(probe.error());
  if (!probe->damage) return {};
  codec::Error error = *probe->damage;
  error.path = options_.source;
  if (error.kind != codec::ErrorKind::io && !error.file_offset) error.file_offset = tree_.frame_begin().value;
  return codec::Failure(std::move(error));
}

/// Fails if /proc is missing: every call on the mount would then fail.
codec::Result<void> Filesystem::check_reopening() {
  const auto root = files_.open_named("/", O_PATH);
  if (!root) return codec::Failure(root.error());
  const frame::Descriptor held(files_, *root);
  const auto again = files_.reopen(held.fd(), O_PATH);
  if (!again) return codec::Failure(again.error());
  const frame::Descriptor closed(files_, *again);
  return {};
}

codec::Result<void> Filesystem::open_source(bool root_is_file) {
  if (auto checked = check_reopening(); !checked) return checked;
  if (auto opened = tree_.open(); !opened) return opened;
  if (root_is_file && !tree_.is_single_file()) {
    codec::Failure failure = codec::invalid("the mount point is a file, but the source is a directory");
    failure.value().path = options_.mountpoint;
    return failure;
  }
  if (auto checked = check_single_source(); !checked) return checked;
  root_is_file_ = root_is_file;
  directories_.start(tree_.root(), most_directories());
  auto probe = tree_.probe(tree_.root()->fd(), root_is_file ? tree_.single_name() : ".");
  if (!probe) return codec::Failure(probe.error());
  auto root = std::make_shared<Node>(kRootNode, NodeRole::stored, probe->kind);
  root->device = probe->status.st_dev;
  nodes_.numbers().set_home(root->device);
  root->shown_inode = nodes_.numbers().shown(root->device, probe->entry_inode);
  root->inode = probe->entry_inode;
  nodes_.set_root(std::move(root));
  auto beneath = files_.filesystem_status(tree_.root()->fd());
  const bool source_is_read_only = beneath && (beneath->f_flag & ST_RDONLY) != 0;
  read_only_ = options_.read_only || options_.offset != 0 || source_is_read_only;
  return {};
}

void Filesystem::start(KernelInvalidator& kernel, const KernelReadahead& readahead) {
  kernel_ = &kernel;
  ahead_.kernel = readahead;
  // The kernel may cache names of files only if it can drop them without waiting for requests that change a directory.
  keeps_names_ = options_.entry_timeout.value_or(0) > 0 && kernel.invalidate_all_entries();
  watcher_.start();
  notifier_.start();
  workers_.start(ahead_threads(options_));
  workers_.post([cache = index_cache_] { cache->warm_up(); });
  read_path_.cache().prepare_with([this](std::function<void()> task) { workers_.post(std::move(task)); });
  flusher_.start();
}

void Filesystem::stop() {
  watcher_.stop();
  notifier_.stop();
  flusher_.stop();
  flusher_.commit_all(
      [this](WriteBack& file, const codec::Error& reason) { drop_rest(file, reason, [] { return true; }); });
  workers_.stop();
}

void Filesystem::forget(NodeId node, std::uint64_t lookups) {
  if (!nodes_.forget(node, lookups)) return;
  watcher_.forget(node);
  directories_.forget(node);
  // The C library keeps free memory between blocks that are in use.
  if (nodes_.take_shrunk()) try_in_memory([this] { workers_.post([] { malloc_trim(0); }); });
}

std::size_t Filesystem::most_directories() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMaxDirectories;
  return std::clamp<std::size_t>(limit.rlim_cur / 4, 1, kMaxDirectories);
}

std::string Filesystem::path_of(NodeId node) const {
  if (root_is_file_) return tree_.single_name();
  return nodes_.path_of(node).value_or(std::string());
}

std::string Filesystem::path_in(NodeId directory, const std::string& name) const {
  const std::string path = nodes_.path_of(directory).value_or(std::string());
  return path.empty() ? name : path + "/" + name;
}

codec::Result<Filesystem::HeldName> Filesystem::held_name_of(const Node& node) {
  if (node.id == kRootNode) return HeldName{tree_.root(), root_is_file_ ? tree_.single_name() : "."};
  if (node.kind == EntryKind::directory) {
    auto directory = directories_.open(node.id);
    if (!directory) return codec::Failure(directory.error());
    return HeldName{std::move(*directory), "."};
  }
  auto place = nodes_.place_of(node.id);
  if (!place) return codec::Failure(place.error());
  auto directory = directories_.open(place->parent);
  if (!directory) return codec::Failure(directory.error());
  return HeldName{std::move(*directory), std::move(place->name)};
}

void Filesystem::watch(Node& directory) {
  if (directory.watched.load(std::memory_order_acquire)) return;
  if (root_is_file_ && directory.id == kRootNode) return;
  const auto opened = directories_.open(directory.id);
  // A group of a store changes with the store, which the watch of the store's directory reports. For inotify both are
  // one inode: a watch of the group would replace that of the store.
  if (opened && (!files_.is_on_disk((*opened)->fd()) || watcher_.watch((*opened)->fd(), directory.id)))
    directory.watched.store(true, std::memory_order_release);
}

codec::Result<Attributes> Filesystem::lookup(NodeId parent, const std::string& name) {
  statistics_.lookups.fetch_add(1, std::memory_order_relaxed);
  const std::shared_ptr<Node> node = nodes_.find(parent);
  if (!node) return no_such_node();
  if (node->role == NodeRole::control_directory ||
      (parent == kRootNode && options_.statistics && name == ".cframefs")) {
    return lookup_control(parent, name);
  }
  auto directory = directories_.open(parent);
  if (!directory) return codec::Failure(directory.error());
  watch(*node);
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
    // Under names_: a rename in between would enter the node at its old place.
    codec::SharedLock names(names_);
    auto stored = tree_.resolve(directory->fd(), name);
    if (!stored) return codec::Failure(stored.error());
    auto entry = tree_.probe_entry(directory->fd(), *stored);
    if (!entry) return codec::Failure(entry.error());
    // While a commit replaces the file, the name belongs to the node of the old file.
    node = committing_at(DirEntry{parent, *stored});
    node = node ? nodes_.enter_again(node->id) : nullptr;
    if (!node) node = nodes_.enter(parent, *stored, NodeRole::stored, *entry);
  }
  auto found = or_no_memory([&]() -> codec::Result<Attributes> {
    auto probe = probe_node(*node);
    if (!probe) return codec::Failure(probe.error());
    return describe(*node, *probe);
  });
  if (!found) forget(node->id, 1);
  return found;
}

codec::Result<std::unique_ptr<FileHandle>> Filesystem::open(NodeId id, int flags) {
  statistics_.opens.fetch_add(1, std::memory_order_relaxed);
  auto handle = std::make_unique<FileHandle>();
  handle->node = nodes_.find(id);
  if (!handle->node) return no_such_node();
  Node& node = *handle->node;
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
  if (writes && (read_only_ || node.role != NodeRole::stored)) return codec::io_error(EROFS, "open");
  if (node.role == NodeRole::control_file) {
    const std::string path = path_of(id);
    handle->content = control_content(path.substr(path.rfind('/') + 1));
    handle->direct = true;
    return handle;
  }
  if (!is_container(node.kind)) return open_plain(std::move(handle), flags);
  return open_frame(std::move(handle), flags, false);
}

codec::Result<void> Filesystem::read(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply,
                                     bool holds_pages) {
  statistics_.reads.fetch_add(1, std::memory_order_relaxed);
  confirm_open(handle);
  if (holds_pages && length > 0 && is_container(handle.node->kind)) {
    reply.mark() = ReadsUnderWay::begin({handle.node, &handle.node->reads}, at, length);
  }
  codec::Result<void> done;
  if (handle.node->role == NodeRole::control_file) {
    if (at < handle.content.size()) {
      const std::size_t size = std::min<std::size_t>(length, handle.content.size() - at);
      Buffer buffer = read_path_.pool().get(size);
      std::copy_n(handle.content.begin() + static_cast<std::ptrdiff_t>(at), size, buffer.bytes().begin());
      reply.add(std::move(buffer), size);
    }
  } else {
    done =
        is_container(handle.node->kind) ? read_frame(handle, at, length, reply) : read_plain(handle, at, length, reply);
  }
  if (done) {
    reply.coalesce(read_path_.pool());
    statistics_.bytes_served.fetch_add(reply.size(), std::memory_order_relaxed);
  } else {
    statistics_.errors.fetch_add(1, std::memory_order_relaxed);
  }
  return done;
}

codec::Result<void> Filesystem::read_plain(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply) {
  Buffer buffer = read_path_.pool().get(length);
  auto got = files_.pread(handle.file->fd(), buffer.bytes(), frame::FileOffset{at});
  if (!got) return codec::Failure(got.error());
  reply.add(std::move(buffer), *got);
  return {};
}

codec::Result<std::uint64_t> Filesystem::seek(FileHandle& handle, std::uint64_t from, int whence) {
  const bool hole = whence == SEEK_HOLE;
  if (whence != SEEK_DATA && !hole) return codec::invalid("lseek: only SEEK_DATA and SEEK_HOLE reach a filesystem");
  if (!is_container(handle.node->kind)) {
    if (!handle.file) return codec::io_error(ENXIO, "lseek");
    auto found = files_.seek(handle.file->fd(), frame::FileOffset{from}, whence);
    if (!found) return codec::Failure(found.error());
    return found->value;
  }
  return seek_frame(handle, from, hole);
}

std::size_t Filesystem::longest_name() const {
  // A new file becomes a frame, whose name on disk has a suffix.
  return read_only_ ? NAME_MAX : NAME_MAX - tree_.rules().new_name("").size();
}

codec::Result<struct statvfs> Filesystem::filesystem_status() {
  auto status = files_.filesystem_status(tree_.root()->fd());
  if (status) status->f_namemax = std::min<unsigned long>(status->f_namemax, longest_name());
  return status;
}

}  // namespace cframefs::fs
