// The log of the daemon: lines to standard error, to the system log (syslog), or to a file. Bytes that could break a
// line or control a terminal, in a file name for instance, are written as \xNN.
//
// Thread safety: all functions may be called concurrently after log_to(). Errors: a line that cannot be written is
// counted; the next line that can be written reports the number (fs/util/log_sinks.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_set>

#include "codec/base/error.h"
#include "codec/base/mutex.h"

namespace cframefs::fs {

enum class LogTarget : std::uint8_t { standard_error, system_log, file };
enum class LogLevel : std::uint8_t { error, warning, info, debug };

struct LogSettings {
  LogTarget target = LogTarget::standard_error;
  std::string file;  // for LogTarget::file: an absolute path
  LogLevel level = LogLevel::info;
};

/// Sets where lines go, and which. Error io: the file cannot be opened; the log then stays as it was.
codec::Result<void> log_to(const LogSettings& settings);
/// Returns the settings in force.
const LogSettings& log_settings();
/// Opens the log file again by its name, after logrotate(8) has renamed it. The old file stays in use if that fails.
void reopen_log();
void log_debug(const std::string& line);
void log_info(const std::string& line);
void log_warning(const std::string& line);
void log_error(const std::string& line);

/// Logs each distinct line once, so that a program that keeps reading a damaged chunk does not fill the disk. Remembers
/// at most 10 000 lines; a full memory is cleared.
class DedupLogger {
 public:
  void error(const codec::Error& error);
  /// Returns the number of chunks in which damage was logged. A chunk counts again if that many others were damaged
  /// that it has been forgotten.
  std::uint64_t damaged_chunks() const { return damaged_chunks_.load(std::memory_order_relaxed); }

 private:
  void count_chunk(const codec::Error& error) REQUIRES(mutex_);

  std::atomic<std::uint64_t> damaged_chunks_{0};
  codec::Mutex mutex_;
  std::unordered_set<std::string> seen_ GUARDED_BY(mutex_);
  std::unordered_set<std::string> seen_chunks_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
