// The chunk files of a sparse frame that is being changed: new ones under numbers that no file has or had since the
// writer came, dead ones removed once neither the frame on disk nor a state that is read names them (SparseStates).
//
// Entries that share a file are refused, for what replaces one of them would remove the other.
//
// Thread safety: one thread. Ownership: borrows the file operations and the directory. Errors: io; unsupported where no
// number is left, or files are shared.
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
  SparseChunks(FileOps& files, int directory, std::shared_ptr<SparseStates> states)
      : files_(files), directory_(directory), states_(std::move(states)) {
    states_->join();
  }
  ~SparseChunks() { states_->leave(); }
  SparseChunks(const SparseChunks&) = delete;
  SparseChunks& operator=(const SparseChunks&) = delete;

  /// A state to come, for which write() then writes; or the one that is there when the writer comes.
  SparseStates::State begin_state() { return states_->begin_state(); }

  /// Writes the pending chunks into files of their own and appends what the index is to say of each to `entries`.
  /// Returns what the header is to give as the sum of the lengths of all chunk files of the state to come.
  Result<std::uint64_t> write(const FrameContainer& committed, const PendingChanges& pending,
                              std::vector<std::pair<std::int64_t, std::int64_t>>& entries, SparseStates::Number state);
  /// The last error was that of a sync.
  bool sync_failed() const { return sync_failed_; }

  /// The state that the files were written for is the frame's.
  void keep();
  /// It is durable: removes what it, and states before it, do without, if no other state that is read names it.
  void delete_obsolete();
  /// Removes all chunk files that neither the committed state nor one that is read refers to: those that a crash left.
  Result<void> remove_unreferenced(const FrameContainer& committed);

  /// Removes, on destruction, files that were written and not kept.
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
  Result<void> look_around(const FrameContainer& committed);
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
  const int directory_;
  const std::shared_ptr<SparseStates> states_;
  bool looked_ = false;
  mode_t mode_ = 0600;  // of new files: that of the index, as their owner
  uid_t user_ = 0;
  gid_t group_ = 0;
  std::set<std::int64_t> taken_;  // numbers of files that were there
  std::int64_t next_ = 0;         // lower ones are not given out
  std::uint64_t surplus_ = 0;     // by which the committed state's sum was given as too high

  // For the state to come, until keep(); then of the state that is there, until delete_obsolete().
  SparseStates::Number state_ = 0;
  std::vector<std::int64_t> written_;
  std::vector<SparseStates::DeadFile> obsolete_;
  std::uint64_t killed_bytes_ = 0;
  std::uint64_t next_surplus_ = 0;
  bool sync_failed_ = false;
};

}  // namespace cframefs::frame
