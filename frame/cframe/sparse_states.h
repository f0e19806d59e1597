// Which states of a sparse frame are still read, and the chunk files that wait until no such state names them.
//
// A chunk file belongs to the states from the one that it was written for to the last one before the switch that left
// it out. The containers of a state hold it; while one does, the state's files stay. Programs that read without a
// writer (open_path()) hold a shared lock on the directory instead, and while one does, all files stay.
//
// Files are removed by the commits of a writer, and when the last writer goes; what is held then goes with the last
// container that holds it. What cannot be removed even then, because another program reads or writes the frame, stays
// until the frame is compacted. A file that is not the one that died (another program has given its number out) is left
// alone.
//
// Thread safety: all members may be called at once. Lock order: leaving_, the frame's lock, removing_, mutex_.
// Ownership: shared by the writers and the holds; borrows the file operations. Errors: none; a file that cannot be
// removed takes space.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "codec/base/mutex.h"
#include "frame/io/byte_source.h"
#include "frame/io/file_ops.h"

namespace cframefs::frame {

class SparseStates : public std::enable_shared_from_this<SparseStates> {
 public:
  /// Counts the states that writers have found and made, from 1.
  using Number = std::uint64_t;

  /// For the containers of a state.
  struct State {
    Number number = 0;
    std::shared_ptr<const void> hold;
  };

  /// A chunk file that the frame does without.
  struct DeadFile {
    std::int64_t number = 0;  // that its name is made of
    Number first = 0;         // state that names it; 0: any before, too
    Number last = 0;
    FileVersion identity;
  };

  SparseStates(FileOps& files, std::shared_ptr<const Descriptor> directory)
      : files_(files), directory_(std::move(directory)) {}

  /// One writer more, which has to leave().
  void join();
  /// One less. With the last one what no state names is removed, from then on whenever a state ends.
  void leave();

  /// The next state. One that never becomes the frame's does no harm.
  State begin_state();
  /// The frame has this state, which files of these numbers were written for.
  void add_files(Number state, const std::vector<std::int64_t>& numbers);
  /// The state that the file was written for; 0: one from before the first writer came.
  Number first_of(std::int64_t number) const;
  /// To be removed as soon as no state names them. REQUIRES: the state that does without them is durable.
  void add_dead(std::vector<DeadFile> dead);
  /// Removes what no state names. REQUIRES: the caller holds the frame's lock.
  void delete_obsolete();
  /// The numbers of files that wait.
  std::set<std::int64_t> waiting() const;

  /// Calls `remove` unless another program reads the frame; keeps it from beginning to meanwhile.
  void unless_read(const std::function<void()>& remove);

 private:
  class Hold;

  void ended(Number state);
  void remove_with_lock();
  std::vector<DeadFile> take_unnamed();
  void remove(const DeadFile& dead) const;

  FileOps& files_;
  const std::shared_ptr<const Descriptor> directory_;

  codec::Mutex leaving_;   // held while files are removed that no writer waits for
  codec::Mutex removing_;  // held while files are removed
  mutable codec::Mutex mutex_;
  Number last_ GUARDED_BY(mutex_) = 0;
  std::set<Number> held_ GUARDED_BY(mutex_);
  std::map<std::int64_t, Number> first_ GUARDED_BY(mutex_);  // of files that live
  std::vector<DeadFile> dead_ GUARDED_BY(mutex_);
  unsigned writers_ GUARDED_BY(mutex_) = 0;
};

/// The states of all sparse frames that a program writes: a writer that comes while a state of an earlier one is read
/// is told of it. Thread safety: all members may be called at once.
class SparseRegistry {
 public:
  /// REQUIRES: the same file operations in all calls.
  std::shared_ptr<SparseStates> states_of(FileOps& files, const std::shared_ptr<const Descriptor>& directory);

 private:
  codec::Mutex mutex_;
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<SparseStates>> states_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::frame
