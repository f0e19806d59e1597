// What every measurement of the client needs: a clock, the processor time of this process and of the server, quantiles,
// an open file, an aligned buffer.
//
// Thread safety: free functions without state; File and Buffer belong to one thread at a time. Times are seconds unless
// the name says otherwise, sizes bytes.
// Errors: std::system_error with what was tried; the client ends with its text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/types.h>

namespace cframefs::bench {

constexpr std::size_t kPage = 4096;

/// Throws errno as std::system_error.
[[noreturn]] void fail(const std::string& doing);

double monotonic_seconds();
/// User and system time of this process so far.
double own_cpu_seconds();

/// A server's counters out of /proc; what cannot be read stays 0.
struct ProcessSample {
  double cpu_seconds = 0;        // user and system time of all its threads
  std::uint64_t read_calls = 0;  // system calls of the read family: one for each FUSE request taken in
  std::uint64_t peak_bytes = 0;  // VmHWM
  std::uint64_t resident_bytes = 0;
};
ProcessSample sample_process(pid_t pid);

/// Brackets a measurement: construct before, report() after. With a server's pid the report holds what the server spent
/// in between and its peak.
class Stopwatch {
 public:
  explicit Stopwatch(std::optional<pid_t> server);
  /// {"seconds", "client_cpu_s", and with a server "server_cpu_s", "server_requests", "server_peak_mib"}, and "MBps"
  /// (10^6 bytes per second) if `bytes` is not 0.
  nlohmann::json report(std::uint64_t bytes) const;

 private:
  std::optional<pid_t> server_;
  ProcessSample server_before_;
  double cpu_before_;
  double begin_;
};

/// {"p50_us", "p95_us", "p99_us", "max_us"} of times in seconds; sorts them. Empty object if there are none.
nlohmann::json quantiles(std::vector<double>& seconds);

/// A file open for reading.
class File {
 public:
  explicit File(const std::string& path);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int fd() const { return fd_; }
  std::uint64_t size() const;
  /// Up to a whole buffer from `offset`; fewer bytes only at the end of the file.
  std::size_t read_at(std::span<std::byte> buffer, std::uint64_t offset) const;

 private:
  std::string path_;
  int fd_;
};

/// Page-aligned memory whose pages are there already.
class Buffer {
 public:
  explicit Buffer(std::size_t size);
  std::span<std::byte> bytes() const { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_;
};

}  // namespace cframefs::bench
