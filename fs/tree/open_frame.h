// The state that all handles of an open frame share: the file that is read, and the write-back while a program writes
// and until nothing waits to be committed.
//
// Thread safety: internally synchronised. Lock order: its mutex is taken after those of a WriteBack, and no lock is
// taken under it. Ownership: handles share it; the last one closes the file.
#pragma once

#include <memory>
#include <utility>

#include "codec/base/mutex.h"
#include "frame/io/byte_source.h"
#include "fs/read/frame_snapshot.h"

namespace cframefs::fs {

class WriteBack;

class OpenFrame {
 public:
  explicit OpenFrame(std::shared_ptr<const frame::Descriptor> file) : file_(std::move(file)) {}

  std::shared_ptr<const frame::Descriptor> file() const {
    codec::MutexLock lock(mutex_);
    return file_;
  }
  /// Returns nullptr if no program has the frame open for writing and nothing waits to be committed.
  std::shared_ptr<WriteBack> write_back() const {
    codec::MutexLock lock(mutex_);
    return write_back_;
  }
  /// Sets the file and the snapshot that a commit has left.
  void committed(std::shared_ptr<const frame::Descriptor> file, std::shared_ptr<const FrameSnapshot> snapshot) {
    codec::MutexLock lock(mutex_);
    file_ = std::move(file);
    snapshot_ = std::move(snapshot);
  }

  /// Keeps `guard` alive until the last handle is closed.
  void hold_until_close(std::shared_ptr<const void> guard) {
    codec::MutexLock lock(mutex_);
    guard_ = std::move(guard);
  }

  /// Adds a writer to the write-back and returns it. Returns nullptr if there is no write-back.
  std::shared_ptr<WriteBack> add_writer() {
    codec::MutexLock lock(mutex_);
    if (write_back_) ++writers_;
    return write_back_;
  }
  /// Adds the first writer. REQUIRES: there is no write-back. `pin`: kept alive as long as the write-back.
  void first_writer(std::shared_ptr<WriteBack> write_back, std::shared_ptr<const void> pin) {
    codec::MutexLock lock(mutex_);
    write_back_ = std::move(write_back);
    pin_ = std::move(pin);
    writers_ = 1;
  }
  bool is_last_writer() const {
    codec::MutexLock lock(mutex_);
    return writers_ == 1;
  }
  bool has_writers() const {
    codec::MutexLock lock(mutex_);
    return writers_ > 0;
  }
  /// Removes a writer. The write-back stays, even without writers, until end_writing().
  void remove_writer() {
    codec::MutexLock lock(mutex_);
    --writers_;
  }
  /// Drops the write-back, unless there is a writer. Returns whether it did.
  bool end_writing() {
    std::shared_ptr<WriteBack> write_back;  // this one and `pin` are destroyed without the lock
    std::shared_ptr<const void> pin;
    codec::MutexLock lock(mutex_);
    if (writers_ > 0) return false;
    write_back_.swap(write_back);
    pin_.swap(pin);
    return true;
  }

  /// Held while the first writer opens its write-back. Taken before MountContext::changes.
  codec::Mutex opening;
  /// Held while the last writer leaves and its write-back is closed or kept. Taken before the locks of layers.
  codec::Mutex leaving;

 private:
  mutable codec::Mutex mutex_;
  std::shared_ptr<const void> guard_ GUARDED_BY(mutex_);  // declared first, so that it is destroyed last
  std::shared_ptr<const frame::Descriptor> file_ GUARDED_BY(mutex_);
  std::shared_ptr<const FrameSnapshot> snapshot_ GUARDED_BY(mutex_);  // keeps a writer's last snapshot alive
  std::shared_ptr<WriteBack> write_back_ GUARDED_BY(mutex_);
  std::shared_ptr<const void> pin_ GUARDED_BY(mutex_);
  unsigned writers_ GUARDED_BY(mutex_) = 0;
};

}  // namespace cframefs::fs
