// The commands of the measuring client, by what they do: reading as programs do, walking directories, writing, keeping
// a mount at work and asking it meanwhile, preparing.
//
// Each takes the options of the command line and returns what to print. Thread safety: one command runs at a time; it
// may start threads of its own. Sizes are bytes, rates 10^6 bytes per second.
// Errors: std::exception with what was tried.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/types.h>

namespace cframefs::bench {

struct Options {
  std::vector<std::string> paths;
  std::uint64_t block = 0;
  unsigned jobs = 1;
  double seconds = 1;
  std::uint64_t seed = 1;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t mebibytes = 0;
  std::uint64_t operations = UINT64_MAX;
  double pause = 0.02;   // seconds
  double patience = 10;  // seconds
  std::string source;    // behind the mount
  std::uint64_t number = 0;
  std::string kind;
  std::optional<pid_t> server;
};

using Measurement = nlohmann::json (*)(const Options&);

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

// client_reading.cc
nlohmann::json sequential(const Options& options);
nlohmann::json together(const Options& options);
nlohmann::json cat(const Options& options);
nlohmann::json map_through(const Options& options);
nlohmann::json random_reads(const Options& options);
nlohmann::json open_and_read(const Options& options);

// client_directories.cc
nlohmann::json walk(const Options& options);
nlohmann::json stat_all(const Options& options);
nlohmann::json open_all(const Options& options);
nlohmann::json notice(const Options& options);

// client_latency.cc
nlohmann::json latency(const Options& options);

// client_loads.cc
/// Never ends by itself.
nlohmann::json load(const Options& options);
std::vector<std::string> kinds_of_load();
nlohmann::json small_writes(const Options& options);

// client_preparing.cc
nlohmann::json evict(const Options& options);
nlohmann::json fill(const Options& options);
nlohmann::json prewarm(const Options& options);
nlohmann::json copy_memory(const Options& options);
nlohmann::json generate(const Options& options);

}  // namespace cframefs::bench
