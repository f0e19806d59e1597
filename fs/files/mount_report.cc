#include "fs/files/mount_report.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <vector>

#include <nlohmann/json.hpp>

#include "fs/util/open_metrics.h"

namespace cframefs::fs {
namespace {

using nlohmann::ordered_json;

struct Metric {
  const char* name;
  const char* help;
  bool is_gauge;
  std::uint64_t value;
};

struct Latency {
  const char* name;
  const char* help;
  const Histogram& histogram;
};

std::vector<Metric> request_metrics(MountContext& mount) {
  const Statistics& s = mount.statistics;
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
      {"damaged_chunks", "Damaged chunks that were met, each once", false, mount.once.damaged_chunks()},
      {"backing_changes", "Changes of frames behind the mount that were noticed", false, of(s.backing_changes)},
  };
}

std::vector<Metric> writing_metrics(MountContext& mount) {
  const WritingStatistics& w = mount.statistics.writing;
  const auto of = [](const Counter& counter) { return counter.load(std::memory_order_relaxed); };
  return {
      {"writes", "Write requests into frames that reached the daemon", false, of(w.writes)},
      {"write_bytes", "Uncompressed bytes in those writes", false, of(w.write_bytes)},
      {"chunks_encoded", "Chunks encoded", false, of(w.chunks_encoded)},
      {"bytes_encoded", "Uncompressed bytes encoded", false, of(w.bytes_encoded)},
      {"chunks_copied", "Chunks copied from frame to frame without decoding", false, of(w.chunks_copied)},
      {"commits", "Commits", false, of(w.commits)},
      {"failed_commits", "Failed commits; their data is kept and retried", false, of(w.failed_commits)},
      {"bytes_lost", "Uncompressed bytes written that could never be committed", false, of(w.bytes_lost)},
      {"bytes_written", "Bytes that commits wrote into frames, compaction included", false, of(w.bytes_written)},
  };
}

std::vector<Metric> server_metrics(MountContext& mount) {
  const auto counts = mount.files.server_counts();
  if (!counts) return {};
  return {
      {"server_requests", "Requests sent to the server", false, counts->requests},
      {"server_retries", "Requests that were sent again after they had failed", false, counts->retries},
      {"server_hedges", "Requests that were sent a second time because no answer began", false, counts->hedges},
      {"server_bytes", "Bytes of the bodies of answers", false, counts->bytes},
  };
}

std::vector<Metric> gauge_metrics(MountContext& mount, std::uint64_t dirty) {
  const BlockCache& cache = mount.read_path.cache();
  return {
      {"dirty_bytes", "Uncompressed bytes of uncommitted chunks", true, dirty},
      {"dead_bytes", "Unreferenced bytes of frames open for writing", true,
       mount.statistics.writing.dead_bytes.load(std::memory_order_relaxed)},
      {"cache_bytes", "Decoded bytes held", true, cache.bytes()},
      {"cache_idle_bytes", "Buffers held for reuse", true, mount.read_path.pool().idle_bytes()},
      {"cache_bound_bytes", "Bound on decoded bytes held (cache_size)", true, cache.bound()},
      {"workers", "Decoding threads, including the reader's", true, ahead_threads(mount.options) + 1},
  };
}

std::vector<Metric> metrics_of(MountContext& mount, std::uint64_t dirty) {
  std::vector<Metric> all = request_metrics(mount);
  for (const auto& more : {writing_metrics(mount), server_metrics(mount), gauge_metrics(mount, dirty)})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::array<Latency, 7> latencies_of(MountContext& mount) {
  const Statistics& s = mount.statistics;
  return {{{"lookup_seconds", "Time to answer a look-up", s.lookup_time},
           {"open_seconds", "Time to answer an open", s.open_time},
           {"read_seconds", "Time to answer a read", s.read_time},
           {"write_seconds", "Time to answer a write", s.write_time},
           {"sync_seconds", "Time to answer fsync and close, which commit", s.sync_time},
           {"decode_seconds", "Time to fetch and decode neighbouring blocks", s.decoding.decode_time},
           {"commit_seconds", "Time of a commit", s.writing.commit_time}}};
}

constexpr double kNanoseconds = 1e-9;

ordered_json latency_json(MountContext& mount) {
  ordered_json bounds = ordered_json::array();
  for (std::size_t i = 0; i < Histogram::kBounds; ++i)
    bounds.push_back(static_cast<double>(Histogram::bound(i)) * kNanoseconds);
  ordered_json all = {{"bounds_seconds", std::move(bounds)}};
  for (const Latency& latency : latencies_of(mount)) {
    const Histogram::Counts counts = latency.histogram.counts();
    all[latency.name] = {{"sum", static_cast<double>(counts.sum) * kNanoseconds}, {"counts", counts.buckets}};
  }
  return all;
}

ordered_json errors_json(const ErrorCounters& errors) {
  ordered_json all = ordered_json::object();
  for (std::size_t operation = 0; operation < kOperationNames.size(); ++operation) {
    ordered_json kinds = ordered_json::object();
    for (std::size_t kind = 0; kind < kErrorClassNames.size(); ++kind)
      kinds[kErrorClassNames[kind]] = errors.count(static_cast<Operation>(operation), static_cast<ErrorClass>(kind));
    all[kOperationNames[operation]] = std::move(kinds);
  }
  return all;
}

std::string text_of(const ordered_json& value) {
  return value.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string absolute(const std::string& path) {
  std::error_code failed;
  const auto real = std::filesystem::canonical(path, failed);
  return failed ? path : real.string();
}

}  // namespace

MountPlace MountPlace::of(const MountOptions& options) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {absolute(options.mountpoint),
          frame::is_address(options.source) ? frame::shown_address(options.source) : absolute(options.source),
          std::chrono::duration<double>(now).count()};
}

namespace {

ordered_json counters_json(MountContext& mount, const MountPlace& where, std::uint64_t dirty) {
  ordered_json all = {{"version", mount.options.daemon.build.version},
                      {"libfuse", mount.options.daemon.build.libfuse},
                      {"mountpoint", where.mountpoint},
                      {"source", where.source},
                      {"read_only", mount.is_read_only()},
                      {"start_time_seconds", where.began}};
  for (const Metric& metric : metrics_of(mount, dirty))
    all[metric.name] = metric.value;
  all["errors"] = mount.statistics.errors.count(Operation::read);
  all["errors_by_kind"] = errors_json(mount.statistics.errors);
  return all;
}

}  // namespace

std::string stats_json(MountContext& mount, const MountPlace& where, std::uint64_t dirty) {
  ordered_json all = counters_json(mount, where, dirty);
  all["latency"] = latency_json(mount);
  return text_of(all);
}

std::string stats_line(MountContext& mount, const MountPlace& where, std::uint64_t dirty) {
  return counters_json(mount, where, dirty).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string metrics_text(MountContext& mount, const MountPlace& where, std::uint64_t dirty) {
  OpenMetrics text({{"mountpoint", where.mountpoint}});
  text.info("build", "The programs of the mount",
            {{"version", mount.options.daemon.build.version}, {"libfuse", mount.options.daemon.build.libfuse}});
  text.info("mount", "What the mount shows",
            {{"source", where.source}, {"read_only", mount.is_read_only() ? "true" : "false"}});
  text.time("start_time_seconds", "When the mount began, in seconds since 1970", where.began);
  for (const Metric& metric : metrics_of(mount, dirty)) {
    if (metric.is_gauge) {
      text.gauge(metric.name, metric.help, metric.value);
    } else {
      text.counter(metric.name, metric.help, metric.value);
    }
  }
  text.begin_counter("errors", "Requests answered with an error");
  for (std::size_t operation = 0; operation < kOperationNames.size(); ++operation) {
    for (std::size_t kind = 0; kind < kErrorClassNames.size(); ++kind)
      text.counter_sample(
          "errors", {{"operation", kOperationNames[operation]}, {"kind", kErrorClassNames[kind]}},
          mount.statistics.errors.count(static_cast<Operation>(operation), static_cast<ErrorClass>(kind)));
  }
  for (const Latency& latency : latencies_of(mount))
    text.histogram(latency.name, latency.help, latency.histogram.counts());
  return text.finish();
}

std::string busiest_json(MountContext& mount) {
  ordered_json list = ordered_json::array();
  for (const BusyFiles::File& file : mount.statistics.busy_files.files()) {
    // A file may have been renamed since it entered the table.
    const auto path = mount.nodes.path_of(file.id);
    list.push_back({{"path", path ? *path : file.path},
                    {"read_bytes", file.read_bytes},
                    {"write_bytes", file.write_bytes},
                    {"requests", file.requests},
                    {"inherited_bytes", file.inherited}});
  }
  return text_of(list);
}

}  // namespace cframefs::fs
