// What `cframe top` shows of a mount between two samples: a line for a pipe, a block of lines for a terminal.
//
// Thread safety: functions only. Units: bytes, seconds.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "codec/base/error.h"
#include "tools/lib/mount_sample.h"

namespace cframefs::tools {

/// The last two samples of a mount.
struct WatchedMount {
  std::string mountpoint;
  std::optional<MountSample> before;
  std::optional<MountSample> now;
  std::optional<codec::Error> error;  // why there is no sample now
};

/// Returns a line of names and values, for a pipe. REQUIRES: two samples, or an error.
std::string top_line(const WatchedMount& mount);

/// Returns lines of at most `columns` characters, with at most `most_files` files. Without an earlier sample it shows
/// totals only.
std::vector<std::string> top_block(const WatchedMount& mount, std::size_t columns, std::size_t most_files);

}  // namespace cframefs::tools
