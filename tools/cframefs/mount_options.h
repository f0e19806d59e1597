// Parses the command line of cframefs into fs::MountOptions.
//
// The syntax is that of all FUSE programs: -o a,b=c before, between or after SOURCE and MOUNTPOINT, any number of
// times; the last occurrence of an option wins. Options that mount(8) and fstab add for their own use are ignored;
// options of libfuse and the kernel are passed on; any other option is an error that names it.
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

/// Parses `arguments`, which do not include the program's name.
codec::Result<MountCommand> parse_mount_command(const std::vector<std::string>& arguments);

/// Returns the text that -h prints.
std::string mount_usage();

/// Returns the names of cframefs's own -o options, in the order of the usage text.
std::vector<std::string> mount_option_names();

}  // namespace cframefs::tools
