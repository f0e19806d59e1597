#include "fs/filesystem.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

namespace cframefs::fs {
namespace {

constexpr std::size_t kMaxDirectories = 4096;

/// Returns the limit of held directories.
std::size_t most_directories() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMaxDirectories;
  return std::clamp<std::size_t>(limit.rlim_cur / 4, 1, kMaxDirectories);
}

}  // namespace

Filesystem::Filesystem(frame::FileOps& files, const MountOptions& options)
    : mount_(files, options, [this](const Watcher::Change& change) { source_changes_.changed(change); }) {}

Filesystem::~Filesystem() {
  stop();
}

/// Fails if the one file of a single-file mount is damaged: such a mount would show nothing.
codec::Result<void> Filesystem::check_single_source() const {
  if (!mount_.tree.is_single_file()) return {};
  auto probe = mount_.tree.probe(mount_.tree.root()->handle(), mount_.tree.single_name());
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
  const auto again = mount_.files.reopen(held.handle(), O_PATH);
  if (!again) return codec::Failure(again.error());
  const frame::Descriptor closed(mount_.files, *again);
  return {};
}

codec::Result<void> Filesystem::open_source(bool root_is_file, const std::string& remote_root) {
  if (auto checked = check_reopening(); !checked) return checked;
  if (auto opened = mount_.tree.open(remote_root); !opened) return opened;
  if (root_is_file && !mount_.tree.is_single_file()) {
    codec::Failure failure = codec::invalid("the mount point is a file, but the source is a directory");
    failure.value().path = mount_.options.mountpoint;
    return failure;
  }
  if (auto checked = check_single_source(); !checked) return checked;
  mount_.root_is_file = root_is_file;
  mount_.directories.start(mount_.tree.root(), most_directories());
  auto probe = mount_.tree.probe(mount_.tree.root()->handle(), root_is_file ? mount_.tree.single_name() : ".");
  if (!probe) return codec::Failure(probe.error());
  auto root = std::make_shared<Node>(kRootNode, NodeRole::stored, probe->kind);
  root->device = probe->status.st_dev;
  mount_.nodes.numbers().set_home(root->device);
  root->shown_inode = mount_.nodes.numbers().shown(root->device, probe->entry_inode);
  root->inode = probe->entry_inode;
  mount_.nodes.set_root(std::move(root));
  auto beneath = mount_.files.filesystem_status(mount_.tree.root()->handle());
  const bool source_is_read_only = beneath && (beneath->f_flag & ST_RDONLY) != 0;
  mount_.read_only = source_is_read_only          ? ReadOnly::source
                     : mount_.options.offset != 0 ? ReadOnly::offset
                     : mount_.options.read_only   ? ReadOnly::option
                                                  : ReadOnly::no;
  return {};
}

void Filesystem::start(KernelInvalidator& kernel, std::function<bool()> is_writable,
                       const std::function<void()>& begin_worker, PageFiller* filler) {
  mount_.is_kernel_writable = std::move(is_writable);
  pages_.fill_by(filler);
  late_answers_.start(kernel);
  notices_.start(kernel, mount_.options.kernel_cache.entry_timeout.value_or(kFileTimeout) > 0);
  mount_.watcher.start();
  mount_.workers.start(ahead_threads(mount_.options), begin_worker);
  writers_.start();
}

void Filesystem::stop() {
  mount_.watcher.stop();
  notices_.stop();
  late_answers_.stop();
  writers_.stop();
  mount_.workers.stop();
  writers_.end_removals();
}

void Filesystem::drop_caches() {
  release_memory();
  Watcher::Change everything;
  everything.everything = true;
  source_changes_.changed(everything);
}

void Filesystem::release_memory() {
  mount_.read_path.release_memory();
  mount_.index_cache->clear();
  writers_.release_memory();
  malloc_trim(0);
}

codec::Result<struct statvfs> Filesystem::filesystem_status() {
  auto status = mount_.files.filesystem_status(mount_.tree.root()->handle());
  if (status) status->f_namemax = std::min<unsigned long>(status->f_namemax, names_.longest_name());
  return status;
}

}  // namespace cframefs::fs
