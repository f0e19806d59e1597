#include "fs/files/mount_config.h"

#include <array>
#include <chrono>
#include <optional>

#include <fmt/core.h>

#include "frame/base/utf8_sanitize.h"
#include "frame/remote/http/address.h"
#include "fs/read/read_ahead.h"

namespace cframefs::fs {
namespace {

const char* switch_text(bool on) {
  return on ? "on" : "off";
}

const char* view_text(ArrayView view) {
  switch (view) {
    case ArrayView::npy:
      return "npy";
    case ArrayView::flat:
      return "flat";
    case ArrayView::chunks:
      return "chunks";
  }
  return "npy";
}

const char* checksums_text(Checksums checksums) {
  switch (checksums) {
    case Checksums::on:
      return "on";
    case Checksums::keep:
      return "keep";
    case Checksums::off:
      return "off";
  }
  return "on";
}

std::string auto_text(std::uint64_t size) {
  return size == 0 ? "auto" : std::to_string(size);
}

/// Returns the line of a timeout; without a value it differs between directories and files, and where not all changes
/// are reported.
std::string timeout_line(const char* name, const std::optional<double>& seconds) {
  return seconds ? fmt::format("{}={}\n", name, *seconds)
                 : fmt::format("# {}: {} for directories, {} for files that are watched\n", name, kDirectoryTimeout,
                               kFileTimeout);
}

/// Returns the line of an option that has no value unless it is given; `otherwise` says what holds then.
std::string optional_line(const char* name, const std::optional<std::string>& value, const char* otherwise) {
  return value ? fmt::format("{}={}\n", name, *value) : fmt::format("# {}: {}\n", name, otherwise);
}

const char* level_text(LogLevel level) {
  switch (level) {
    case LogLevel::error:
      return "error";
    case LogLevel::warning:
      return "warning";
    case LogLevel::info:
      return "info";
    case LogLevel::debug:
      return "debug";
  }
  return "info";
}

const char* sandbox_text(Sandboxing mode) {
  switch (mode) {
    case Sandboxing::automatic:
      return "auto";
    case Sandboxing::off:
      return "off";
    case Sandboxing::strict:
      break;
  }
  return "strict";
}

/// Returns the lines of the options about owners, the mount's begin and end, the log and the sandbox.
std::string life_lines(const MountOptions& options) {
  const ShownRights& shown = options.shown;
  const DaemonOptions& daemon = options.daemon;
  const auto number = [](const auto& value) { return value ? std::optional(std::to_string(*value)) : std::nullopt; };
  const auto octal = [](const auto& value) {
    return value ? std::optional(fmt::format("{:o}", *value)) : std::nullopt;
  };
  std::string lines = optional_line("uid", number(shown.user), "as in the source");
  lines += optional_line("gid", number(shown.group), "as in the source");
  lines += optional_line("umask", octal(shown.umask), "as in the source");
  lines += daemon.mkdir ? "mkdir\n" : "# mkdir: off\n";
  lines += daemon.nonempty ? "nonempty\n" : "# nonempty: off\n";
  lines += "# remount: off\n";
  lines += fmt::format("idle_timeout={}\ncache_timeout={}\n", daemon.idle_timeout, daemon.cache_timeout);
  const auto log = daemon.log.empty() ? std::nullopt : std::optional(frame::printable(daemon.log));
  lines += optional_line("log", log, "standard error in the foreground, else the system log");
  const auto level = daemon.log_level ? std::optional<std::string>(level_text(*daemon.log_level)) : std::nullopt;
  lines += optional_line("log_level", level, "info");
  return lines + fmt::format("sandbox={}\n", sandbox_text(daemon.sandbox));
}

/// Returns the lines of the options of a source that is an address: those that its kind of server has.
std::string remote_lines(const MountOptions& options) {
  const auto address = frame::parse_address(options.source);
  if (!address) return {};
  const bool is_bucket = address->scheme == frame::Address::Scheme::s3;
  const frame::RemoteOptions& remote = options.remote;
  const auto text = [](const std::string& value) {
    return value.empty() ? std::nullopt : std::optional(frame::printable(value));
  };
  const auto seconds = [](std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); };
  std::string lines;
  if (is_bucket) {
    lines += optional_line("endpoint", text(remote.endpoint), "AWS_ENDPOINT_URL, else that of AWS");
    lines += optional_line("region", text(remote.region), "as the AWS tools find it");
    lines += optional_line("profile", text(remote.profile), "AWS_PROFILE, else default");
    lines += remote.is_unsigned ? "unsigned\n" : "# unsigned: off\n";
  } else {
    lines += optional_line("token_file", text(remote.token_file), "none");
  }
  lines += optional_line("ca_file", text(remote.ca_file), "the certificates of the system");
  lines += optional_line("cache_dir", text(remote.cache_dir), "none");
  return lines + fmt::format("cache_disk={}\nremote_ttl={}\nremote_timeout={}\nremote_index={}\n", remote.cache_disk,
                             seconds(remote.ttl), seconds(remote.timeout), remote.uses_index ? "on" : "off");
}

}  // namespace

std::string config_text(MountContext& mount, const MountPlace& where, std::uint64_t dirty_limit) {
  const MountOptions& options = mount.options;
  const NewFrameOptions& fresh = options.new_frames;
  const unsigned workers = ahead_threads(options) + 1;
  std::string text =
      fmt::format("# cframefs {}, libfuse {}\n# source: {}\n# mount point: {}\n", options.daemon.build.version,
                  options.daemon.build.libfuse, frame::printable(where.source), frame::printable(where.mountpoint));
  const auto add = [&text](const char* name, const std::string& value) { text += fmt::format("{}={}\n", name, value); };
  text += mount.is_read_only() ? "ro\n" : "rw\n";
  add("names", options.names == Names::keep ? "keep" : "strip");
  add("b2nd", view_text(options.b2nd));
  add("detect", options.detect == Detect::content ? "content" : "suffix");
  add("offset", std::to_string(options.offset));
  add("beta_bitshuffle", options.old_bitshuffle ? "old" : "new");
  add("cache_size", std::to_string(mount.read_path.cache().bound()));
  add("readahead", std::to_string(ReadAhead::limit_for(options.readahead, workers)));
  add("workers", std::to_string(workers));
  add("codec", fresh.codec);
  add("clevel", std::to_string(fresh.clevel));
  add("filter", fresh.filter);
  add("typesize", auto_text(fresh.typesize));
  add("chunksize", auto_text(fresh.chunksize));
  add("blocksize", auto_text(fresh.blocksize));
  add("new_npy", fresh.npy_as_array ? "b2nd" : "frame");
  add("checksums", checksums_text(fresh.checksums));
  add("dirty_limit", std::to_string(dirty_limit));
  add("commit_interval", fmt::format("{}", options.commit_interval));
  add("writeback", switch_text(options.kernel_cache.writeback));
  add("fill_pages", switch_text(options.kernel_cache.fill_pages));
  add("passthrough", options.kernel_cache.passthrough ? "auto" : "off");
  add("stats", switch_text(options.statistics));
  text += timeout_line("attr_timeout", options.kernel_cache.attr_timeout);
  text += timeout_line("entry_timeout", options.kernel_cache.entry_timeout);
  text += life_lines(options);
  if (mount.tree.files().is_remote()) text += remote_lines(options);
  for (const std::string& option : options.daemon.fuse_options)
    text += frame::printable(option) + "\n";
  return text;
}

}  // namespace cframefs::fs
