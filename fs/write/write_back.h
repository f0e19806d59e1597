// One frame that is open for writing: what programs have written and the frame does not contain yet, and its commits.
//
//   programs' view  =  dirty layer  over  layer being committed  over  committed frame (a FrameSnapshot)
//
// Writes go into the dirty layer: whole chunks of uncompressed bytes, and patches of chunks that are written in part. A
// commit takes the dirty layer, encodes its chunks on all workers and has the frame's writer publish the new version.
// Programs continue during the commit, into a new dirty layer. If the commit fails, its layer is merged beneath what
// has been written since: nothing is lost, and the next commit tries again. A read sees the programs' view at one
// instant.
//
// A chunk that has been filled in order from its start is encoded at once, while more data arrive, and a stream of such
// chunks is committed in the background repeatedly: so the fsync or close at its end has little left to do, and the
// same few buffers serve the whole stream. Writers that outpace the encoders encode chunks themselves (back-pressure).
//
// The version (stat) of the frame on disk is watched. If another program has changed the frame, a clean file is
// reloaded. A dirty one becomes stale: writes, commits and reads of bytes that are gone fail with ESTALE, and the frame
// is not touched any more. A program that opens the frame afterwards gets a new WriteBack.
//
// States: Standing and Progress (write_back_state.h), NewArray and Parameters below, ArrayHead (array_head.h); whether
// the frame has failed or is fresh is the state of its writer (frame/write/writer_state.h). Changes by the mount that
// contain no written data are in mount_changes.h, copies of chunks in chunk_copy.h.
//
// Lock order: MountContext::changes, then commit_mutex_ (one commit at a time; the writer), then mutex_ (the layers),
// then what WriteBackHost::committed() takes (the open frame's, the node's, the node table's). mutex_ is held while a
// chunk is read to be changed in part, but never during encoding or disk writes. Thread safety: all members may be
// called concurrently. Ownership: shared by the open frame and the flusher; must not outlive the mount's caches.
// Errors: those of frame; stale; EFBIG.
#pragma once

#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "codec/base/mutex.h"
#include "codec/base/turns.h"
#include "frame/write/frame_replacement.h"
#include "frame/write/frame_writer.h"
#include "fs/read/frame_snapshot.h"
#include "fs/read/read_path.h"
#include "fs/write/array_changes.h"
#include "fs/write/array_head.h"
#include "fs/write/change_permit.h"
#include "fs/write/chunk_encoders.h"
#include "fs/write/copy_memory.h"
#include "fs/write/dirty_layer.h"
#include "fs/write/write_back_host.h"
#include "fs/write/write_back_state.h"

