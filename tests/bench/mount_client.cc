// The measuring client: reads files the way programs do and prints one line of JSON on how long it took.
//
//   bench_client sequential FILE [--block=128K] [--jobs=1]   each job reads its own part of the file, in order
//   bench_client together FILE... [--block=128K]             each file is read in order by a thread of its own
//   bench_client cat FILE                                    the system's cat into /dev/null
//   bench_client mmap FILE                                   touches every page through a mapping
//   bench_client random FILE [--block=4K] [--jobs=1] [--seconds=1] [--seed=1] [--operations=ALL]
//   bench_client open FILE [--offset=0]                      open, then the first byte there
//   bench_client walk DIRECTORY                                 list and stat everything beneath
//   bench_client stat DIRECTORY                                 stat of what lies in a directory, its names known
//   bench_client open-all DIRECTORY                             the same with open and close, of 10,000 files at most
//   bench_client notice SHOWN BEHIND                         how long a change of a file behind the mount stays unseen
//   bench_client small-writes FILE [--seconds=1]             100 bytes each, one after the other
//   bench_client latency MOUNT [--seconds=1] [--pause=0.02] [--patience=10]  how long small requests wait
//   bench_client load MOUNT --kind=KIND [--number=0] [--source=DIRECTORY] [--mib=8]
//                                                            slow requests, one after the other, for ever
//   bench_client evict FILE...                               drop the files' pages from the page cache
//   bench_client fill FILE...                                bring the files' pages into the page cache
//   bench_client prewarm MIB                                 touch free memory
//   bench_client memcpy                                      what copying memory costs here
//   bench_client generate FILE --size=SIZE [--kind=field|count]  make data; FILE - is standard output
//
// --pid=SERVER adds the processor time, the requests taken in and the peak memory of that process. Rates are 10^6 bytes
// per second. Why prewarm: in a virtual machine that gives free pages back to its host, the first touch of such a page
// costs a fault in the host, which would be charged to the first reader.
//
// Errors: one line on standard error; exit status 1 if a measurement failed, 2 for wrong usage.
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

#include "tests/bench/client_commands.h"

namespace cframefs::bench {

namespace {

/// Adds subcommands; `chosen` is set to the one that the command line names.
class Commands {
 public:
  Commands(CLI::App& app, Options& options, Measurement& chosen) : app_(app), options_(options), chosen_(chosen) {}

  CLI::App* add(const std::string& name, const std::string& help, Measurement measurement) {
    CLI::App* const command = app_.add_subcommand(name, help);
    command->add_option("--pid", options_.server, "Process that serves the file");
    command->callback([this, measurement] { chosen_ = measurement; });
    return command;
  }
  CLI::App* add_with_paths(const std::string& name, const std::string& help, Measurement measurement, int count) {
    CLI::App* const command = add(name, help, measurement);
    CLI::Option* const paths = command->add_option("path", options_.paths)->required();
    if (count > 0) paths->expected(count);
    return command;
  }
  void take_jobs(CLI::App* command) { command->add_option("--jobs", options_.jobs)->check(CLI::Range(1, 256)); }

 private:
  CLI::App& app_;
  Options& options_;
  Measurement& chosen_;
};

void take_size(CLI::App* command, const char* name, std::uint64_t& value) {
  command->add_option(name, value)->transform(CLI::AsSizeValue(false));
}

void add_load_commands(Commands& commands, Options& options) {
  CLI::App* command = commands.add_with_paths("latency", "How long small requests wait", latency, 1);
  command->add_option("--seconds", options.seconds)->check(CLI::PositiveNumber);
  command->add_option("--pause", options.pause, "Seconds between two requests of a kind");
  command->add_option("--patience", options.patience, "Seconds to wait for the last answers");
  command = commands.add_with_paths("load", "Slow requests, one after the other", load, 1);
  command->add_option("--kind", options.kind)->required()->check(CLI::IsMember(kinds_of_load()));
  command->add_option("--number", options.number, "Which of the files that are there for it");
  command->add_option("--source", options.source, "What is mounted");
  command->add_option("--mib", options.mebibytes, "What is written before each close");
}

void add_commands(Commands& commands, Options& options) {
  CLI::App* command = commands.add_with_paths("sequential", "Read in order", sequential, 1);
  take_size(command, "--block", options.block);
  commands.take_jobs(command);
  command = commands.add_with_paths("together", "Read several files at once, each in order", together, 0);
  take_size(command, "--block", options.block);
  commands.add_with_paths("cat", "The system's cat into /dev/null", cat, 1);
  commands.add_with_paths("mmap", "Touch every page through a mapping", map_through, 1);
  command = commands.add_with_paths("random", "Read at random places", random_reads, 1);
  take_size(command, "--block", options.block);
  commands.take_jobs(command);
  command->add_option("--seconds", options.seconds)->check(CLI::PositiveNumber);
  command->add_option("--seed", options.seed);
  command->add_option("--operations", options.operations, "Of each job, at most");
  command = commands.add_with_paths("open", "Open and read one byte", open_and_read, 1);
  take_size(command, "--offset", options.offset);
  commands.add_with_paths("walk", "List and stat everything beneath a directory", walk, 1);
  commands.add_with_paths("stat", "Stat what lies in a directory", stat_all, 1);
  commands.add_with_paths("open-all", "Open what lies in a directory", open_all, 1);
  commands.add_with_paths("notice", "Time until a change behind the mount is seen", notice, 2);
  command = commands.add_with_paths("small-writes", "Write 100 bytes each time", small_writes, 1);
  command->add_option("--seconds", options.seconds)->check(CLI::PositiveNumber);
  add_load_commands(commands, options);
  commands.add_with_paths("evict", "Drop files from the page cache", evict, 0);
  commands.add_with_paths("fill", "Bring files into the page cache", fill, 0);
  commands.add("prewarm", "Touch free memory", prewarm)->add_option("mib", options.mebibytes)->required();
  commands.add("memcpy", "Copy memory", copy_memory);
  command = commands.add_with_paths("generate", "Make data", generate, 1);
  command->add_option("--size", options.size)->required()->transform(CLI::AsSizeValue(false));
  command->add_option("--kind", options.kind)->check(CLI::IsMember({"field", "count"}));
}

int client_main(int argc, char** argv) {
  Options options;
  Measurement chosen = nullptr;
  CLI::App app{"Reads files the way programs do and prints what it cost as JSON."};
  app.require_subcommand(1);
  Commands commands(app, options, chosen);
  add_commands(commands, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.block == 0) options.block = chosen == random_reads ? 4096 : std::uint64_t{128} << 10;
  const nlohmann::json result = chosen(options);
  if (!result.is_null()) std::printf("%s\n", result.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace cframefs::bench

int main(int argc, char** argv) {
  try {
    return cframefs::bench::client_main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_client: %s\n", error.what());
    return 1;
  }
}
