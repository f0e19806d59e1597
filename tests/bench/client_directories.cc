// What it costs to list a directory of many files, to ask for their attributes, to open them, and to see a change.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/bench/client_commands.h"
#include "tests/bench/client_measure.h"

namespace cframefs::bench {
namespace {

/// The names in a directory, sorted, so that every server is asked in the same order.
std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// `each(directory descriptor, name)` for the first names of a directory, timed.
template <class Each>
nlohmann::json for_names(const Options& options, std::size_t most, const Each& each) {
  const std::string& directory = options.paths.front();
  std::vector<std::string> names = names_in(directory);
  names.resize(std::min(names.size(), most));
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail("open " + directory);
  const Stopwatch watch(options.server);
  for (const std::string& name : names)
    each(fd, name.c_str());
  nlohmann::json result = watch.report(0);
  ::close(fd);
  result["entries"] = names.size();
  result["ops"] = static_cast<double>(names.size()) / result["seconds"].get<double>();
  return result;
}

}  // namespace

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

nlohmann::json stat_all(const Options& options) {
  return for_names(options, SIZE_MAX, [](int directory, const char* name) {
    struct stat attributes {};
    if (::fstatat(directory, name, &attributes, AT_SYMLINK_NOFOLLOW) != 0) fail(std::string("fstatat ") + name);
  });
}

nlohmann::json open_all(const Options& options) {
  constexpr std::size_t kEnough = 10000;  // each open wakes the server
  return for_names(options, kEnough, [](int directory, const char* name) {
    const int fd = ::openat(directory, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) fail(std::string("openat ") + name);
    ::close(fd);
  });
}

nlohmann::json notice(const Options& options) {
  // paths: the file as the mount shows it, and the file behind it; its times are changed and looked for.
  constexpr int kRounds = 200;
  std::vector<double> delays;
  std::size_t late = 0;
  for (int round = 0; round < kRounds; ++round) {
    const timespec wanted{1'000'000'000 + round, 0};
    const timespec times[2] = {wanted, wanted};
    struct stat attributes {};
    if (::stat(options.paths.at(0).c_str(), &attributes) != 0) fail("stat");
    if (::utimensat(AT_FDCWD, options.paths.at(1).c_str(), times, 0) != 0) fail("utimensat");
    const double begin = monotonic_seconds();
    bool first = true;
    do {
      if (::stat(options.paths.at(0).c_str(), &attributes) != 0) fail("stat");
      if (first && attributes.st_mtim.tv_sec != wanted.tv_sec) ++late;
      first = false;
      if (monotonic_seconds() - begin > 10) throw std::runtime_error("the change is not noticed");
    } while (attributes.st_mtim.tv_sec != wanted.tv_sec);
    delays.push_back(monotonic_seconds() - begin);
  }
  nlohmann::json result = quantiles(delays);
  result["rounds"] = kRounds;
  result["late"] = late;
  return result;
}

}  // namespace cframefs::bench
