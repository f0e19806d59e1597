// A folder of its own for a test, removed with everything in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "codec/bytes.h"

namespace cframefs::test {

class TempDir {
 public:
  TempDir() {
    // mkdtemp(3) puts something unique in place of the six letters.
    std::string pattern = (std::filesystem::temp_directory_path() / "cframefs-test-").string() + std::string(6, 'X');
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

  /// Writes a file below the folder and returns its path.
  std::filesystem::path write(const std::string& name, codec::ByteView bytes) const {
    const std::filesystem::path file = path_ / name;
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    for (const std::uint8_t byte : bytes)
      out.put(static_cast<char>(byte));
    return file;
  }

 private:
  std::filesystem::path path_;
};

/// All bytes of a file.
inline std::vector<std::uint8_t> file_bytes(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace cframefs::test
