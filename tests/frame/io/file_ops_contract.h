// The trees that the contract of the file operations is tested on: a directory with two files, once for each
// implementation, and the fixture of the tests.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "frame/io/file_ops.h"
#include "tests/support/temp_dir.h"

namespace cframefs::test {

using Bytes = std::vector<std::uint8_t>;

inline const std::string kFile = "file.b2f";
inline const std::string kOther = "other.b2f";
/// Paths that lead out of the directory.
inline const std::vector<std::string> kOutside = {"..",          "../secret", "/",           "/etc/passwd",
                                                  "./../secret", "../",       "../" + kFile, "deep/../../secret"};
Bytes content_of_file();
Bytes content_of_other();

/// A directory with the two files, seen through an implementation.
struct Tree {
  TempDir temp;                           // with the tree, if it is on disk, in "inside"; "secret" is outside
  std::unique_ptr<frame::FileOps> owned;  // null: the system's
  frame::FileOps* files = nullptr;
  frame::Descriptor root;
};

struct Implementation {
  const char* name;
  std::unique_ptr<Tree> (*make)();
};
std::ostream& operator<<(std::ostream& out, const Implementation& implementation);
inline std::string name_of(const testing::TestParamInfo<Implementation>& instance) {
  return instance.param.name;
}

/// Those of directories on a disk.
const std::vector<Implementation>& on_disk();
/// Those, and a disk that is simulated.
std::vector<Implementation> changing();
/// Those that refuse changes.
const std::vector<Implementation>& read_only();
std::vector<Implementation> all();

class FileOpsContract : public testing::TestWithParam<Implementation> {
 protected:
  FileOpsContract() : tree_(GetParam().make()), files_(*tree_->files) {}

  frame::OpenFile dir() const { return tree_->root.handle(); }
  frame::Descriptor open(const std::string& name, int flags = O_RDONLY) {
    const auto file = files_.open_at(dir(), name, flags);
    EXPECT_TRUE(file) << name << ": " << codec::describe(file.error());
    return {files_, file.value_or(frame::OpenFile{})};
  }
  /// Returns the errno of a failure, 0 of a success. Closes what a success has opened.
  int error_of(const codec::Result<frame::OpenFile>& opened) {
    if (!opened) return opened.error().sys;
    files_.close(*opened);
    return 0;
  }
  template <class T>
  static int error_of(const codec::Result<T>& done) {
    return done ? 0 : done.error().sys;
  }
  int opening(const std::string& path, int flags = O_RDONLY) { return error_of(files_.open_at(dir(), path, flags)); }
  Bytes content(frame::OpenFile file, std::uint64_t at = 0, std::size_t most = std::size_t{1} << 20);
  Bytes content(const std::string& name) { return content(open(name).handle()); }
  std::multiset<std::string> names();
  /// Returns the version once no further change can hide behind it.
  frame::FileVersion settled(frame::OpenFile file);

  std::unique_ptr<Tree> tree_;
  frame::FileOps& files_;
};

}  // namespace cframefs::test