namespace cframefs::fs {

/// State that all write-backs of a mount share.
struct WriteBackShared {
  frame::FileOps& files;
  ReadPath& read_path;
  ChunkEncoders& encoders;
  WritingStatistics& statistics;
  DedupLogger& once;
  std::shared_ptr<frame::IndexCache> index_cache;
  std::uint64_t dirty_limit = 0;              // bound on dirty_bytes
  std::atomic<std::uint64_t> dirty_bytes{0};  // memory of chunks and patches that are not committed
  frame::Checksums checksums = frame::Checksums::on;
  std::chrono::milliseconds interval{5000};  // bound on the age of uncommitted data
  std::chrono::milliseconds lock_timeout{5000};
  std::function<std::chrono::steady_clock::time_point()> clock = std::chrono::steady_clock::now;
  std::atomic<bool> waits_for_lock{false};  // a request is waiting for a lock for up to lock_timeout
  codec::Turns copy_turns{std::max(1U, std::thread::hardware_concurrency())};  // limits writers of copied chunks
  CopyMemory copy_memory{};                                                    // memory of chunks that copies hold
  const std::shared_ptr<frame::SparseRegistry> sparse_registry = std::make_shared<frame::SparseRegistry>();
};

/// The location of a frame: a name in an open directory, which is found even if a parent directory is renamed.
struct FrameLocation {
  std::shared_ptr<const frame::Descriptor> directory;
  std::string name;
  std::string path;  // relative to the source, for messages
};

/// What the mount has just written into a new file.
struct NewContent {
  std::vector<std::uint8_t> image;  // the whole content; empty: unknown
  frame::FileVersion version;       // of the file when it had got this content
};

/// A frame to be opened for writing.
struct FrameToWrite {
  FrameLocation place;
  std::shared_ptr<const frame::Descriptor> frame;  // the file at `place`, or the directory of a sparse frame
  /// Neither its content nor its name was ever synced: frame::WriterState::fresh.
  bool fresh = false;
  /// `frame` is open for reading and writing.
  bool is_open_for_writing = false;
  /// Of a frame that is open for writing.
  NewContent written = {};
  /// Its parameters are placeholders: the host chooses them when the first data are known.
  bool has_placeholders = false;
  /// It has the name of an array that shows as a .npy file: if it is empty, what a program writes may make it one.
  bool may_become_array = false;
};

/// How a commit waits for locks that other programs hold.
enum class CommitWait : std::uint8_t {
  none,
  lock,      // for lock_timeout, but briefly if another request is waiting: not all service threads may wait
  past_lock  // briefly, and then commits without the frame's own lock: there will be no other attempt
};

enum class CommitExtent : std::uint8_t {
  all,
  complete,  // without the last chunk if it is growing: a stream would encode it twice
};

/// What WriteBack::refresh() is called before.
enum class RefreshFor : std::uint8_t {
  look,    // a read or a stat
  change,  // a change by a program, which is lost if it lies over a state that another program has replaced
};

/// Identifies the handle that makes a change; null: unknown.
using Changer = const void*;

/// What is known of a write-back at one instant without much work.
struct WriteBackStatus {
  std::uint64_t size = 0;
  std::optional<std::chrono::steady_clock::time_point> oldest_dirty;  // time of the oldest uncommitted write
  bool is_clean = true;        // nothing waits for a commit, and no commit is in progress, which could fail
  bool is_waiting = false;     // data wait for a commit that is still possible
  bool is_committing = false;  // a commit, or another change by the mount, is in progress
  bool is_stale = false;       // another program has changed the frame while there were uncommitted data
};

/// Uncommitted data.
struct Uncommitted {
  std::uint64_t bytes = 0;   // uncompressed, at most
  std::uint64_t memory = 0;  // of what no commit has taken yet
  bool has_name = true;      // false: the frame was removed, so that no program would miss the data
};

class WriteBack {
 public:
  /// Error unsupported: the frame cannot be written.
  static codec::Result<std::shared_ptr<WriteBack>> open(WriteBackShared& shared, std::unique_ptr<WriteBackHost> host,
                                                        const FrameToWrite& frame);
  ~WriteBack();
  WriteBack(const WriteBack&) = delete;
  WriteBack& operator=(const WriteBack&) = delete;

  WriteBackStatus status();
  /// Returns the time of the last write if there are uncommitted data.
  std::optional<struct timespec> dirty_since_write();
  /// Returns the committed version.
  std::shared_ptr<const FrameSnapshot> snapshot();
  /// Calls `at` with the committed snapshot and the file version of the last committed(). Neither changes until `at`
  /// returns; `at` may take the locks that committed() takes.
  void inspect(
      const std::function<void(const std::shared_ptr<const FrameSnapshot>&, const frame::FileVersion& file)>& at);
  /// Returns whether the last commit has left this file version, or a commit of written data or another change of the
  /// file by the mount is in progress.
  bool owns(const frame::FileVersion& identity);
  /// Reloads a clean file that another program has changed. While a change by the mount may be changing the file,
  /// `look` does nothing; `change` waits for the end of that change if the file is clean and has another content.
  /// Error stale: the file is dirty.
  codec::Result<void> refresh(RefreshFor reason = RefreshFor::look);
  /// Writes `bytes` at `place`; none: at the end. Returns the offset. `by`: the handle, for check_whole().
  codec::Result<std::uint64_t> write(std::optional<std::uint64_t> place, codec::ByteView bytes,
                                     ChangePermit& permit = free_permit(), Changer by = nullptr);
  /// Called before the kernel writes back a page at `at`, in any order: if an array was emptied, waits for the write of
  /// its new header, which must come before the bytes behind it.
  void wait_for_head(std::uint64_t at);
  /// `by`: the handle, for check_whole().
  codec::Result<void> resize(std::uint64_t size, Changer by = nullptr);
  /// Returns an error if written data cannot be committed. invalid: the last row of an array is incomplete. With `by`,
  /// only if that handle, or an unknown one, made it so: a row that another handle is writing is no failure of `by`;
  /// and also if `by` made a new array of more rows than the header says that it wrote: the file is not the one
  /// written.
  codec::Result<void> check_whole(Changer by = nullptr);
  /// Returns true once after the array header has changed since programs read it.
  bool take_new_head();
  /// Performs fallocate(2).
  codec::Result<void> allocate(int mode, std::uint64_t at, std::uint64_t length);
  /// `note`: called with the snapshot that committed bytes are read from.
  codec::Result<void> read(std::uint64_t at, std::uint64_t length, Reply& reply,
                           const std::function<void(const std::shared_ptr<const FrameSnapshot>&)>& note);

