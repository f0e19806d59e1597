// The surroundings of the process: its environment, the files of its user, programs.
//
// Thread safety: may be used by all threads, while none changes the environment. Errors: io; a file that is not regular
// is EINVAL, one or an output that is too long EFBIG, a command that takes too long ETIMEDOUT.
#pragma once

#include <chrono>

#include "frame/remote/access/surroundings.h"

namespace cframefs::frame {

class SystemSurroundings final : public Surroundings {
 public:
  /// `patience`: how long a command may run.
  explicit SystemSurroundings(std::chrono::milliseconds patience = std::chrono::minutes(1)) : patience_(patience) {}

  std::optional<std::string> variable(const std::string& name) const override;
  /// Returns HOME, else the home directory of the user; empty if there is none.
  std::string home() const override;
  /// Symbolic links are followed. /dev/null, which often stands for a file that shall not be read, is empty.
  codec::Result<std::string> file(const std::string& path) const override;
  codec::Result<bool> is_readable_by_others(const std::string& path) const override;
  /// Runs the command without a shell in a process group of its own, which is killed if it takes too long or prints too
  /// much. Its standard input is empty, its standard error is that of this process.
  codec::Result<std::string> output_of(const std::vector<std::string>& command) const override;
  std::int64_t now() const override;

 private:
  const std::chrono::milliseconds patience_;
};

}  // namespace cframefs::frame
