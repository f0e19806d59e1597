#include "tools/cframe/top_view.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "tools/cframe/cframe.h"
#include "tools/lib/sizes.h"

namespace cframefs::tools {
namespace {

/// What has happened between two samples, for each second.
class Rates {
 public:
  Rates(const MountSample& before, const MountSample& now)
      : before_(before), now_(now), seconds_(std::max(now.at - before.at, 1e-3)) {}

  /// A mount that was replaced by another one at the same place begins from 0 again.
  std::uint64_t change(const std::string& name) const {
    const std::uint64_t was = before_.number(name);
    const std::uint64_t is = now_.number(name);
    return is >= was ? is - was : is;
  }
  double of(const std::string& name) const { return static_cast<double>(change(name)) / seconds_; }
  double seconds() const { return seconds_; }

  LatencyCounts latency(const std::string& name) const {
    const auto is = now_.latencies.find(name);
    if (is == now_.latencies.end()) return {};
    LatencyCounts change = is->second;
    const auto was = before_.latencies.find(name);
    if (was == before_.latencies.end() || was->second.counts.size() != change.counts.size()) return change;
    for (std::size_t i = 0; i < change.counts.size(); ++i)
      change.counts[i] -= std::min(was->second.counts[i], change.counts[i]);
    change.sum = std::max(0.0, change.sum - was->second.sum);
    return change;
  }

  std::vector<FileTraffic> files() const {
    std::map<std::string, const FileTraffic*> known;
    for (const FileTraffic& file : before_.files)
      known[file.path] = &file;
    std::vector<FileTraffic> files;
    for (FileTraffic file : now_.files) {
      // A file that left the list and came back counts from 0 again.
      const auto was = known.find(file.path);
      if (was != known.end() && was->second->requests <= file.requests) {
        file.read_bytes -= std::min(was->second->read_bytes, file.read_bytes);
        file.write_bytes -= std::min(was->second->write_bytes, file.write_bytes);
        file.requests -= was->second->requests;
      }
      if (file.requests > 0) files.push_back(std::move(file));
    }
    std::stable_sort(files.begin(), files.end(), [](const FileTraffic& a, const FileTraffic& b) {
      return a.read_bytes + a.write_bytes > b.read_bytes + b.write_bytes;
    });
    return files;
  }

 private:
  const MountSample& before_;
  const MountSample& now_;
  const double seconds_;
};

std::string rate_text(double bytes) {
  return human_size(static_cast<std::uint64_t>(bytes)) + "/s";
}

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1e3) : fmt::format("{:.1f} s", seconds);
}

/// Returns the bound of the bucket in which the given part of all requests ends: at most "2 us".
std::string quantile_text(const LatencyCounts& latency, const std::vector<double>& bounds, double part) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : latency.counts)
    all += count;
  if (all == 0) return "-";
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < latency.counts.size() && i < bounds.size(); ++i) {
    sum += latency.counts[i];
    if (static_cast<double>(sum) >= part * static_cast<double>(all)) return time_text(bounds[i]);
  }
  return "longer";
}

std::string latency_text(const LatencyCounts& latency, const std::vector<double>& bounds) {
  return "half within " + quantile_text(latency, bounds, 0.5) + ", 99 % within " + quantile_text(latency, bounds, 0.99);
}

/// Returns "-" if no block was wanted.
std::string hits_text(const Rates& rates) {
  const auto hits = static_cast<double>(rates.change("cache_hits"));
  const auto all = hits + static_cast<double>(rates.change("cache_misses"));
  return all > 0 ? fmt::format("{:.1f}%", 100 * hits / all) : "-";
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::max(seconds, 0.0));
  const std::string clock = fmt::format("{}:{:02}:{:02}", whole / 3600 % 24, whole / 60 % 60, whole % 60);
  return whole >= 86400 ? fmt::format("{} d {}", whole / 86400, clock) : clock;
}

std::string clock_text(double at) {
  const auto seconds = static_cast<std::time_t>(at);
  std::tm local{};
  localtime_r(&seconds, &local);
  return fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
}

/// Returns "2 corrupt, 1 locked" for what has ever failed; "none".
std::string errors_text(const MountSample& now) {
  std::string text;
  for (const auto& [kind, count] : now.errors) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, kind);
  }
  return text.empty() ? "none" : text;
}

