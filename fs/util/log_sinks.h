// Where lines of the log go: a file, or the system log with a file in its place while there is no system log.
//
// Thread safety: spdlog calls a sink under the sink's mutex; reopen() takes the same one. Errors: a line that cannot be
// written is counted, and the next line that can be written is preceded by one that reports the number.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <spdlog/sinks/base_sink.h>

#include "codec/base/error.h"

namespace cframefs::fs {

/// A file that lines are appended to. Several processes may append to one file.
class LogFile {
 public:
  LogFile() = default;
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// Opens the file, which is created if it is missing. If that fails, the file that was open stays open.
  codec::Result<void> open(const std::string& path);
  bool is_open() const { return fd_ >= 0; }
  /// Appends a line with its line break. Returns false if not all of it was written.
  bool append(std::string_view line) const;

 private:
  int fd_ = -1;
};

/// Opens a file to append lines to, which is created if it is missing. The descriptor belongs to the caller.
codec::Result<int> open_log_file(const std::string& path);

/// Sets what opens log files from now on, in a process that may not do so itself. Empty: open_log_file().
void open_log_files_by(std::function<codec::Result<int>()> open);

class FileSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FileSink(std::string path);
  codec::Result<void> open() { return file_.open(path_); }
  codec::Result<void> reopen();

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

  const std::string path_;
  LogFile file_;
  std::uint64_t lost_ = 0;
};

class SystemLogSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  /// `reserve`: the file for lines that the system log does not take; empty: there is none.
  explicit SystemLogSink(std::string reserve);

 private:
  using Clock = std::chrono::steady_clock;
  /// A missing system log is looked for again after this time.
  static constexpr std::chrono::milliseconds kLookAgainAfter{100};

  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
  bool system_log_listens();

  const std::string reserve_path_;
  LogFile reserve_;
  std::shared_ptr<spdlog::sinks::sink> system_log_;
  std::optional<Clock::time_point> look_again_;  // set while there is no system log
  std::uint64_t lost_ = 0;
};

/// Returns true if a program listens at the socket of the system log.
bool has_system_log();
/// Returns the file that takes the lines while there is no system log: /run/cframefs.log for root, else cframefs.log in
/// $XDG_RUNTIME_DIR; empty if that is not set.
std::string reserve_log_file();

}  // namespace cframefs::fs
