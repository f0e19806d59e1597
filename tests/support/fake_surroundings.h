// Surroundings in memory: variables, files, programs and a clock that a test sets.
//
// Thread safety: now() and the clock may be used by all threads; all else is set before the first use. Errors: as those
// of the system; ENOENT for what was not set.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frame/remote/access/surroundings.h"

namespace cframefs::test {

class FakeSurroundings final : public frame::Surroundings {
 public:
  using Program = std::function<codec::Result<std::string>(const std::vector<std::string>&)>;

  std::optional<std::string> variable(const std::string& name) const override {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  }
  std::string home() const override { return "/home/user"; }
  codec::Result<std::string> file(const std::string& path) const override {
    if (unreadable_files.contains(path)) return codec::io_error(EACCES, "open " + path);
    const auto found = files.find(path);
    if (found == files.end()) return codec::io_error(ENOENT, "open " + path);
    return found->second;
  }
  codec::Result<bool> is_readable_by_others(const std::string& path) const override {
    if (!files.contains(path)) return codec::io_error(ENOENT, "stat " + path);
    return shared_files.contains(path);
  }
  codec::Result<std::string> output_of(const std::vector<std::string>& command) const override {
    const auto found = programs.find(command.front());
    if (found == programs.end()) return codec::io_error(ENOENT, "run " + command.front());
    return found->second(command);
  }
  std::int64_t now() const override { return clock; }

  std::map<std::string, std::string> variables;
  std::map<std::string, std::string> files;
  std::set<std::string> shared_files;  // that others may read
  std::set<std::string> unreadable_files;
  std::map<std::string, Program> programs;
  std::atomic<std::int64_t> clock{1'000'000'000};  // 2001-09-09T01:46:40Z
};

}  // namespace cframefs::test