  codec::Result<void> commit(frame::Durability durability, CommitExtent extent = CommitExtent::all,
                             CommitWait wait = CommitWait::none);
  /// Commits without a program that gets the result: the next commit() reports lost data. EAGAIN: another thread
  /// commits. `opens_again`: calls open_again() first.
  codec::Result<void> background_commit(CommitExtent extent, bool opens_again = false);
  /// Reopens the frame after a failed sync, after which no commit is possible. EAGAIN: another thread commits.
  /// REQUIRES: no program that has seen the failure has the frame open for writing.
  codec::Result<void> open_again();
  Uncommitted uncommitted();
  /// Discards uncommitted data and returns whether there were any. Returns nullopt if `may` returns false. `may` is
  /// called when no program can change the file, so that data written in between stay.
  std::optional<bool> discard(const std::function<bool()>& may);
  /// Ends writing: releases the writer's claim on the frame at once, however long this object is kept. The write-back
  /// is stale from then on, and follows no change.
  void close();

 private:
  friend class ChunkCopy;
  friend class CommitPause;
  friend class MountChanges;

  struct Segment {
    enum class Source : std::uint8_t { zeros, held, stored } source = Source::zeros;
    std::uint64_t begin = 0;
    std::uint64_t length = 0;
    const std::uint8_t* bytes = nullptr;  // of `held`
  };
  /// Where the parameters of the frame's chunks come from. The first data make them `fixed`; so does a copy of chunks,
  /// or a new array in place of the frame.
  enum class Parameters : std::uint8_t {
    fixed,           // the frame has them
    chosen_by_host,  // the host chooses them
    defaults,        // defaults_: the frame has no chunk size, because it was always empty
  };
  /// Whether a layer is another array than what lies below it.
  ///
  ///   none --begin_new_array()--> in_dirty --begin_commit()--> in_commit --finish_commit()--> none
  ///    ^                           |    ^                          |
  ///    +---- forget_new_array() ---+    +---- the commit failed ---+
  enum class NewArray : std::uint8_t {
    none,
    in_dirty,   // dirty_ is another array than the layer below
    in_commit,  // committing_ is another array than snapshot_
  };
  /// The input of a commit: copied under mutex_, then used without a lock.
  struct Batch {
    DirtyLayer layer;
    std::shared_ptr<const FrameSnapshot> snapshot;
  };

  WriteBack(WriteBackShared& shared, std::unique_ptr<WriteBackHost> host, const FrameToWrite& frame);

