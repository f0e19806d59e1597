#include "tests/bench/client_measure.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <new>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cframefs::bench {
namespace {

double seconds_of(const timeval& value) {
  return static_cast<double>(value.tv_sec) + static_cast<double>(value.tv_usec) * 1e-6;
}

/// The number after "KEY:" in a file of such lines, 0 if there is none.
std::uint64_t proc_field(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + ":")) return std::strtoull(line.c_str() + key.size() + 1, nullptr, 10);
  }
  return 0;
}

/// Clock ticks in user and system mode (fields 14 and 15; counted after the name, which may hold anything).
double proc_cpu_seconds(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field)
    fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

void fail(const std::string& doing) {
  throw std::system_error(errno, std::generic_category(), doing);
}

double monotonic_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double own_cpu_seconds() {
  rusage self{};
  rusage children{};
  ::getrusage(RUSAGE_SELF, &self);
  ::getrusage(RUSAGE_CHILDREN, &children);
  return seconds_of(self.ru_utime) + seconds_of(self.ru_stime) + seconds_of(children.ru_utime) +
         seconds_of(children.ru_stime);
}

ProcessSample sample_process(pid_t pid) {
  const std::string directory = "/proc/" + std::to_string(pid);
  ProcessSample sample;
  sample.cpu_seconds = proc_cpu_seconds(directory + "/stat");
  sample.read_calls = proc_field(directory + "/io", "syscr");
  sample.peak_bytes = proc_field(directory + "/status", "VmHWM") * 1024;
  sample.resident_bytes = proc_field(directory + "/status", "VmRSS") * 1024;
  return sample;
}

Stopwatch::Stopwatch(std::optional<pid_t> server)
    : server_(server),
      server_before_(server ? sample_process(*server) : ProcessSample{}),
      cpu_before_(own_cpu_seconds()),
      begin_(monotonic_seconds()) {}

nlohmann::json Stopwatch::report(std::uint64_t bytes) const {
  const double seconds = monotonic_seconds() - begin_;
  nlohmann::json result{{"seconds", seconds}, {"client_cpu_s", own_cpu_seconds() - cpu_before_}};
  if (bytes != 0) {
    result["bytes"] = bytes;
    result["MBps"] = static_cast<double>(bytes) / seconds / 1e6;
  }
  if (server_) {
    const ProcessSample after = sample_process(*server_);
    result["server_cpu_s"] = after.cpu_seconds - server_before_.cpu_seconds;
    result["server_requests"] = after.read_calls - server_before_.read_calls;
    result["server_peak_mib"] = static_cast<double>(after.peak_bytes) / (1 << 20);
    result["server_resident_mib"] = static_cast<double>(after.resident_bytes) / (1 << 20);
  }
  return result;
}

nlohmann::json quantiles(std::vector<double>& seconds) {
  nlohmann::json result = nlohmann::json::object();
  if (seconds.empty()) return result;
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&seconds](std::size_t percent) {
    return seconds[std::min(seconds.size() - 1, seconds.size() * percent / 100)] * 1e6;
  };
  result["p50_us"] = at(50);
  result["p95_us"] = at(95);
  result["p99_us"] = at(99);
  result["max_us"] = seconds.back() * 1e6;
  return result;
}

File::File(const std::string& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_ < 0) fail("open " + path);
}

File::~File() {
  ::close(fd_);
}

std::uint64_t File::size() const {
  struct stat attributes {};
  if (::fstat(fd_, &attributes) != 0) fail("fstat " + path_);
  return static_cast<std::uint64_t>(attributes.st_size);
}

std::size_t File::read_at(std::span<std::byte> buffer, std::uint64_t offset) const {
  std::size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t got = ::pread(fd_, buffer.data() + done, buffer.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("pread " + path_);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Buffer::Buffer(std::size_t size) : size_(size) {
  memory_.reset(static_cast<std::byte*>(::operator new (size, std::align_val_t{kPage})));
  std::memset(memory_.get(), 1, size);
}

void Buffer::Free::operator()(std::byte* memory) const {
  ::operator delete (memory, std::align_val_t{kPage});
}

}  // namespace cframefs::bench
