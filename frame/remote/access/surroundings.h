// The interface of what the process is surrounded by: environment, files of the user, programs. Tests replace it.
//
// Thread safety: may be used by all threads. Errors: io.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codec/base/error.h"

namespace cframefs::frame {

class Surroundings {
 public:
  virtual ~Surroundings() = default;
  virtual std::optional<std::string> variable(const std::string& name) const = 0;
  virtual std::string home() const = 0;
  /// Returns the content of a small file, at most 1 MiB.
  virtual codec::Result<std::string> file(const std::string& path) const = 0;
  /// Returns whether others than the owner may read the file.
  virtual codec::Result<bool> is_readable_by_others(const std::string& path) const = 0;
  /// Runs a command and returns its standard output, at most 1 MiB; ends it after a minute.
  virtual codec::Result<std::string> output_of(const std::vector<std::string>& command) const = 0;
  /// Returns the seconds since 1970.
  virtual std::int64_t now() const = 0;
};

}  // namespace cframefs::frame
