// The statistics of a mount at one time, as `cframe top` reads them from MOUNTPOINT/.cframefs.
//
// A mount of another version may lack numbers, or have others: a number that is missing is 0. Thread safety: functions
// only. Units: bytes, seconds. Errors: invalid, with the path, if the directory is no mount or has stats=off;
// corruption if the file is not what a mount serves; io.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "codec/base/error.h"

namespace cframefs::tools {

struct FileTraffic {
  std::string path;
  std::uint64_t read_bytes = 0;
  std::uint64_t write_bytes = 0;
  std::uint64_t requests = 0;
};

struct LatencyCounts {
  std::vector<std::uint64_t> counts;
  double sum = 0;
};

struct MountSample {
  double at = 0;  // when it was taken, in seconds since 1970
  double began = 0;
  std::string source;
  std::string version;
  std::map<std::string, std::uint64_t> numbers;  // by their names in stats.json
  std::map<std::string, std::uint64_t> errors;   // by kind, of all operations
  std::vector<double> bounds;                    // of the buckets of latencies
  std::map<std::string, LatencyCounts> latencies;
  std::vector<FileTraffic> files;
  bool knows_files = false;  // only the owner of the mount sees its files

  std::uint64_t number(const std::string& name) const {
    const auto found = numbers.find(name);
    return found == numbers.end() ? 0 : found->second;
  }
};

codec::Result<MountSample> take_sample(const std::string& mountpoint);

/// Returns the sample that the mount would have given when it began.
MountSample start_of(const MountSample& sample);

}  // namespace cframefs::tools
