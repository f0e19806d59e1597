#include "fs/mount/mount_context.h"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "fs/util/log.h"
#include "fs/util/memory_limits.h"

namespace cframefs::fs {

// One less than decoders, because the thread that serves the reader decodes, too: with two processors this was measured
// to be a quarter faster.
unsigned ahead_threads(const MountOptions& options) {
  const unsigned threads = options.workers != 0 ? options.workers : std::thread::hardware_concurrency();
  return std::max(2U, threads) - 1;
}

MountContext::MountContext(frame::FileOps& file_ops, MountOptions mount_options, Watcher::Reporter reporter)
    : files(file_ops),
      options(std::move(mount_options)),
      memory(usable_memory(MemorySources::of_system())),
      read_path(options.cache_size.value_or(default_cache_size(memory)), statistics.decoding, once,
                ahead_threads(options) + 1),
      tree(files, options),
      index_cache(std::make_shared<frame::IndexCache>()),
      watcher(std::move(reporter)) {
  if (options.statistics) statistics.enable_histograms();
}

codec::Result<void> MountContext::check_writable(const char* doing) {
  switch (read_only.load(std::memory_order_relaxed)) {
    case ReadOnly::no:
      return {};
    case ReadOnly::option:
      if (!is_kernel_writable || !is_kernel_writable()) break;
      if (read_only.exchange(ReadOnly::no) != ReadOnly::no) log_info("the mount is read-write since a remount");
      return {};
    case ReadOnly::offset:
      return codec::io_error(EROFS, doing, "a mount with offset= is read-only");
    case ReadOnly::source:
      return codec::io_error(EROFS, doing, "the filesystem of the source is read-only");
  }
  return codec::io_error(EROFS, doing, "the mount has the option ro");
}

}  // namespace cframefs::fs