std::vector<std::string> file_lines(const Rates& rates, const MountSample& now, std::size_t most) {
  if (!now.knows_files) return {"  busiest files    only the owner of the mount sees them"};
  const std::vector<FileTraffic> files = rates.files();
  if (files.empty() || most == 0) return {};
  std::vector<std::string> lines = {
      fmt::format("  {:>14} {:>14} {:>10}  busiest files", "read", "written", "requests")};
  for (std::size_t i = 0; i < std::min(files.size(), most); ++i) {
    const FileTraffic& file = files[i];
    const auto rate = [&](std::uint64_t count) { return static_cast<double>(count) / rates.seconds(); };
    lines.push_back(fmt::format("  {:>14} {:>14} {:>8.0f}/s  {}", rate_text(rate(file.read_bytes)),
                                rate_text(rate(file.write_bytes)), rate(file.requests), printable(file.path)));
  }
  return lines;
}

/// Cuts a line of UTF-8 to a number of characters.
std::string cut(const std::string& line, std::size_t columns) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(line[i]) & 0xc0U) != 0x80U;
    if (begins && characters++ == columns) return line.substr(0, i);
  }
  return line;
}

}  // namespace

std::string top_line(const WatchedMount& mount) {
  if (mount.error) return printable(mount.mountpoint) + " error: " + printable(mount.error->reason) + "\n";
  const Rates rates(*mount.before, *mount.now);
  const MountSample& now = *mount.now;
  return fmt::format(
      "{} {} read {} ({:.0f}/s) write {} ({:.0f}/s) hits {} decode {:.2f} s/s ({}) dirty {} commits {:.1f}/s failed {} "
      "lost {} damaged {} errors {}\n",
      clock_text(now.at), printable(mount.mountpoint), rate_text(rates.of("bytes_served")), rates.of("reads"),
      rate_text(rates.of("write_bytes")), rates.of("writes"), hits_text(rates),
      rates.latency("decode_seconds").sum / rates.seconds(), rate_text(rates.of("bytes_decoded")),
      human_size(now.number("dirty_bytes")), rates.of("commits"), now.number("failed_commits"),
      human_size(now.number("bytes_lost")), now.number("damaged_chunks"), errors_text(now));
}

std::vector<std::string> top_block(const WatchedMount& mount, std::size_t columns, std::size_t most_files) {
  std::vector<std::string> lines;
  if (mount.error) {
    lines = {printable(mount.mountpoint), "  " + printable(mount.error->reason)};
  } else {
    const MountSample& now = *mount.now;
    const MountSample start = start_of(now);
    const Rates rates(mount.before ? *mount.before : start, now);
    const auto reads = rates.latency("read_seconds");
    const auto writes = rates.latency("write_seconds");
    lines = {
        fmt::format("{}  from {}, cframefs {}, up {}", printable(mount.mountpoint), printable(now.source),
                    printable(now.version), duration_text(now.at - now.began)),
        fmt::format("  read    {:>14}  {:>8.0f} requests/s   {}", rate_text(rates.of("bytes_served")),
                    rates.of("reads"), latency_text(reads, now.bounds)),
        fmt::format("  write   {:>14}  {:>8.0f} requests/s   {}", rate_text(rates.of("write_bytes")),
                    rates.of("writes"), latency_text(writes, now.bounds)),
        fmt::format("  decode  {:>14}  {:>8.0f} blocks/s     {:.2f} s/s by {} workers",
                    rate_text(rates.of("bytes_decoded")), rates.of("blocks_decoded"),
                    rates.latency("decode_seconds").sum / rates.seconds(), now.number("workers")),
        fmt::format("  cache   {:>14}  {} of {}", hits_text(rates) + " hits",
                    human_size(now.number("cache_bytes") + now.number("cache_idle_bytes")),
                    human_size(now.number("cache_bound_bytes"))),
        fmt::format("  dirty   {:>14}  {:>8.1f} commits/s    failed {}, lost {}", human_size(now.number("dirty_bytes")),
                    rates.of("commits"), now.number("failed_commits"), human_size(now.number("bytes_lost"))),
        fmt::format("  errors  {}; damaged chunks {}", errors_text(now), now.number("damaged_chunks")),
    };
    const auto files = file_lines(rates, now, most_files);
    lines.insert(lines.end(), files.begin(), files.end());
  }
  for (std::string& line : lines)
    line = cut(line, columns);
  return lines;
}

}  // namespace cframefs::tools
