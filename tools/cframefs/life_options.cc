#include "tools/cframefs/life_options.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <unistd.h>

#include "codec/base/malloc_ptr.h"
#include "tools/lib/sizes.h"

namespace cframefs::tools {

using codec::invalid;
using codec::Result;
using fs::LogLevel;
using fs::MountOptions;

namespace {

constexpr unsigned kDirectoryMode = 0755;

/// Parses the number of a user or group. The largest number means "unchanged" to the system.
Result<std::uint32_t> parse_id(std::string_view value) {
  const auto id = parse_count(value);
  if (!id || *id >= std::numeric_limits<std::uint32_t>::max()) {
    return invalid("must be a number between 0 and 4294967294");
  }
  return static_cast<std::uint32_t>(*id);
}

Result<unsigned> parse_octal(std::string_view value, unsigned most, const char* allowed) {
  unsigned number = 0;
  const char* end = value.data() + value.size();
  const auto parsed = std::from_chars(value.data(), end, number, 8);
  if (value.empty() || parsed.ec != std::errc() || parsed.ptr != end || number > most) {
    return invalid(std::string("must be an octal number between 0 and ") + allowed);
  }
  return number;
}

OptionStatus store_seconds(std::string_view value, double& into) {
  if (value == "off") value = "0";
  const auto seconds = parse_seconds(value);
  if (!seconds) return codec::Failure(seconds.error());
  into = *seconds;
  return {};
}

}  // namespace

Result<std::string> absolute_path(std::string_view value) {
  if (value.empty()) return invalid("must not be empty");
  if (value.front() == '/') return std::string(value);
  const codec::MallocPtr<char> here(::getcwd(nullptr, 0));
  if (!here) return invalid("the working directory has no name: give an absolute path");
  return std::string(here.get()) + "/" + std::string(value);
}

OptionStatus set_cache_timeout(MountOptions& options, std::string_view value) {
  return store_seconds(value, options.daemon.cache_timeout);
}

OptionStatus set_idle_timeout(MountOptions& options, std::string_view value) {
  return store_seconds(value, options.daemon.idle_timeout);
}

OptionStatus set_uid(MountOptions& options, std::string_view value) {
  const auto id = parse_id(value);
  if (!id) return codec::Failure(id.error());
  options.shown.user = *id;
  return {};
}

OptionStatus set_gid(MountOptions& options, std::string_view value) {
  const auto id = parse_id(value);
  if (!id) return codec::Failure(id.error());
  options.shown.group = *id;
  return {};
}

OptionStatus set_umask(MountOptions& options, std::string_view value) {
  const auto mask = parse_octal(value, 0777, "777");
  if (!mask) return codec::Failure(mask.error());
  options.shown.umask = *mask;
  return {};
}

OptionStatus set_log(MountOptions& options, std::string_view value) {
  if (value.empty()) return invalid("must be a file, or syslog");
  auto file = value == "syslog" ? Result<std::string>(value) : absolute_path(value);
  if (!file) return codec::Failure(file.error());
  options.daemon.log = std::move(*file);
  return {};
}

OptionStatus set_log_level(MountOptions& options, std::string_view value) {
  static constexpr std::array<std::pair<std::string_view, LogLevel>, 4> kLevels = {{{"error", LogLevel::error},
                                                                                    {"warning", LogLevel::warning},
                                                                                    {"info", LogLevel::info},
                                                                                    {"debug", LogLevel::debug}}};
  for (const auto& [name, level] : kLevels) {
    if (name != value) continue;
    options.daemon.log_level = level;
    return {};
  }
  return invalid("must be one of error, warning, info, debug");
}

OptionStatus set_sandbox(MountOptions& options, std::string_view value) {
  using fs::Sandboxing;
  static constexpr std::array<std::pair<std::string_view, Sandboxing>, 3> kModes = {
      {{"auto", Sandboxing::automatic}, {"off", Sandboxing::off}, {"strict", Sandboxing::strict}}};
  for (const auto& [name, mode] : kModes) {
    if (name != value) continue;
    options.daemon.sandbox = mode;
    return {};
  }
  return invalid("must be one of auto, off, strict");
}

OptionStatus set_mkdir(MountOptions& options, std::string_view) {
  options.daemon.mkdir = kDirectoryMode;
  return {};
}

OptionStatus set_nonempty(MountOptions& options, std::string_view) {
  options.daemon.nonempty = true;
  return {};
}

OptionStatus set_remount(MountOptions& options, std::string_view) {
  options.daemon.remount = true;
  return {};
}

Result<bool> apply_mount_mkdir(MountOptions& options, std::string_view option) {
  constexpr std::string_view kName = "X-mount.mkdir";
  if (!option.starts_with(kName)) return false;
  const std::string_view value = option.substr(kName.size());
  if (value.empty()) return set_mkdir(options, {}).map([] { return true; });
  if (value.front() != '=') return false;
  const auto mode = parse_octal(value.substr(1), 07777, "7777");
  if (!mode) return codec::Failure(mode.error());
  options.daemon.mkdir = *mode;
  return true;
}

}  // namespace cframefs::tools
