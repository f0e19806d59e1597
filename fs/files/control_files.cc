#include "fs/files/control_files.h"

#include <array>
#include <cerrno>
#include <ctime>
#include <memory>
#include <vector>

namespace cframefs::fs {
namespace {

struct Metric {
  const char* name;
  const char* help;
  bool is_gauge;
  std::uint64_t value;
};

std::vector<Metric> metrics_of(const Statistics& s, const BlockCache& cache, const BufferPool& pool,
                               std::uint64_t dirty_bytes) {
  const auto of = [](const Counter& counter) { return counter.load(std::memory_order_relaxed); };
  return {
      {"lookups", "Names looked up", false, of(s.lookups)},
      {"opens", "Files opened", false, of(s.opens)},
      {"reads", "Read requests that reached the daemon", false, of(s.reads)},
      {"bytes_served", "Uncompressed bytes in replies to reads", false, of(s.bytes_served)},
      {"bytes_fetched", "Stored bytes read from frames", false, of(s.decoding.bytes_fetched)},
      {"bytes_decoded", "Uncompressed bytes decoded", false, of(s.decoding.bytes_decoded)},
      {"blocks_decoded", "Blocks decoded", false, of(s.decoding.blocks_decoded)},
      {"cache_hits", "Blocks found in the cache, or being decoded by another reader", false, of(s.decoding.cache_hits)},
      {"cache_misses", "Blocks that a reader had to decode", false, of(s.decoding.cache_misses)},
      {"prefetched_blocks", "Blocks decoded ahead of a sequential reader", false, of(s.decoding.prefetched_blocks)},
      {"evictions", "Blocks evicted to keep the cache within its bound", false, of(s.decoding.evictions)},
      {"writes", "Write requests into frames that reached the daemon", false, of(s.writing.writes)},
      {"write_bytes", "Uncompressed bytes in those writes", false, of(s.writing.write_bytes)},
      {"chunks_encoded", "Chunks encoded", false, of(s.writing.chunks_encoded)},
      {"bytes_encoded", "Uncompressed bytes encoded", false, of(s.writing.bytes_encoded)},
      {"chunks_copied", "Chunks copied from frame to frame without decoding", false, of(s.writing.chunks_copied)},
      {"commits", "Commits", false, of(s.writing.commits)},
      {"failed_commits", "Failed commits; their data is kept and retried", false, of(s.writing.failed_commits)},
      {"bytes_lost", "Uncompressed bytes written that could never be committed", false, of(s.writing.bytes_lost)},
      {"bytes_written", "Bytes that commits wrote into frames, compaction included", false,
       of(s.writing.bytes_written)},
      {"errors", "Reads answered with an error", false, of(s.errors)},
      {"backing_changes", "Changes of frames behind the mount that were noticed", false, of(s.backing_changes)},
      {"dirty_bytes", "Uncompressed bytes of uncommitted chunks", true, dirty_bytes},
      {"dead_bytes", "Unreferenced bytes of frames open for writing", true, of(s.writing.dead_bytes)},
      {"cache_bytes", "Decoded bytes held", true, cache.bytes()},
      {"cache_idle_bytes", "Buffers held for reuse", true, pool.idle_bytes()},
      {"cache_bound_bytes", "Bound on decoded bytes held (cache_size)", true, cache.bound()},
  };
}

Attributes control_attributes(const Node& node, std::uint64_t size) {
  Attributes attributes;
  attributes.node = node.id;
  attributes.status.st_ino = node.shown_inode;
  attributes.status.st_mode = node.role == NodeRole::control_directory ? S_IFDIR | 0555U : S_IFREG | 0444U;
  attributes.status.st_nlink = 1;
  attributes.status.st_size = static_cast<off_t>(size);
  attributes.status.st_mtime = attributes.status.st_ctime = attributes.status.st_atime = std::time(nullptr);
  return attributes;
}

}  // namespace

std::string ControlFiles::content(const std::string& name) {
  const std::vector<Metric> metrics = metrics_of(mount_.statistics, mount_.read_path.cache(), mount_.read_path.pool(),
                                                 write_back_.dirty_bytes.load(std::memory_order_relaxed));
  if (name == "stats.json") {
    std::string json;
    for (const Metric& metric : metrics)
      json += (json.empty() ? "{\n  \"" : ",\n  \"") + std::string(metric.name) + "\": " + std::to_string(metric.value);
    return json + "\n}\n";
  }
  std::string text;
  for (const Metric& metric : metrics) {
    const std::string full = std::string("cframefs_") + metric.name + (metric.is_gauge ? "" : "_total");
    text += "# HELP " + full + " " + metric.help + "\n";
    text += "# TYPE " + full + (metric.is_gauge ? " gauge\n" : " counter\n");
    text += full + " " + std::to_string(metric.value) + "\n";
  }
  return text;
}

codec::Result<Attributes> ControlFiles::lookup(NodeId parent, const std::string& name) {
  constexpr std::array<const char*, 3> kNames = {".cframefs", "stats.json", "metrics"};
  const std::shared_ptr<Node> directory = mount_.nodes.find(parent);
  const bool in_root = parent == kRootNode;
  for (std::size_t i = in_root ? 0 : 1; i < (in_root ? 1 : kNames.size()); ++i) {
    if (name != kNames[i]) continue;
    EntryStat probe;
    probe.kind = in_root ? EntryKind::directory : EntryKind::plain;
    probe.entry_inode = i + 1;  // device 0: no file on disk has it
    const NodeRole role = in_root ? NodeRole::control_directory : NodeRole::control_file;
    const std::shared_ptr<Node> node = mount_.nodes.enter(parent, name, role, probe);
    const Attributes attributes = control_attributes(*node, in_root ? 0 : content(name).size());
    codec::MutexLock lock(node->mutex);
    node->known.status = attributes.status;
    return attributes;
  }
  return codec::io_error(ENOENT, "lookup");
}

}  // namespace cframefs::fs
