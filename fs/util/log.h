// The log of the daemon: lines to stderr in the foreground, to syslog in the background. Bytes that could break a line
// or control a terminal, in a file name for instance, are written as \xNN.
//
// Thread safety: all functions may be called concurrently after log_to().
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_set>

#include "codec/base/error.h"
#include "codec/base/mutex.h"

namespace cframefs::fs {

enum class LogTarget : std::uint8_t { standard_error, syslog };

/// Sets where lines go. `debug` enables log_debug().
void log_to(LogTarget target, bool debug);
void log_debug(const std::string& line);
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
