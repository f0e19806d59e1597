// What the control files show of a mount: its statistics as JSON and as OpenMetrics text, and its busiest files.
//
// Thread safety: functions only; they read the counters one by one. Units: bytes, seconds.
#pragma once

#include <cstdint>
#include <string>

#include "fs/mount/mount_context.h"

namespace cframefs::fs {

/// Where a mount is and since when.
struct MountPlace {
  std::string mountpoint;  // absolute
  std::string source;      // absolute
  double began = 0;        // seconds since 1970

  static MountPlace of(const MountOptions& options);
};

/// `dirty`: uncommitted bytes.
std::string stats_json(MountContext& mount, const MountPlace& where, std::uint64_t dirty);
/// Returns the same without the histograms, in one line.
std::string stats_line(MountContext& mount, const MountPlace& where, std::uint64_t dirty);
std::string metrics_text(MountContext& mount, const MountPlace& where, std::uint64_t dirty);
std::string busiest_json(MountContext& mount);

}  // namespace cframefs::fs
