// What the handles of one open frame share: the file that is read, and the write-back while somebody writes.
//
// Thread safety: internally synchronised. Lock order: its mutex is taken after those of a WriteBack, and nothing is
// taken under it. Ownership: handles share it; the last one closes the file.
#pragma once

#include <memory>
#include <utility>

#include "codec/mutex.h"
#include "frame/byte_source.h"
#include "fs/generation.h"

namespace cframefs::fs {

class WriteBack;

class OpenFrame {
 public:
  explicit OpenFrame(std::shared_ptr<const frame::Descriptor> file) : file_(std::move(file)) {}

  std::shared_ptr<const frame::Descriptor> file() const {
    codec::MutexLock lock(mutex_);
    return file_;
  }
  /// Null if nobody has the frame open for writing.
  std::shared_ptr<WriteBack> write_back() const {
    codec::MutexLock lock(mutex_);
    return write_back_;
  }
  /// A commit has left this state.
  void committed(std::shared_ptr<const frame::Descriptor> file, std::shared_ptr<const Generation> generation) {
    codec::MutexLock lock(mutex_);
    file_ = std::move(file);
    generation_ = std::move(generation);
  }

  /// Held until the last handle is gone.
  void keep(std::shared_ptr<const void> guard) {
    codec::MutexLock lock(mutex_);
    guard_ = std::move(guard);
  }

  /// One more writer, if there is a write-back already.
  std::shared_ptr<WriteBack> join_writers() {
    codec::MutexLock lock(mutex_);
    if (write_back_) ++writers_;
    return write_back_;
  }
  /// The first writer. REQUIRES: there is none.
  void first_writer(std::shared_ptr<WriteBack> write_back) {
    codec::MutexLock lock(mutex_);
    write_back_ = std::move(write_back);
    writers_ = 1;
  }
  bool is_last_writer() const {
    codec::MutexLock lock(mutex_);
    return writers_ == 1;
  }
  /// One writer less; gives the write-back away with the last one.
  std::shared_ptr<WriteBack> leave_writers() {
    codec::MutexLock lock(mutex_);
    return --writers_ == 0 ? std::exchange(write_back_, nullptr) : nullptr;
  }

 private:
  mutable codec::Mutex mutex_;
  std::shared_ptr<const void> guard_ GUARDED_BY(mutex_);  // the first, so that it goes last
  std::shared_ptr<const frame::Descriptor> file_ GUARDED_BY(mutex_);
  std::shared_ptr<const Generation> generation_ GUARDED_BY(mutex_);  // keeps the last state of a writer alive
  std::shared_ptr<WriteBack> write_back_ GUARDED_BY(mutex_);
  unsigned writers_ GUARDED_BY(mutex_) = 0;
};

}  // namespace cframefs::fs
