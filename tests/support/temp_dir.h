// A directory of its own for a test, removed with everything in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include <sys/xattr.h>
#include <unistd.h>

#include "codec/base/bytes.h"

namespace cframefs::test {

/// Where tests make very many files that no test keeps: ext4 needs long to create a file if others were removed in the
/// last seconds. A directory in memory if that keeps extended attributes of users (Linux 6.6), otherwise that of
/// temporary files.
inline std::filesystem::path directory_for_many_files() {
  static const std::filesystem::path place = [] {
    std::string probe = "/dev/shm/cframefs-test-" + std::string(6, 'X');
    const int fd = ::mkstemp(probe.data());
    if (fd < 0) return std::filesystem::temp_directory_path();
    const bool keeps_attributes = ::fsetxattr(fd, "user.cframefs", "1", 1, 0) == 0;
    ::close(fd);
    ::unlink(probe.c_str());
    return keeps_attributes ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
  }();
  return place;
}

class TempDir {
 public:
  explicit TempDir(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    // mkdtemp(3) puts something unique in place of the six letters.
    std::string pattern = (parent / "cframefs-test-").string() + std::string(6, 'X');
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Writes a file below the directory and returns its path.
  std::filesystem::path write(const std::string& name, codec::ByteView bytes) const {
    std::filesystem::path file = path_ / name;
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return file;
  }

 private:
  std::filesystem::path path_;
};

/// All bytes of a file, none of one that is not there.
inline std::vector<std::uint8_t> file_bytes(const std::filesystem::path& file) {
  std::error_code missing;
  const auto size = std::filesystem::file_size(file, missing);
  if (missing) return {};
  std::ifstream in(file, std::ios::binary);
  std::vector<std::uint8_t> bytes(size);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  return bytes;
}

}  // namespace cframefs::test
