// The chunk files of a sparse frame that is being changed: new ones under numbers that no file has, dead ones removed
// once nothing on disk refers to them.
//
// Readers open chunk files by name when they read, so files that the last commit killed stay until the next one.
// Entries that share a file are refused, for what replaces one of them would remove the other.
//
// Thread safety: one thread. Ownership: borrows the file operations and the folder. Errors: io; unsupported where no
// number is left, or files are shared.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frame/file_ops.h"
#include "frame/frame_container.h"
#include "frame/pending_changes.h"

namespace cframefs::frame {

class SparseChunks {
 public:
  SparseChunks(FileOps& files, int folder) : files_(files), folder_(folder) {}

  /// Writes the pending chunks into files of their own and appends what the index is to say of each to `entries`.
  /// Returns what the header is to give as the sum of the lengths of all chunk files of the state to come.
  Result<std::uint64_t> write(const FrameContainer& committed, const PendingChanges& pending,
                              std::vector<std::pair<std::int64_t, std::int64_t>>& entries, bool durable);
  /// The last error was that of a sync.
  bool sync_failed() const { return sync_failed_; }

  /// The state that the files were written for is the frame's.
  void keep();
  /// Removes what commits before the last one have killed. To be called once the last one is durable.
  void remove_dead();
  /// Removes what the last one has killed, too: there are no readers any more that could want it.
  void remove_all_dead();
  /// Removes all chunk files that the committed state does not refer to: those that a crash left.
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
  Result<void> check_unshared(const FrameContainer& committed) const;
  std::int64_t free_number();
  Result<void> write_file(std::int64_t number, ByteView bytes, bool durable);
  Result<void> kill(const FrameContainer& committed, std::int64_t chunk);
  Result<void> kill_replaced(const FrameContainer& committed, const PendingChanges& pending);
  Result<std::uint64_t> with_room_for_numbers(const FrameContainer& committed, const PendingChanges& pending,
                                              std::uint64_t sum, std::int64_t highest) const;
  void remove(const std::vector<std::int64_t>& numbers);
  void discard();

  FileOps& files_;
  const int folder_;
  bool looked_ = false;
  mode_t mode_ = 0600;                 // of new files: that of the index
  std::set<std::int64_t> numbers_;     // of files that are there
  std::int64_t search_from_ = 0;       // no lower number is free
  std::vector<std::int64_t> written_;  // for the state to come
  std::vector<std::int64_t> killed_;   // by the state to come
  std::uint64_t killed_bytes_ = 0;
  std::vector<std::int64_t> dead_;       // killed by the last commit
  std::vector<std::int64_t> very_dead_;  // killed by commits before it
  bool sync_failed_ = false;
};

}  // namespace cframefs::frame
