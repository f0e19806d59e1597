// What comes before a measurement: files in the page cache or out of it, memory touched, data made.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/bench/client_commands.h"
#include "tests/bench/client_measure.h"

namespace cframefs::bench {
namespace {

constexpr std::size_t kStep = std::size_t{1} << 20;  // what is generated and written at a time

/// A stream of numbers that depends on nothing but the place in it (a splitmix64 sequence).
std::uint64_t noise_at(std::uint64_t place) {
  std::uint64_t value = (place + 1) * 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

/// Temperatures of a grid of 1,024 points a row as a model writes them: two waves that move with the rows, and noise of
/// a twentieth of a degree in steps of 1/64.
class Field {
 public:
  Field() : sines_(2 * kColumns), cosines_(2 * kColumns) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      for (const std::size_t wave : {std::size_t{0}, std::size_t{1}}) {
        const double angle = kTurn * static_cast<double>((wave == 0 ? 3 : 7) * column) / kColumns;
        sines_[wave * kColumns + column] = std::sin(angle);
        cosines_[wave * kColumns + column] = std::cos(angle);
      }
    }
  }

  void fill(std::vector<float>& values, std::uint64_t first) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint64_t place = first + i;
      const std::size_t column = place % kColumns;
      if (column == 0 || i == 0) start_row(place / kColumns);
      double value = 273.15 + 10 * amplitude_;
      for (const std::size_t wave : {std::size_t{0}, std::size_t{1}}) {
        const double height = wave == 0 ? 10 : 4;
        value += height * amplitude_ *
                 (sines_[wave * kColumns + column] * cos_[wave] + cosines_[wave * kColumns + column] * sin_[wave]);
      }
      const double noise = static_cast<double>(noise_at(place) >> 40) / (1 << 24) - 0.5;
      values[i] = static_cast<float>(std::round((value + 0.16 * noise) * 64) / 64);
    }
  }

 private:
  static constexpr std::size_t kColumns = 1024;
  static constexpr std::uint64_t kRows = 512;  // of one step in time
  static constexpr double kTurn = 6.283185307179586;

  void start_row(std::uint64_t row) const {
    const double latitude = (static_cast<double>(row % kRows) / kRows - 0.5) * kTurn / 2;
    const std::uint64_t step = row / kRows;
    const double phase = 0.05 * static_cast<double>(step) + 3 * std::sin(latitude);
    amplitude_ = std::cos(latitude);
    for (const std::size_t wave : {std::size_t{0}, std::size_t{1}}) {
      sin_[wave] = std::sin(phase * (wave == 0 ? 1 : 1.7));
      cos_[wave] = std::cos(phase * (wave == 0 ? 1 : 1.7));
    }
  }

  std::vector<double> sines_;
  std::vector<double> cosines_;
  mutable double amplitude_ = 0;
  mutable double sin_[2] = {};
  mutable double cos_[2] = {};
};

/// Numbers that count up: what packs well in chunks of any size.
void count_up(std::vector<float>& values, std::uint64_t first) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto number = static_cast<std::uint32_t>((first + i) * 3 + (first + i) / 1024 * 7);
    std::memcpy(&values[i], &number, sizeof number);
  }
}

}  // namespace

nlohmann::json evict(const Options& options) {
  for (const std::string& path : options.paths) {
    const File file(path);
    ::fdatasync(file.fd());
    const int error = ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED);
    if (error != 0) throw std::system_error(error, std::generic_category(), "posix_fadvise " + path);
  }
  return {{"files", options.paths.size()}};
}

nlohmann::json fill(const Options& options) {
  const Buffer buffer(kStep);
  std::uint64_t total = 0;
  for (const std::string& path : options.paths) {
    const File file(path);
    std::uint64_t total_of_file = 0;
    while (const std::size_t got = file.read_at(buffer.bytes(), total_of_file))
      total_of_file += got;
    total += total_of_file;
  }
  return {{"bytes", total}};
}

nlohmann::json prewarm(const Options& options) {
  const Stopwatch watch(std::nullopt);
  const std::size_t size = options.mebibytes << 20;
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) fail("mmap");
  ::munmap(at, size);
  return watch.report(0);
}

nlohmann::json copy_memory(const Options& /*options*/) {
  constexpr std::size_t kSize = std::size_t{256} << 20;
  constexpr int kRounds = 9;
  const Buffer from(kSize);
  const Buffer to(kSize);
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = monotonic_seconds();
    std::memcpy(to.bytes().data(), from.bytes().data(), kSize);
    const volatile std::byte* const result = to.bytes().data();
    static_cast<void>(*result);
    best = std::max(best, static_cast<double>(kSize) / (monotonic_seconds() - begin) / 1e6);
  }
  return {{"MBps", best}};
}

nlohmann::json generate(const Options& options) {
  const std::string& path = options.paths.front();
  const int fd = path == "-" ? STDOUT_FILENO : ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) fail("open " + path);
  const Field field;
  std::vector<float> values(kStep / sizeof(float));
  for (std::uint64_t at = 0; at < options.size;) {
    if (options.kind == "count") {
      count_up(values, at / sizeof(float));
    } else {
      field.fill(values, at / sizeof(float));
    }
    const std::size_t wanted = std::min<std::uint64_t>(kStep, options.size - at);
    const char* const bytes = static_cast<const char*>(static_cast<const void*>(values.data()));
    for (std::size_t written = 0; written < wanted;) {
      const ssize_t put = ::write(fd, bytes + written, wanted - written);
      if (put < 0) fail("write " + path);
      written += static_cast<std::size_t>(put);
    }
    at += wanted;
  }
  if (path != "-") ::close(fd);
  return path == "-" ? nlohmann::json() : nlohmann::json{{"bytes", options.size}};
}

}  // namespace cframefs::bench
