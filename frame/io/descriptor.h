// Owns an open file. Thread safety: as a value.
#pragma once

#include <utility>

#include "frame/io/read_file_ops.h"

namespace cframefs::frame {

/// Owns an open file and closes it with the implementation that opened it. Movable.
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(ReadFileOps& files, OpenFile file) : files_(&files), file_(file) {}
  Descriptor(Descriptor&& other) noexcept : files_(other.files_), file_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      files_ = other.files_;
      file_ = other.release();
    }
    return *this;
  }
  ~Descriptor() { reset(); }

  OpenFile handle() const { return file_; }
  bool is_open() const { return file_.is_open(); }
  /// Releases ownership; the caller closes the file.
  OpenFile release() { return std::exchange(file_, OpenFile{}); }
  void reset() {
    if (file_.is_open()) files_->close(release());
  }

 private:
  ReadFileOps* files_ = nullptr;
  OpenFile file_;
};

/// Shares an open file. If there is no memory for that, the file is closed.
inline std::shared_ptr<const Descriptor> share_descriptor(ReadFileOps& files, OpenFile file) {
  Descriptor owned(files, file);
  return std::make_shared<const Descriptor>(std::move(owned));
}

}  // namespace cframefs::frame
