// Where a new file is written: on a disk, or an object that is uploaded.
//
// Each byte is written once. The writer goes on from the begin to the end and may leave gaps, which it fills later; so
// a target may pass on what it has as soon as no gap is in it.
//
// Thread safety: one thread at a time. Ownership: FileTarget borrows the file operations and the open file. Errors: io.
#pragma once

#include "frame/io/file_ops.h"

namespace cframefs::frame {

class WriteTarget {
 public:
  virtual ~WriteTarget() = default;
  /// Writes all of `from`. After an error the target must be discarded.
  virtual Result<void> write(ByteView from, FileOffset at) = 0;
  /// Starts write-back of the range, which has been written but for gaps. Best effort.
  virtual void start_writeback(FileOffset /*at*/, std::uint64_t /*length*/) {}
};

class FileTarget final : public WriteTarget {
 public:
  FileTarget(FileOps& files, OpenFile file) : files_(files), file_(file) {}

  Result<void> write(ByteView from, FileOffset at) override { return files_.pwrite(file_, from, at); }
  void start_writeback(FileOffset at, std::uint64_t length) override { files_.start_writeback(file_, at, length); }

 private:
  FileOps& files_;
  const OpenFile file_;
};

}  // namespace cframefs::frame
