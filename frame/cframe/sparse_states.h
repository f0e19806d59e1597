// Tracks which states of a sparse frame are still read, and removes the chunk files that no such state refers to.
//
// A state is the frame after one commit. A chunk file belongs to all states from the one that it was written for to the
// last one before the commit that dropped it. The containers of a state own a hold; the state's files stay until the
// last hold is gone. Programs that read without a writer (open_path()) hold a shared lock on the directory instead, and
// all files stay while such a lock is held.
//
// Files are removed by the commits of a writer and when the last writer leaves. Files that are held then are removed
// with the last container that holds them, or, as its thread may have no right to that, by the thread that calls
// SparseRegistry::remove_deferred(). If another program reads or writes the frame at that time, they stay until
// the frame is compacted. A file is left alone if it is not the one that died: another program may have reused its
// number.
//
// Thread safety: all members may be called concurrently. Lock order: leaving_, the frame's lock, removing_, mutex_;
// none of them is held with that of SparseRegistry. Ownership: shared by the writers and the holds; borrows the file
// operations. Errors: none; a file that cannot be removed takes space.
#pragma once

#include <cstddef>
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

class SparseRegistry;

class SparseStates : public std::enable_shared_from_this<SparseStates> {
 public:
  /// Number of a state that a writer of this process opened or committed, from 1.
  using Number = std::uint64_t;

  /// A state, and the hold for its containers.
  struct State {
    Number number = 0;
    std::shared_ptr<const void> hold;
  };

  /// A chunk file that the frame no longer refers to.
  struct DeadFile {
    std::int64_t number = 0;  // the number in its name
    Number first = 0;         // first state that refers to it; 0: a state before the first writer
    Number last = 0;          // last state that refers to it
    FileVersion identity;
  };

  /// `registry`: where removals may be deferred; may be null.
  SparseStates(FileOps& files, std::shared_ptr<const Descriptor> directory, std::weak_ptr<SparseRegistry> registry = {})
      : files_(files), directory_(std::move(directory)), registry_(std::move(registry)) {}

  /// Registers a writer, which must call leave().
  void join();
  /// Unregisters a writer. If no writer is left, removes the dead files that no held state refers to, now and whenever
  /// a state ends.
  void leave();

  /// Returns a new state. A state that is never committed does no harm.
  State begin_state();
  /// Records that the files of these numbers were written for this state.
  void add_files(Number state, const std::vector<std::int64_t>& numbers);
  /// Called if the frame does not get that state.
  void forget_files(const std::vector<std::int64_t>& numbers);
  /// Takes the memory for the next `count` files of add_dead().
  void reserve_dead(std::size_t count);
  /// Returns the state that the file was written for; 0: a state before the first writer.
  Number first_of(std::int64_t number) const;
  /// Queues files for removal. REQUIRES: the state that no longer refers to them is durable.
  void add_dead(std::vector<DeadFile> dead);
  /// Removes the queued files that no held state refers to, at most `most` of them. Returns whether there were
  /// any and they are removed.
  /// REQUIRES: the caller holds the frame's lock.
  bool delete_obsolete(std::size_t most = SIZE_MAX);
  /// Returns the numbers of the queued files.
  std::set<std::int64_t> waiting() const;

  /// Calls `remove` unless another program reads the frame, and keeps programs from opening it during the call.
  void unless_read(const std::function<void()>& remove);

 private:
  friend class SparseRegistry;
  class Hold;

  void ended(Number state);
  void remove_with_lock() noexcept;
  bool has_dead_and_no_writer() const;
  bool remove_portion() REQUIRES(leaving_);
  std::vector<DeadFile> take_unnamed(std::size_t most);
  void remove(const DeadFile& dead) const;

  FileOps& files_;
  const std::shared_ptr<const Descriptor> directory_;
  const std::weak_ptr<SparseRegistry> registry_;
  // Guarded by the mutex of the registry.
  std::shared_ptr<SparseStates> next_deferred_;
  bool is_deferred_ = false;

  codec::Mutex leaving_;   // held in remove_with_lock(), when files are removed without a writer
  codec::Mutex removing_;  // held while files are removed
  mutable codec::Mutex mutex_;
  Number last_ GUARDED_BY(mutex_) = 0;
  std::set<Number> held_ GUARDED_BY(mutex_);
  std::map<std::int64_t, Number> first_ GUARDED_BY(mutex_);  // of files that the frame refers to
  std::vector<DeadFile> dead_ GUARDED_BY(mutex_);
  unsigned writers_ GUARDED_BY(mutex_) = 0;
};

/// The SparseStates of all sparse frames that the process writes, so that a new writer of a frame knows the states that
/// are still held. Thread safety: all members may be called concurrently. Its mutex is held during a call of `wake`.
class SparseRegistry : public std::enable_shared_from_this<SparseRegistry> {
 public:
  /// Returns the states of the frame in `directory`, which all its writers share. REQUIRES: the same file operations in
  /// all calls.
  std::shared_ptr<SparseStates> states_of(FileOps& files, const std::shared_ptr<const Descriptor>& directory);

  /// From now on the end of a state that no writer follows removes no files. It calls `wake` in its place, which must
  /// have another thread call remove_deferred(): a thread that only decodes may end a state, and not change files.
  void defer_removals(std::function<void()> wake) EXCLUDES(mutex_);
  /// Removes what stop_deferring() would, and goes on deferring.
  void remove_deferred() EXCLUDES(mutex_);
  bool has_deferred() const EXCLUDES(mutex_);
  /// Removes the files whose removal was deferred. `wake` is not called again.
  void stop_deferring() EXCLUDES(mutex_);

 private:
  friend class SparseStates;
  /// Returns whether the removal is deferred.
  bool defer(std::shared_ptr<SparseStates> states) EXCLUDES(mutex_);
  std::shared_ptr<SparseStates> take_deferred() EXCLUDES(mutex_);

  mutable codec::Mutex mutex_;
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<SparseStates>> states_ GUARDED_BY(mutex_);
  std::function<void()> wake_ GUARDED_BY(mutex_);  // null: removals are not deferred
  // A list through next_deferred_: the end of a state must not fail for lack of memory.
  std::shared_ptr<SparseStates> first_deferred_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::frame
