// The version of a file of the system, from its status.
#pragma once

#include <sys/stat.h>

#include "frame/io/file_version.h"

namespace cframefs::frame {

/// Returns the version of a file with `status`, which was read just now.
FileVersion version_of(const struct stat& status);

}  // namespace cframefs::frame
