// The command line of cframefs: from argv to fs::MountOptions.
//
// Options come as every FUSE program takes them: -o a,b=c before, between or after SOURCE and MOUNTPOINT, as often as
// wanted, the last word on an option counts. What mount(8) and fstab add for their own use is ignored; what libfuse or
// the kernel understand is passed on; anything else is an error that names the option.
//
// Thread safety: functions only. Errors: invalid, one line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/base/error.h"
#include "fs/util/options.h"

namespace cframefs::tools {

enum class MountAction : std::uint8_t { mount, show_help, show_version };

struct MountCommand {
  MountAction action = MountAction::mount;
  fs::MountOptions options;
};

/// `arguments`: without the program's name.
codec::Result<MountCommand> parse_mount_command(const std::vector<std::string>& arguments);

/// What -h prints.
std::string mount_usage();

/// Names of the -o options of our own, in the order of the usage text.
std::vector<std::string> mount_option_names();

}  // namespace cframefs::tools
