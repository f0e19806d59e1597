#include "frame/io/lock_holders.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/sysmacros.h>

namespace cframefs::frame {
namespace {

std::function<bool(const struct stat&)>& examiner() {
  static std::function<bool(const struct stat&)> instance;
  return instance;
}

/// Returns the name of the file in /proc/locks: major:minor:inode, with major and minor in hexadecimal.
std::string name_of(const struct stat& file) {
  char name[64];
  std::snprintf(name, sizeof name, "%02x:%02x:%llu", major(file.st_dev), minor(file.st_dev),
                static_cast<unsigned long long>(file.st_ino));
  return name;
}

/// Returns the processes that hold a flock(2) lock on the file.
std::set<long> holders_of(const std::string& name) {
  std::set<long> holders;
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream fields(line);
    std::string number;
    std::string kind;
    std::string manner;
    std::string type;
    long process = 0;
    std::string file;
    // A waiting request has an arrow instead of a kind, and holds no lock.
    if (fields >> number >> kind >> manner >> type >> process >> file && kind == "FLOCK" && file == name)
      holders.insert(process);
  }
  return holders;
}

/// Returns whether the descriptor can write; nullopt if it holds no lock on the file. `descriptor`: its file in fdinfo.
std::optional<bool> lock_of_writer(const std::filesystem::path& descriptor, const std::string& name) {
  std::ifstream info(descriptor);
  bool locks = false;
  std::optional<int> flags;
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("flags:")) flags = static_cast<int>(std::strtol(line.c_str() + 6, nullptr, 8));
    if (line.starts_with("lock:") && line.find("FLOCK") != std::string::npos &&
        line.find(" " + name + " ") != std::string::npos)
      locks = true;
  }
  if (!locks) return std::nullopt;
  return !flags || (*flags & O_ACCMODE) != O_RDONLY;
}

}  // namespace

void examine_locks_by(std::function<bool(const struct stat& file)> examine) {
  examiner() = std::move(examine);
}

bool only_readers_lock(const struct stat& file) {
  if (examiner()) return examiner()(file);
  const std::string name = name_of(file);
  const std::set<long> holders = holders_of(name);
  for (const long process : holders) {
    std::error_code failed;
    std::filesystem::directory_iterator descriptor("/proc/" + std::to_string(process) + "/fdinfo", failed);
    bool found = false;
    for (; !failed && descriptor != std::filesystem::directory_iterator(); descriptor.increment(failed)) {
      const auto writes = lock_of_writer(descriptor->path(), name);
      if (!writes) continue;
      if (*writes) return false;
      found = true;
    }
    if (failed || !found) return false;
  }
  return !holders.empty();
}

}  // namespace cframefs::frame
