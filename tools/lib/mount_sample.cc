#include "tools/lib/mount_sample.h"

#include <cerrno>
#include <chrono>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "frame/io/file_ops.h"

namespace cframefs::tools {
namespace {

using nlohmann::json;

/// More than any mount serves: its lists have fixed lengths, and a path in them at most PATH_MAX bytes.
constexpr std::size_t kMostBytes = std::size_t{4} << 20;

codec::Failure at(const std::string& path, codec::Failure failure) {
  failure.value().path = path;
  return failure;
}

codec::Result<std::string> read_text(const std::string& path) {
  frame::FileOps& files = frame::system_files();
  const auto opened = files.open_named(path, O_RDONLY);
  if (!opened) return codec::Failure(opened.error());
  const frame::Descriptor file(files, *opened);
  std::string text;
  std::vector<std::uint8_t> piece(std::size_t{64} << 10);
  while (text.size() < kMostBytes) {
    const auto got = files.pread(file.handle(), piece, frame::FileOffset{text.size()});
    if (!got) return codec::Failure(got.error());
    if (*got == 0) return text;
    text.append(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(*got));
  }
  return codec::corrupt(fmt::format("has more than {} bytes", kMostBytes));
}

/// Returns whether the kernel's table of mounts has a cframefs on this device.
bool is_cframefs(dev_t device) {
  std::ifstream table("/proc/self/mountinfo");
  const std::string numbers = fmt::format(" {}:{} ", major(device), minor(device));
  for (std::string line; std::getline(table, line);) {
    if (line.find(numbers) != std::string::npos && line.find(" - fuse.cframefs ") != std::string::npos) return true;
  }
  return false;
}

/// Returns why a mount point has no statistics.
codec::Failure why_not(const std::string& mountpoint, const codec::Error& error) {
  struct stat status {};
  if (stat(mountpoint.c_str(), &status) != 0) return at(mountpoint, codec::io_error(errno, "stat"));
  if (!is_cframefs(status.st_dev)) return at(mountpoint, codec::invalid("is no mount of cframefs"));
  if (!S_ISDIR(status.st_mode))
    return at(mountpoint, codec::invalid("is a mount over a file, which has no statistics: mount over a directory"));
  if (!codec::is_missing(error)) return at(mountpoint, codec::Failure(error));
  struct stat parent {};
  const bool is_below = stat((mountpoint + "/..").c_str(), &parent) == 0 && parent.st_dev == status.st_dev;
  if (is_below)
    return at(mountpoint, codec::invalid("is a directory inside a mount of cframefs: name its mount point"));
  return at(mountpoint, codec::invalid("the mount has its statistics off: mount it with -o stats=on"));
}

void read_latencies(const json& latency, MountSample& sample) {
  for (const auto& [name, value] : latency.items()) {
    if (name == "bounds_seconds") {
      sample.bounds = value.get<std::vector<double>>();
    } else {
      sample.latencies[name] = {value.at("counts").get<std::vector<std::uint64_t>>(), value.at("sum").get<double>()};
    }
  }
}

void read_statistics(const json& all, MountSample& sample) {
  for (const auto& [name, value] : all.items()) {
    if (value.is_number_unsigned()) sample.numbers[name] = value.get<std::uint64_t>();
  }
  sample.began = all.value("start_time_seconds", 0.0);
  sample.source = all.value("source", "");
  sample.version = all.value("version", "");
  const json errors = all.value("errors_by_kind", json::object());
  for (const auto& [operation, kinds] : errors.items()) {
    for (const auto& [kind, count] : kinds.items())
      sample.errors[kind] += count.get<std::uint64_t>();
  }
  read_latencies(all.value("latency", json::object()), sample);
}

void read_files(const json& list, MountSample& sample) {
  for (const json& file : list) {
    sample.files.push_back({file.at("path").get<std::string>(), file.at("read_bytes").get<std::uint64_t>(),
                            file.at("write_bytes").get<std::uint64_t>(), file.at("requests").get<std::uint64_t>()});
  }
  sample.knows_files = true;
}

}  // namespace

codec::Result<MountSample> take_sample(const std::string& mountpoint) {
  const std::string directory = mountpoint + "/.cframefs/";
  const auto statistics = read_text(directory + "stats.json");
  if (!statistics) return why_not(mountpoint, statistics.error());
  const auto files = read_text(directory + "busiest.json");
  MountSample sample;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  sample.at = std::chrono::duration<double>(now).count();
  try {
    read_statistics(json::parse(*statistics), sample);
    if (files) read_files(json::parse(*files), sample);
  } catch (const json::exception& error) {
    return at(directory, codec::corrupt(std::string("not the statistics of a mount: ") + error.what()));
  }
  return sample;
}

MountSample start_of(const MountSample& sample) {
  MountSample start;
  start.at = start.began = sample.began;
  return start;
}

}  // namespace cframefs::tools
