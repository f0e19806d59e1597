// Writes and removes the chunk files of a sparse frame during changes. New files get numbers that no file has, or had
// since the writer was opened. A dead file is removed when neither the frame on disk nor a held state refers to it
// (SparseStates).
//
// Frames whose index entries share a file are refused: replacing one of the chunks would remove the file of the other.
//
// Thread safety: one thread. Ownership: borrows the file operations and the directory. Errors: io; unsupported if no
// number is left or files are shared.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frame/cframe/frame_container.h"
#include "frame/cframe/sparse_states.h"
#include "frame/io/file_ops.h"
#include "frame/write/pending_changes.h"

namespace cframefs::frame {

class SparseChunks {
 public:
  /// `directory` must stay open.
  SparseChunks(FileOps& files, OpenFile directory, std::shared_ptr<SparseStates> states)
      : files_(files), directory_(directory), states_(std::move(states)) {
    states_->join();
  }
  ~SparseChunks() { states_->leave(); }
  SparseChunks(const SparseChunks&) = delete;
  SparseChunks& operator=(const SparseChunks&) = delete;

  /// Returns a new state: the committed one when the writer opens the frame, later the next one, for write().
  SparseStates::State begin_state() { return states_->begin_state(); }

  /// Writes each pending chunk to a new file and appends (chunk, index entry) to `entries`. Returns the cbytes field of
  /// the next header: the sum of the lengths of the next state's chunk files, or more (with_room_for_numbers()).
  Result<std::uint64_t> write(const FrameContainer& committed, const PendingChanges& pending,
                              std::vector<std::pair<std::int64_t, std::int64_t>>& entries, SparseStates::Number state);
  /// Returns true if the last error was a failed sync.
  bool sync_failed() const { return sync_failed_; }

  /// Called before the commit of the last write(): keep() then needs no memory.
  void prepare_to_keep();
  /// The caller reports that the state of the last write() is committed.
  void keep() noexcept;
  /// The caller reports that this state is durable. Removes the files that it and earlier states dropped, unless a held
  /// state refers to them.
  void delete_obsolete();
  /// Removes all chunk files that neither the committed state nor a held state refers to, for example after a crash.
  Result<void> remove_unreferenced(const FrameContainer& committed);

  /// Removes on destruction the files that were written but not kept.
  class Undo {
   public:
    explicit Undo(SparseChunks* chunks) : chunks_(chunks) {}
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;
    ~Undo() {
      if (chunks_ != nullptr) chunks_->discard();
    }

   private:
    SparseChunks* const chunks_;
  };

 private:
  Result<void> load_numbers(const FrameContainer& committed);
  Result<std::set<std::int64_t>> numbers_there() const;
  Result<void> check_unshared(const FrameContainer& committed) const;
  std::int64_t free_number();
  std::int64_t highest_number() const;
  Result<void> write_file(std::int64_t number, ByteView bytes);
  Result<void> obsolete(std::int64_t entry);
  Result<void> kill_replaced(const FrameContainer& committed, const PendingChanges& pending);
  Result<std::uint64_t> with_room_for_numbers(const FrameContainer& committed, const PendingChanges& pending,
                                              std::uint64_t sum, std::int64_t highest) const;
  void remove(const std::vector<std::int64_t>& numbers);
  void discard();

  FileOps& files_;
  const OpenFile directory_;
  const std::shared_ptr<SparseStates> states_;
  bool numbers_loaded_ = false;
  mode_t mode_ = 0600;  // new files get mode and owner of the index file
  uid_t user_ = 0;
  gid_t group_ = 0;
  std::set<std::int64_t> taken_;  // numbers of the files in the directory at the time of load_numbers()
  std::int64_t next_ = 0;         // lower numbers are not given out
  std::uint64_t surplus_ = 0;     // bytes by which cbytes of the committed state exceeds the sum of its chunk files

  // Until keep(): for the next state. Then, until delete_obsolete(): of the committed state.
  SparseStates::Number state_ = 0;
  std::vector<std::int64_t> written_;
  std::vector<SparseStates::DeadFile> obsolete_;
  std::uint64_t killed_bytes_ = 0;
  std::uint64_t next_surplus_ = 0;
  bool sync_failed_ = false;
};

}  // namespace cframefs::frame