  codec::Result<void> open_writer(const std::shared_ptr<const frame::Descriptor>& frame, bool fresh,
                                  bool is_open_for_writing = false, codec::ByteView image = {});
  codec::Result<frame::FileVersion> identity_on_disk() const REQUIRES(mutex_);
  /// Returns the version of a file that is in the state of writer_. If another program has changed it since, a version
  /// that no file has, so that the next refresh() follows that change. `known`: a version in which the file is known to
  /// be in that state; may be null. REQUIRES: commit_mutex_.
  codec::Result<frame::FileVersion> own_version(const frame::Descriptor& file,
                                                const frame::FileVersion* known = nullptr) const;
  bool has_same_content(const frame::FileVersion& disk) const REQUIRES(mutex_);
  /// Returns whether another program may have changed the file since `snapshot` was the newest state. Versions that
  /// this write-back has replaced still exist: only another program can have overwritten bytes.
  bool is_changed_by_others(const std::shared_ptr<const FrameSnapshot>& snapshot) REQUIRES(mutex_);
  codec::Result<void> reload();
  /// REQUIRES: commit_mutex_.
  codec::Result<void> reload_held();
  codec::Result<void> make_room(std::uint64_t bytes);
  /// Returns false if the size is the same, or if truncating has removed everything that was to be committed.
  codec::Result<bool> change_size(std::uint64_t size, Changer by);
  void chunk_filled(const DirtyLayer::Chunk& chunk) REQUIRES(mutex_);
  codec::Result<void> check_usable() REQUIRES(mutex_);
  /// Returns an error if another program's change has removed the bytes of the committed version.
  codec::Result<void> check_readable() REQUIRES(mutex_);
  std::uint64_t size_below() const REQUIRES(mutex_);
  std::uint64_t dirty_bytes();
  /// Updates the times of a file whose size a program has set to the size that it already has.
  void touch();
  void note_dirty() REQUIRES(mutex_);
  std::uint64_t most_at_once();
  codec::Result<std::uint64_t> write_part_of(std::optional<std::uint64_t> place, codec::ByteView bytes,
                                             ChangePermit& permit, Changer by);
  codec::Result<void> check_chunk(std::uint64_t length) const;
  codec::Result<std::uint64_t> write_locked(std::uint64_t place, codec::ByteView bytes,
                                            ChangePermit& permit = free_permit()) REQUIRES(mutex_);
  /// Returns whether there are data to commit besides those that are being committed.
  bool is_dirty() const REQUIRES(mutex_) {
    return new_array_ == NewArray::in_dirty || dirty_.differs_from(size_below());
  }
  /// Makes an array of an empty file with the name of one, if a write of `bytes` at `at` begins one that can be stored.
  /// Returns whether it did; write_new_array() follows.
  bool becomes_array(std::uint64_t at, codec::ByteView bytes) REQUIRES(mutex_);
  /// Turns the file into the array of a .npy file that begins with `bytes`. Error invalid: no array can hold it.
  codec::Result<void> begin_new_array(codec::ByteView bytes) REQUIRES(mutex_);
  codec::Result<void> replace_array(codec::ByteView bytes) REQUIRES(mutex_);
  void log_once(const char* what, codec::Error why) REQUIRES(mutex_);
  void forget_new_array() REQUIRES(mutex_);
  codec::Result<std::uint64_t> write_array(std::uint64_t at, codec::ByteView bytes) REQUIRES(mutex_);
  codec::Result<std::uint64_t> write_array_part(std::uint64_t at, codec::ByteView bytes) REQUIRES(mutex_);
  codec::Result<std::uint64_t> write_new_array(codec::ByteView bytes) REQUIRES(mutex_);
  codec::Result<void> check_rows() REQUIRES(mutex_);
  void stop_awaiting_head() REQUIRES(mutex_);
  codec::Result<std::uint64_t> write_behind_head(std::uint64_t at, codec::ByteView bytes, std::uint64_t head)
      REQUIRES(mutex_);
  codec::Result<void> write_part(std::int64_t number, std::uint64_t from, codec::ByteView bytes, ChangePermit& permit)
      REQUIRES(mutex_);
  codec::Result<DirtyChunk*> chunk_to_write(std::int64_t number, std::uint64_t from, std::uint64_t to) REQUIRES(mutex_);
  codec::Result<DirtyChunk*> assemble(std::int64_t number) REQUIRES(mutex_);
  codec::Result<void> check_room(std::uint64_t at, std::uint64_t length);
  bool stores_zeros(std::int64_t begin, std::int64_t end) const REQUIRES(mutex_);
  bool shows_zeros(std::int64_t begin, std::int64_t end) const REQUIRES(mutex_);
  /// A range of bytes to zero: within one chunk, or a run of whole ones.
  struct ZeroedPart {
    std::uint64_t at = 0;
    std::uint64_t end = 0;
    std::int64_t first = 0;   // chunk
    std::int64_t behind = 0;  // the chunk after the last one
    bool is_run = false;
  };
  std::vector<ZeroedPart> parts_to_zero(std::uint64_t at, std::uint64_t end) const REQUIRES(mutex_);
  codec::Result<bool> zero(std::uint64_t at, std::uint64_t length) REQUIRES(mutex_);
  codec::Result<bool> allocate_locked(int mode, std::uint64_t at, std::uint64_t length);
  codec::Result<void> check_size(std::uint64_t size) const REQUIRES(mutex_);
  /// Returns the sources of the programs' view of [at, at + length). REQUIRES: the range ends within the file.
  class SegmentList;
  std::vector<Segment> segments(std::uint64_t at, std::uint64_t length) const REQUIRES(mutex_);
  Buffer copy_head(std::uint64_t at, std::uint64_t length) REQUIRES(mutex_);
  codec::Result<void> copy_view(std::uint64_t at, codec::ByteSpan out) REQUIRES(mutex_);
  DirtyLayer::Chunk new_chunk(std::uint64_t size) const;

