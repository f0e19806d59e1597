// The surroundings of the process: its environment, the files of its user, programs.
//
// Thread safety: may be used by all threads, while none changes the environment; confine() before other threads use it.
// Errors: io; a file that is not regular is EINVAL, one or an output that is too long EFBIG, a command that takes too
// long ETIMEDOUT.
#pragma once

#include <chrono>
#include <functional>

#include "frame/remote/access/surroundings.h"

namespace cframefs::frame {

class SystemSurroundings final : public Surroundings {
 public:
  /// What opens files for reading, and what runs the one program, for a process that may not do so itself.
  using OpenFile = std::function<codec::Result<int>(const std::string& path)>;
  using RunProgram = std::function<codec::Result<std::string>()>;

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
  /// From now on, files are opened by `open`, whose descriptors belong to the caller, and output_of() returns the
  /// output of `run`, whatever the command is.
  void confine(OpenFile open, RunProgram run);

 private:
  codec::Result<int> opened(const std::string& path) const;

  const std::chrono::milliseconds patience_;
  OpenFile open_;           // empty: files are opened here
  RunProgram run_;          // empty: programs are run here
  std::string known_home_;  // of a confined process
};

}  // namespace cframefs::frame
