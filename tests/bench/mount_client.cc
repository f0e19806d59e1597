// The measuring client: reads a file the way programs do and prints one line of JSON on how long it took.
//
//   bench_client sequential FILE [--block=128K] [--jobs=1]   each job reads its own part of the file, in order
//   bench_client cat FILE                                    the system's cat into /dev/null
//   bench_client mmap FILE                                   touches every page through a mapping
//   bench_client random FILE [--block=4K] [--jobs=1] [--seconds=1] [--seed=1]
//   bench_client open FILE [--offset=0]                      open, then the first byte there
//   bench_client walk FOLDER                                 list and stat everything beneath
//   bench_client evict FILE...                               drop the files' pages from the page cache
//   bench_client fill FILE...                                bring the files' pages into the page cache
//   bench_client prewarm MIB                                 touch free memory
//   bench_client memcpy                                      what copying memory costs here
//
// --pid=SERVER adds the processor time, the requests taken in and the peak memory of that process. Rates are 10^6 bytes
// per second. Why prewarm: in a virtual machine that gives free pages back to its host, the first touch of such a page
// costs a fault in the host, which would be charged to whoever reads first.
//
// Errors: one line on standard error; exit status 1 if a measurement failed, 2 for wrong usage.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/client_measure.h"

namespace cframefs::bench {
namespace {

struct Options {
  std::vector<std::string> paths;
  std::uint64_t block = 0;
  unsigned jobs = 1;
  double seconds = 1;
  std::uint64_t seed = 1;
  std::uint64_t offset = 0;
  std::uint64_t mebibytes = 0;
  std::optional<pid_t> server;
};

[[noreturn]] void fail(const std::string& doing) {
  throw std::system_error(errno, std::generic_category(), doing);
}

/// Runs `body(job)` in as many threads as there are jobs; the first exception comes out here.
template <class Body>
void run_jobs(unsigned jobs, const Body& body) {
  std::vector<std::exception_ptr> failures(jobs);
  std::vector<std::thread> threads;
  threads.reserve(jobs);
  for (unsigned job = 0; job < jobs; ++job) {
    threads.emplace_back([job, &body, &failures] {
      try {
        body(job);
      } catch (...) {
        failures[job] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

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
    for (double before = monotonic_seconds(); before < end;) {
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

nlohmann::json walk(const Options& options) {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  const Stopwatch watch(options.server);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(options.paths.front())) {
    struct stat attributes {};
    if (::lstat(entry.path().c_str(), &attributes) != 0) fail("lstat " + entry.path().string());
    ++entries;
    bytes += static_cast<std::uint64_t>(attributes.st_size);
  }
  nlohmann::json result = watch.report(0);
  result["entries"] = entries;
  result["sum_of_sizes"] = bytes;
  result["ops"] = static_cast<double>(entries) / result["seconds"].get<double>();
  return result;
}

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
  const Buffer buffer(std::size_t{1} << 20);
  std::uint64_t total = 0;
  for (const std::string& path : options.paths) {
    const File file(path);
    total += read_through(file, 0, file.size(), buffer.bytes());
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

using Measurement = nlohmann::json (*)(const Options&);

/// One subcommand; `chosen` is set when the command line names it.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& help, Measurement measurement,
                      Measurement& chosen, Options& options) {
  CLI::App* const command = app.add_subcommand(name, help);
  command->add_option("--pid", options.server, "Process that serves the file");
  command->callback([&chosen, measurement] { chosen = measurement; });
  return command;
}

void add_commands(CLI::App& app, Options& options, Measurement& chosen) {
  const auto add = [&](const char* name, const char* help, Measurement measurement) {
    return add_command(app, name, help, measurement, chosen, options);
  };
  const auto takes_paths = [&options](CLI::App* command, bool many) {
    CLI::Option* const paths = command->add_option("path", options.paths)->required();
    if (!many) paths->expected(1);
    return command;
  };
  CLI::App* const in_order = takes_paths(add("sequential", "Read in order", sequential), false);
  in_order->add_option("--block", options.block)->transform(CLI::AsSizeValue(false))->default_str("128K");
  in_order->add_option("--jobs", options.jobs)->check(CLI::Range(1, 256));
  takes_paths(add("cat", "The system's cat into /dev/null", cat), false);
  takes_paths(add("mmap", "Touch every page through a mapping", map_through), false);
  CLI::App* const random = takes_paths(add("random", "Read at random places", random_reads), false);
  random->add_option("--block", options.block)->transform(CLI::AsSizeValue(false))->default_str("4K");
  random->add_option("--jobs", options.jobs)->check(CLI::Range(1, 256));
  random->add_option("--seconds", options.seconds)->check(CLI::PositiveNumber);
  random->add_option("--seed", options.seed);
  takes_paths(add("open", "Open and read one byte", open_and_read), false)
      ->add_option("--offset", options.offset)
      ->transform(CLI::AsSizeValue(false));
  takes_paths(add("walk", "List and stat everything beneath a folder", walk), false);
  takes_paths(add("evict", "Drop files from the page cache", evict), true);
  takes_paths(add("fill", "Bring files into the page cache", fill), true);
  add("prewarm", "Touch free memory", prewarm)->add_option("mib", options.mebibytes)->required();
  add("memcpy", "Copy memory", copy_memory);
}

int client_main(int argc, char** argv) {
  Options options;
  Measurement chosen = nullptr;
  CLI::App app{"Reads files the way programs do and prints what it cost as JSON."};
  app.require_subcommand(1);
  add_commands(app, options, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.block == 0) options.block = chosen == random_reads ? 4096 : std::uint64_t{128} << 10;
  try {
    std::printf("%s\n", chosen(options).dump().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_client: %s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace cframefs::bench

int main(int argc, char** argv) {
  return cframefs::bench::client_main(argc, argv);
}
