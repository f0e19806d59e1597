// Values of the options about the life of a mount and its log: one function for each option, for the table in
// mount_options.cc.
//
// Thread safety: functions only. Errors: invalid; the reason says what is allowed, for use after the option's name.
#pragma once

#include <string>
#include <string_view>

#include "tools/cframefs/option_spec.h"

namespace cframefs::tools {

/// Returns the path, absolute: the daemon changes its working directory.
codec::Result<std::string> absolute_path(std::string_view value);

OptionStatus set_cache_timeout(fs::MountOptions& options, std::string_view value);
OptionStatus set_gid(fs::MountOptions& options, std::string_view value);
OptionStatus set_idle_timeout(fs::MountOptions& options, std::string_view value);
OptionStatus set_log(fs::MountOptions& options, std::string_view value);
OptionStatus set_log_level(fs::MountOptions& options, std::string_view value);
OptionStatus set_mkdir(fs::MountOptions& options, std::string_view value);
OptionStatus set_nonempty(fs::MountOptions& options, std::string_view value);
OptionStatus set_remount(fs::MountOptions& options, std::string_view value);
OptionStatus set_sandbox(fs::MountOptions& options, std::string_view value);
OptionStatus set_uid(fs::MountOptions& options, std::string_view value);
OptionStatus set_umask(fs::MountOptions& options, std::string_view value);

/// Applies X-mount.mkdir[=MODE] of mount(8). Returns false if `option` is another one.
codec::Result<bool> apply_mount_mkdir(fs::MountOptions& options, std::string_view option);

}  // namespace cframefs::tools
