#include "fs/util/memory_limits.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <string_view>

#include <sys/resource.h>
#include <unistd.h>

#include "codec/base/page_memory.h"

namespace cframefs::fs {
namespace {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;

/// Decodes a path of mountinfo(5), in which blanks and backslashes are three octal digits.
std::string unescaped(std::string_view text) {
  constexpr std::size_t kDigits = 3;
  std::string path;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned code = 0;
    const char* digits = text.data() + at + 1;
    if (text[at] == '\\' && at + kDigits < text.size() &&
        std::from_chars(digits, digits + kDigits, code, 8).ptr == digits + kDigits) {
      path += static_cast<char>(code);
      at += kDigits;
    } else {
      path += text[at];
    }
  }
  return path;
}

/// Returns the number in the file. "max" and a file that cannot be read count as no limit.
std::uint64_t limit_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t limit = 0;
  return file >> limit ? limit : kNoMemoryLimit;
}

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma) == word) return true;
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return false;
}

/// The control group hierarchies that may limit memory: versions 1 and 2.
enum class Tree : std::uint8_t { first, second };

struct GroupMount {
  Tree tree = Tree::second;
  std::string shown;  // the group that is the root of the mount
  std::string place;  // the mount point
};

std::optional<GroupMount> parse_mount(const std::string& line) {
  const std::size_t dash = line.find(" - ");
  if (dash == std::string::npos) return {};
  std::istringstream before(line.substr(0, dash));
  std::istringstream behind(line.substr(dash + 3));
  std::string skipped;
  std::string shown;
  std::string place;
  std::string type;
  std::string options;
  before >> skipped >> skipped >> skipped >> shown >> place;
  behind >> type >> skipped >> options;
  if (!before || !behind) return {};
  const bool is_first = type == "cgroup" && has_word(options, "memory");
  if (!is_first && type != "cgroup2") return {};
  return GroupMount{is_first ? Tree::first : Tree::second, unescaped(shown), unescaped(place)};
}

/// Returns the group of the process. A line is `number:controllers:/path`; version 2 has number 0 and no controllers.
std::optional<std::string> group_in(const std::string& root, Tree tree) {
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const bool is_right = tree == Tree::first ? has_word(controllers, "memory")
                                              : controllers.empty() && std::string_view(line).substr(0, first) == "0";
    if (is_right) return line.substr(second + 1);
  }
  return {};
}

/// Returns the group's path relative to `shown`. Returns "" for `shown` itself and for a path that leads out of it.
std::string beneath(const std::string& group, const std::string& shown) {
  const std::string above = shown == "/" ? "" : shown;
  const bool is_inside =
      group.compare(0, above.size(), above) == 0 && (group.size() == above.size() || group[above.size()] == '/');
  const std::string path = is_inside ? group.substr(above.size()) : "";
  const bool leads_out = (path + "/").find("/../") != std::string::npos;
  return leads_out || path == "/" ? "" : path;
}

std::uint64_t limit_of_group(const std::string& directory, Tree tree) {
  if (tree == Tree::first) return limit_in(directory + "/memory.limit_in_bytes");
  return std::min(limit_in(directory + "/memory.max"), limit_in(directory + "/memory.high"));
}

}  // namespace

MemorySources MemorySources::of_system() {
  MemorySources sources;
  const long pages = sysconf(_SC_PHYS_PAGES);
  if (pages > 0) sources.physical = static_cast<std::uint64_t>(pages) * codec::page_size();
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) sources.address_space = limit.rlim_cur;
  return sources;
}

std::uint64_t control_group_limit(const std::string& root) {
  std::uint64_t least = kNoMemoryLimit;
  std::ifstream mounts(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const auto mount = parse_mount(line);
    if (!mount) continue;
    const auto group = group_in(root, mount->tree);
    if (!group) continue;
    const std::string place = root + mount->place;
    std::string path = beneath(*group, mount->shown);
    for (;;) {
      least = std::min(least, limit_of_group(place + path, mount->tree));
      if (path.empty()) break;
      path.resize(path.rfind('/'));
    }
  }
  return least;
}

std::uint64_t usable_memory(const MemorySources& sources) {
  return std::min({sources.physical, sources.address_space, control_group_limit(sources.root)});
}

std::uint64_t default_cache_size(std::uint64_t memory) {
  return std::clamp(memory / 8, 8 * kMib, 1024 * kMib);
}

std::uint64_t default_dirty_limit(std::uint64_t memory) {
  const std::uint64_t cache = default_cache_size(memory);
  return std::clamp(cache / 2, std::min(cache, 64 * kMib), 512 * kMib);
}

}  // namespace cframefs::fs
