// Errors that reads of a snapshot have met, until it is known that they are damage.
//
// While another program writes the file, a read may see half of a change, which looks like damage. So a read notes what
// it met, and its caller logs the notes only after a look at the file has found it unchanged; otherwise it drops them.
// A caller whose read has failed takes the notes before that look. Notes that another thread has made until then are of
// the same state. What only decoding ahead has noted waits for a read that fails.
//
// Thread safety: all members may be called concurrently.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "codec/base/error.h"
#include "codec/base/mutex.h"

namespace cframefs::fs {

class DamageNotes {
 public:
  using List = std::vector<codec::Error>;
  /// The most notes that are kept; a further one is dropped.
  static constexpr std::size_t kMost = 1000;

  void add(const codec::Error& error) {
    const codec::MutexLock lock(mutex_);
    if (notes_.size() < kMost) notes_.push_back(error);
  }
  /// Returns all notes and forgets them.
  List take() {
    const codec::MutexLock lock(mutex_);
    return std::exchange(notes_, {});
  }

 private:
  codec::Mutex mutex_;
  List notes_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
