#include "fs/mount/mount_context.h"

#include <algorithm>
#include <thread>
#include <utility>

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

}  // namespace cframefs::fs