  codec::Result<bool> begin_commit(CommitExtent extent);
  /// Called before the file or its times change. Does nothing if the change has already begun.
  codec::Result<void> begin_change();
  /// Commits the writer; on a full disk punches dead bytes of the frame and tries once more.
  /// `after_change`: frame::CommitHooks.
  codec::Result<void> commit_writer(frame::Durability durability, ChangePermit& permit = free_permit(),
                                    const std::function<codec::Result<void>()>& after_change = nullptr);
  /// Commits a truncation alone, so that its room can be used by data written after it. For a full disk.
  codec::Result<void> commit_cut();
  void give_back_room();
  /// Has readers of the committed version repeat their read if its bytes are overwritten or punched.
  void watch_overwrites();
  codec::Result<void> write_out();
  codec::Result<void> choose_parameters();
  codec::Result<void> remake(const frame::NewFrame& wanted);
  void wait_until_copied() REQUIRES(mutex_);
  codec::Result<void> store_chunks(const Batch& batch);
  codec::Result<void> store_array(const Batch& batch, const ArrayChanges& array);
  codec::Result<void> store_new_array(const Batch& batch, const ArrayChanges& array);
  codec::Result<void> put_new_array_in_place(frame::Durability durability);
  static void store_zeros(frame::FrameWriter& to, const frame::ChunkIntervals& zeros);
  codec::Result<void> store_in_order(frame::FrameWriter& to, const codec::EncodeParameters& parameters,
                                     std::vector<ChunkToEncode> chunks, std::uint64_t chunksize);
  /// Returns the chunk size of a dirty layer in bytes.
  std::uint64_t layer_unit() const REQUIRES(mutex_);
  void defer_tail(DirtyLayer& layer, std::uint64_t below, CommitExtent extent) REQUIRES(mutex_);
  void note_head(std::uint64_t size_before) REQUIRES(mutex_);
  codec::Result<void> commit_patches_first(const Batch& batch, std::vector<ChunkToEncode>& chunks);
  codec::Result<void> commit_some(frame::Durability durability, CommitExtent extent, CommitWait wait);
  /// Runs `work` with the wait for locks set to `wait`.
  codec::Result<void> waiting(CommitWait wait, const std::function<codec::Result<void>()>& work);
  codec::Result<void> commit_held(frame::Durability durability, CommitExtent extent);
  codec::Result<void> open_failed_again();
  /// Sets the modification time of the backing file to that of the last write in the commit.
  void stamp_last_write();
  std::vector<ChunkToEncode> chunks_of(const Batch& batch);
  ChunkToEncode patched_chunk(const Batch& batch, std::int64_t number, std::shared_ptr<const ChunkPatches> patches);
  void drop_unreadable_patches(const codec::Error& error, DirtyLayer& layer) REQUIRES(mutex_);
  /// Commits the writer and updates the counters.
  codec::Result<void> commit_counted(const std::function<codec::Result<void>()>& commit);
  void count_dead_bytes(std::uint64_t dead);
  codec::Result<void> finish_commit(codec::Result<void> done);
  /// Takes the writer's version as the one that is read from then on. Throws std::bad_alloc; nothing has changed then.
  codec::Result<void> adopt_state(bool own, const frame::FileVersion* known = nullptr) REQUIRES(mutex_);
  /// As adopt_state(), but waits until there is memory: the version is on disk already, and no other is known there.
  codec::Result<void> adopt_in_memory(bool own) REQUIRES(mutex_);
  /// Adopts the version that a commit has left.
  codec::Result<void> adopt_commit() REQUIRES(mutex_);
  /// Adopts the writer's version after a failed commit, if that is another one than the snapshot's: the error came
  /// after the switch.
  void adopt_if_switched(const codec::Error& error) REQUIRES(mutex_);
  /// Adopts the file version after a failed commit, or after room was given back: the content is the same.
  void note_own_change() REQUIRES(mutex_);
  void end_change() REQUIRES(mutex_);
  /// Adopts a file version with the same content.
  void note_identity(const frame::FileVersion& disk) REQUIRES(mutex_);
  void refresh_identity(bool was_right) REQUIRES(mutex_);

