#include "fs/util/mount_info.h"

#include <array>
#include <cerrno>
#include <fstream>
#include <functional>
#include <sstream>
#include <string_view>

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cframefs::fs {
namespace {

// Kernel headers before Linux 6.8 lack this constant.
constexpr unsigned kUniqueId = 0x4000;  // STATX_MNT_ID_UNIQUE
// Answers from the kernel's memory: no request goes to the mount.
constexpr int kWithoutAsking = 0x4000;  // AT_STATX_DONT_SYNC

/// Encodes a path as mountinfo(5) does.
std::string escape_blanks(const std::string& path) {
  std::string escaped;
  for (const char c : path) {
    switch (c) {
      case ' ':
        escaped += "\\040";
        break;
      case '\t':
        escaped += "\\011";
        break;
      case '\n':
        escaped += "\\012";
        break;
      case '\\':
        escaped += "\\134";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

/// Returns the mount ID that is never reused, 0 if the kernel has none. Kernels that lack it may ignore
/// AT_STATX_DONT_SYNC as well, and statx(2) on the mount would wait for an answer: so the function probes "/" first.
std::uint64_t unique_id_of(int directory, const char* path, int flags) {
  // statx(2) is called directly because the C library's declaration clashes with the kernel's header.
  struct statx about {};
  if (syscall(SYS_statx, AT_FDCWD, "/", kWithoutAsking, kUniqueId, &about) != 0 || (about.stx_mask & kUniqueId) == 0)
    return 0;
  about = {};
  if (syscall(SYS_statx, directory, path, flags | kWithoutAsking, kUniqueId, &about) != 0) return 0;
  return (about.stx_mask & kUniqueId) != 0 ? about.stx_mnt_id : 0;
}

constexpr const char* kOurs = "fuse.cframefs";

struct Line {
  MountIdentity mount;
  std::string place;
  std::string flags;    // of the mount
  std::string options;  // of the superblock
  std::string type;
};

std::optional<Line> parse(const std::string& text) {
  const std::size_t dash = text.find(" - ");
  if (dash == std::string::npos) return {};
  std::istringstream fields(text);
  Line line;
  std::string parent;
  std::string root;
  char colon = 0;
  fields >> line.mount.id >> parent >> line.mount.device_major >> colon >> line.mount.device_minor >> root >>
      line.place >> line.flags;
  if (!fields) return {};
  std::istringstream behind(text.substr(dash + 3));
  std::string source;
  behind >> line.type >> source >> line.options;
  return line;
}

void each_filesystem(const std::function<void(const Line&)>& look) {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string text; std::getline(mounts, text);) {
    if (const auto line = parse(text)) look(*line);
  }
}

void each_mount(const std::function<void(const Line&)>& look) {
  each_filesystem([&](const Line& line) {
    if (line.type == kOurs) look(line);
  });
}

/// Returns whether a mount with this unique ID exists.
bool exists(std::uint64_t unique_id) {
  // statmount(2) of Linux 6.8; older headers lack it.
  constexpr long kStatMount = 457;
  struct Request {
    std::uint32_t size = 24;
    std::uint32_t spare = 0;
    std::uint64_t id = 0;
    std::uint64_t what = 0;  // no fields: only the result of the call matters
  } request;
  request.id = unique_id;
  std::array<std::uint64_t, 128> answer{};
  return syscall(kStatMount, &request, answer.data(), sizeof answer, 0) == 0 || errno != ENOENT;
}

/// Returns the mount ID of an open file; 0 if it is unknown.
std::uint64_t mount_of(int fd) {
  std::ifstream about(fmt::format("/proc/self/fdinfo/{}", fd));
  for (std::string word; about >> word;) {
    std::uint64_t id = 0;
    if (word == "mnt_id:" && about >> id) return id;
  }
  return 0;
}

}  // namespace

std::string device_numbers(const MountIdentity& mount) {
  return fmt::format("{}:{}", mount.device_major, mount.device_minor);
}

std::optional<MountIdentity> mount_at(const std::string& mountpoint) {
  const std::string wanted = escape_blanks(mountpoint);
  std::optional<MountIdentity> found;
  each_mount([&](const Line& line) {
    if (line.place == wanted) found = line.mount;
  });
  if (found) found->unique_id = unique_id_of(AT_FDCWD, mountpoint.c_str(), AT_SYMLINK_NOFOLLOW);
  return found;
}

bool is_mounted(const MountIdentity& mount) {
  if (mount.unique_id != 0) return exists(mount.unique_id);
  bool found = false;
  each_mount([&](const Line& line) {
    found = found || (line.mount.id == mount.id && device_numbers(line.mount) == device_numbers(mount));
  });
  return found;
}

std::optional<std::string> filesystem_at(const std::string& path) {
  const std::string wanted = escape_blanks(path);
  std::optional<std::string> found;
  each_filesystem([&](const Line& line) {
    if (line.place == wanted) found = line.type;
  });
  return found;
}

std::vector<std::string> mount_flags_at(const std::string& mountpoint) {
  const std::string wanted = escape_blanks(mountpoint);
  std::string flags;
  each_mount([&](const Line& line) {
    if (line.place == wanted) flags = line.flags;
  });
  std::vector<std::string> words;
  std::istringstream list(flags);
  for (std::string word; std::getline(list, word, ',');)
    words.push_back(word);
  return words;
}

bool is_writable(const MountIdentity& mount) {
  bool found = false;
  each_mount([&](const Line& line) {
    const bool is_same = line.mount.id == mount.id && device_numbers(line.mount) == device_numbers(mount);
    found = found || (is_same && (line.options + ",").starts_with("rw,"));
  });
  return found;
}

bool lies_on(int fd, const MountIdentity& mount) {
  if (mount_of(fd) != mount.id) return false;
  return mount.unique_id == 0 || unique_id_of(fd, "", AT_EMPTY_PATH) == mount.unique_id;
}

}  // namespace cframefs::fs
