#include "tools/cframefs/remote_options.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "tools/cframefs/life_options.h"
#include "tools/lib/sizes.h"

namespace cframefs::tools {

using codec::invalid;
using fs::MountOptions;

namespace {

constexpr std::uint64_t kLeastDisk = std::uint64_t{64} << 20;
constexpr std::uint64_t kMostDisk = std::uint64_t{1} << 50;
constexpr double kMostSeconds = 86'400;

OptionStatus store_text(std::string_view value, std::string& into) {
  if (value.empty()) return invalid("must not be empty");
  into = value;
  return {};
}

OptionStatus store_path(std::string_view value, std::string& into) {
  auto path = absolute_path(value);
  if (!path) return codec::Failure(path.error());
  into = std::move(*path);
  return {};
}

OptionStatus store_time(std::string_view value, double least, std::chrono::milliseconds& into) {
  const auto seconds = parse_seconds(value);
  if (!seconds) return codec::Failure(seconds.error());
  if (*seconds < least || *seconds > kMostSeconds)
    return invalid(least > 0 ? "must be between 0.1 and 86400 seconds" : "must be between 0 and 86400 seconds");
  into = std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
  return {};
}

OptionStatus set_endpoint(MountOptions& options, std::string_view value) {
  if (!value.starts_with("http://") && !value.starts_with("https://"))
    return invalid("must be an address that begins with http:// or https://");
  return store_text(value, options.remote.endpoint);
}

OptionStatus set_region(MountOptions& options, std::string_view value) {
  return store_text(value, options.remote.region);
}

OptionStatus set_profile(MountOptions& options, std::string_view value) {
  return store_text(value, options.remote.profile);
}

OptionStatus set_unsigned(MountOptions& options, std::string_view) {
  options.remote.is_unsigned = true;
  return {};
}

OptionStatus set_token_file(MountOptions& options, std::string_view value) {
  return store_path(value, options.remote.token_file);
}

OptionStatus set_ca_file(MountOptions& options, std::string_view value) {
  return store_path(value, options.remote.ca_file);
}

OptionStatus set_cache_dir(MountOptions& options, std::string_view value) {
  return store_path(value, options.remote.cache_dir);
}

OptionStatus set_cache_disk(MountOptions& options, std::string_view value) {
  const auto size = parse_size(value);
  if (!size) return codec::Failure(size.error());
  if (*size < kLeastDisk || *size > kMostDisk)
    return invalid("must be between " + human_size(kLeastDisk) + " and " + human_size(kMostDisk));
  options.remote.cache_disk = *size;
  return {};
}

OptionStatus set_remote_ttl(MountOptions& options, std::string_view value) {
  return store_time(value, 0, options.remote.ttl);
}

OptionStatus set_remote_timeout(MountOptions& options, std::string_view value) {
  return store_time(value, 0.1, options.remote.timeout);
}

OptionStatus set_remote_index(MountOptions& options, std::string_view value) {
  if (value != "on" && value != "off") return invalid("must be off or on");
  options.remote.uses_index = value == "on";
  return {};
}

constexpr std::array kRemoteOptions = {
    OptionSpec{"endpoint", "URL", "s3://: another service than that of AWS (AWS_ENDPOINT_URL)", set_endpoint},
    OptionSpec{"region", "NAME", "s3://: the region of the bucket (as the AWS tools find it)", set_region},
    OptionSpec{"profile", "NAME", "s3://: the profile of ~/.aws (AWS_PROFILE, or default)", set_profile},
    OptionSpec{"unsigned", "", "s3://: send no signature, for public buckets", set_unsigned},
    OptionSpec{"token_file", "FILE", "http(s)://: file with a bearer token", set_token_file},
    OptionSpec{"ca_file", "FILE", "certificates that vouch for the server (the system's)", set_ca_file},
    OptionSpec{"cache_dir", "DIRECTORY", "keep what was fetched on disk, for this and later mounts (nothing)",
               set_cache_dir},
    OptionSpec{"cache_disk", "SIZE", "limit on the bytes in cache_dir (10G)", set_cache_disk},
    OptionSpec{"remote_ttl", "SECONDS", "how long attributes and listings of a server hold (60)", set_remote_ttl},
    OptionSpec{"remote_timeout", "SECONDS", "limit on a request with all its retries (60)", set_remote_timeout},
    OptionSpec{"remote_index", "off|on", "use the index of the directory, if it has one (on)", set_remote_index},
};

}  // namespace

std::span<const OptionSpec> remote_options() {
  return kRemoteOptions;
}

}  // namespace cframefs::tools
