// Writes the options in effect, one a line, as -o takes them: what was given, and what the daemon has chosen for the
// rest. A line that begins with # is no option.
//
// Thread safety: functions only.
#pragma once

#include <cstdint>
#include <string>

#include "fs/files/mount_report.h"

namespace cframefs::fs {

/// `dirty_limit`: in effect, in bytes.
std::string config_text(MountContext& mount, const MountPlace& where, std::uint64_t dirty_limit);

}  // namespace cframefs::fs