  WriteBackShared& shared_;
  const std::unique_ptr<WriteBackHost> host_;
  const bool may_become_array_;

  // Held by every thread that uses the writer. Not a codec::Mutex: CommitPause holds it beyond a function.
  std::mutex commit_mutex_;
  FrameLocation place_;                         // commit_mutex_
  std::unique_ptr<frame::FrameWriter> writer_;  // commit_mutex_
  std::unique_ptr<frame::FrameBeside> beside_;  // commit_mutex_; a new array that is being committed
  codec::EncodeParameters encode_;              // commit_mutex_
  frame::NewFrame defaults_;                    // commit_mutex_
  // Facts that are independent of the states.
  Parameters parameters_from_ = Parameters::fixed;  // commit_mutex_
  std::atomic<bool> has_name_{true};                // changes with commit_mutex_ held
  bool has_committed_ = false;                      // commit_mutex_; a dead byte may be this mount's
  // Of the current commit.
  bool partly_committed_ = false;             // commit_mutex_; a part of it is in the frame
  bool batch_time_shown_ = false;             // commit_mutex_; a program has seen batch_write_
  struct timespec batch_write_ {};            // commit_mutex_; time of the last write in the current commit
  std::uint64_t searched_dead_ = 0;           // commit_mutex_; dead bytes at the last search for them
  std::uint64_t counted_dead_ = 0;            // commit_mutex_; this frame's part of the mount's counter
  std::atomic<std::int64_t> unreadable_{-1};  // chunk that the current commit needs and cannot read

  mutable codec::Mutex mutex_;
  DirtyLayer dirty_ GUARDED_BY(mutex_);
  std::optional<DirtyLayer> committing_ GUARDED_BY(mutex_);
  WriteBackState state_ GUARDED_BY(mutex_);
  NewArray new_array_ GUARDED_BY(mutex_) = NewArray::none;
  bool write_time_shown_ GUARDED_BY(mutex_) = false;  // a program has seen last_write_
  ArrayHead head_ GUARDED_BY(mutex_);
  codec::CondVar copied_;  // a copy or a commit has ended
  codec::CondVar head_came_;
  std::shared_ptr<const FrameSnapshot> snapshot_ GUARDED_BY(mutex_);
  std::optional<ArrayChanges> array_ GUARDED_BY(mutex_);        // set if the file is an array, or becomes one
  std::optional<std::uint64_t> named_size_ GUARDED_BY(mutex_);  // of a new array, by the header written last
  Changer changed_by_ GUARDED_BY(mutex_) = nullptr;             // handle that last changed the array's size or last row
  std::shared_ptr<const frame::Descriptor> file_ GUARDED_BY(mutex_);   // of a sparse frame, its index
  std::shared_ptr<const frame::Descriptor> entry_ GUARDED_BY(mutex_);  // file_, or the directory of a sparse frame
  frame::FileVersion identity_ GUARDED_BY(mutex_);
  std::uint64_t foreign_states_ GUARDED_BY(mutex_) = 0;  // counts reloads, and overwritten committed bytes
  std::optional<codec::Error> lost_ GUARDED_BY(mutex_);  // why data were lost; not reported yet
  std::int64_t last_touched_ GUARDED_BY(mutex_) = -1;    // chunk
  std::uint64_t filled_bytes_ GUARDED_BY(mutex_) = 0;    // of dirty chunks that were filled in order
  // None: before the first data, and for arrays. The parameters never change while a chunk is encoded early.
  std::optional<codec::EncodeParameters> early_parameters_ GUARDED_BY(mutex_);
  struct timespec last_write_ GUARDED_BY(mutex_) {};
  using Time = std::chrono::steady_clock::time_point;
  std::optional<Time> oldest_ GUARDED_BY(mutex_);            // oldest write in dirty_
  std::optional<Time> committing_since_ GUARDED_BY(mutex_);  // oldest write in committing_
};

}  // namespace cframefs::fs
