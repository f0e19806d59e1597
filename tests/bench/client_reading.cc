// Reading a file the way programs do.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/client_commands.h"
#include "tests/bench/client_measure.h"

namespace cframefs::bench {
namespace {

/// Reads [begin, end) with read(), as a program that goes through a file does; returns how many bytes came.
std::uint64_t read_through(const File& file, std::uint64_t begin, std::uint64_t end, std::span<std::byte> buffer) {
  if (::lseek(file.fd(), static_cast<off_t>(begin), SEEK_SET) < 0) fail("lseek");
  std::uint64_t total = 0;
  while (begin + total < end) {
    const ssize_t got = ::read(file.fd(), buffer.data(), std::min<std::uint64_t>(buffer.size(), end - begin - total));
    if (got < 0) fail("read");
    if (got == 0) break;
    total += static_cast<std::uint64_t>(got);
  }
  return total;
}

}  // namespace

nlohmann::json sequential(const Options& options) {
  const std::uint64_t size = File(options.paths.front()).size();
  const std::uint64_t part = (size + options.jobs - 1) / options.jobs;
  std::atomic<std::uint64_t> total{0};
  const Stopwatch watch(options.server);
  run_jobs(options.jobs, [&](unsigned job) {
    const File file(options.paths.front());
    const Buffer buffer(options.block);
    total += read_through(file, job * part, std::min(size, (job + 1) * part), buffer.bytes());
  });
  nlohmann::json result = watch.report(total);
  if (total != size) throw std::runtime_error("read " + std::to_string(total) + " bytes of " + std::to_string(size));
  return result;
}

nlohmann::json together(const Options& options) {
  std::atomic<std::uint64_t> total{0};
  const Stopwatch watch(options.server);
  run_jobs(static_cast<unsigned>(options.paths.size()), [&](unsigned job) {
    const File file(options.paths[job]);
    const Buffer buffer(options.block);
    total += read_through(file, 0, file.size(), buffer.bytes());
  });
  return watch.report(total);
}

nlohmann::json cat(const Options& options) {
  const std::uint64_t size = File(options.paths.front()).size();
  std::string program = "cat";
  std::string path = options.paths.front();
  char* const arguments[] = {program.data(), path.data(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const Stopwatch watch(options.server);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::system_error(error, std::generic_category(), "spawn cat");
  int status = 0;
  if (::waitpid(child, &status, 0) != child) fail("waitpid");
  nlohmann::json result = watch.report(size);
  if (status != 0) throw std::runtime_error("cat failed");
  return result;
}

nlohmann::json map_through(const Options& options) {
  const File file(options.paths.front());
  const std::uint64_t size = file.size();
  const Stopwatch watch(options.server);
  void* const at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd(), 0);
  if (at == MAP_FAILED) fail("mmap");
  ::madvise(at, size, MADV_SEQUENTIAL);
  const auto* const bytes = static_cast<const volatile unsigned char*>(at);
  std::uint64_t sum = 0;
  for (std::uint64_t offset = 0; offset < size; offset += 4096)
    sum += bytes[offset];
  nlohmann::json result = watch.report(size);
  result["sum"] = sum;
  ::munmap(at, size);
  return result;
}

nlohmann::json random_reads(const Options& options) {
  const std::uint64_t places = File(options.paths.front()).size() / options.block;
  if (places == 0) throw std::runtime_error("the file is smaller than a block");
  std::vector<std::vector<double>> times(options.jobs);
  const Stopwatch watch(options.server);
  const double end = monotonic_seconds() + options.seconds;
  run_jobs(options.jobs, [&](unsigned job) {
    const File file(options.paths.front());
    // Without it the kernel reads around each place, and the page cache soon holds the file.
    ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_RANDOM);
    const Buffer buffer(options.block);
    std::mt19937_64 generator(options.seed * 1000 + job);
    std::uniform_int_distribution<std::uint64_t> place(0, places - 1);
    for (double before = monotonic_seconds(); before < end && times[job].size() < options.operations;) {
      if (file.read_at(buffer.bytes(), place(generator) * options.block) != options.block)
        throw std::runtime_error("short read");
      const double after = monotonic_seconds();
      times[job].push_back(after - before);
      before = after;
    }
  });
  nlohmann::json result = watch.report(0);
  std::vector<double> all;
  for (const std::vector<double>& of_job : times)
    all.insert(all.end(), of_job.begin(), of_job.end());
  result["operations"] = all.size();
  result["ops"] = static_cast<double>(all.size()) / result["seconds"].get<double>();
  result.update(quantiles(all));
  return result;
}

nlohmann::json open_and_read(const Options& options) {
  const Buffer buffer(1);
  const Stopwatch watch(options.server);
  const double begin = monotonic_seconds();
  const File file(options.paths.front());
  const double opened = monotonic_seconds();
  const std::size_t got = file.read_at(buffer.bytes(), options.offset);
  const double read = monotonic_seconds();
  nlohmann::json result = watch.report(0);
  if (got != 1) throw std::runtime_error("no byte there");
  result["open_us"] = (opened - begin) * 1e6;
  result["first_byte_us"] = (read - begin) * 1e6;
  return result;
}

}  // namespace cframefs::bench
