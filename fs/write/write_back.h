// One frame that is open for writing: what programs have written and is not in the frame yet, and how it gets there.
//
//   programs' view  =  dirty layer  over  layer being committed  over  committed frame (a FrameSnapshot)
//
// Writes go into the dirty layer: whole chunks of plain bytes, and patches of chunks that are covered in part. A commit
// takes the dirty layer as it is, encodes its chunks on all workers and has the frame's writer switch to the new state;
// meanwhile programs go on, into a new dirty layer. If the commit fails, what it took goes back beneath what has been
// written since: nothing is lost, and the next commit tries again. A read sees the programs' view of one instant.
//
// A chunk that has been filled from one end to the other is encoded at once, while more data arrives, and a stream of
// them is committed in the background again and again: so the fsync or close at its end has little left to do, and the
// same few buffers serve the whole stream. Who fills chunks faster than they are encoded encodes some himself.
//
// The frame on disk is watched by its identity (stat): if somebody else has changed it, a clean file follows, and a
// dirty one is stale from then on: writes, commits and reads of what is gone fail with ESTALE, and the disk is left
// alone. Who opens the frame then gets a write-back of his own.
//
// Lock order: Filesystem::changes_, then commit_mutex_ (one commit at a time; the writer), then mutex_ (the layers),
// then what the committed() callback takes (the open frame's, the node's, the node table's). mutex_ is held while a
// chunk is read to be changed in part, but never while one is encoded or the disk is waited for. Thread safety: all
// members may be called at once. Ownership: shared by the open frame and the flusher; must not outlive the mount's
// caches. Errors: those of frame; stale; EFBIG.
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
#include "frame/write/frame_writer.h"
#include "fs/read/frame_snapshot.h"
#include "fs/read/read_path.h"
#include "fs/write/array_changes.h"
#include "fs/write/change_permit.h"
#include "fs/write/chunk_encoders.h"
#include "fs/write/copy_memory.h"
#include "fs/write/dirty_layer.h"

namespace cframefs::fs {

/// What all write-backs of a mount share.
struct WriteBackShared {
  frame::FileOps& files;
  ReadPath& read_path;
  ChunkEncoders& encoders;
  Statistics& statistics;
  DedupLogger& once;
  std::shared_ptr<frame::IndexCache> index_cache;
  std::function<std::uint64_t()> next_snapshot;
  std::uint64_t dirty_limit = 0;              // bound on dirty_bytes
  std::atomic<std::uint64_t> dirty_bytes{0};  // plain chunks that are not committed
  std::function<void()> wake;                 // tells the flusher that there is something for it to do
  /// Commits the largest files until no more than `most` bytes are dirty. What cannot be committed is passed over.
  std::function<void(std::uint64_t most)> make_room;
  /// What programs see of a frame at `path`.
  std::function<codec::Result<std::shared_ptr<const frame::FlatView>>(std::shared_ptr<const frame::Container>,
                                                                      const std::string&)>
      view_of;
  std::chrono::milliseconds interval{5000};  // bound on the age of what is not committed
  std::chrono::milliseconds lock_timeout{5000};
  std::function<std::chrono::steady_clock::time_point()> clock = std::chrono::steady_clock::now;
  std::function<void()> became_dirty = [] {};  // called when a clean file has something to commit, under its lock
  std::atomic<bool> waits_for_lock{false};     // one program's request does so with all its patience
  codec::Turns copy_turns{std::max(1U, std::thread::hardware_concurrency())};  // to write chunks that are in memory
  CopyMemory copy_memory{};                                                    // of chunks that copies hold
  const std::shared_ptr<frame::SparseRegistry> sparse_registry = std::make_shared<frame::SparseRegistry>();
};

/// Where a frame lies: a name in an open directory, so that it is found whatever happens to the directories above.
struct FrameLocation {
  std::shared_ptr<const frame::Descriptor> directory;
  std::string name;
  std::string path;  // beneath the source, for messages
};

class WriteBack {
 public:
  /// A new state, or a new file that holds the same state.
  struct Committed {
    std::shared_ptr<const FrameSnapshot> snapshot;
    std::shared_ptr<const frame::Descriptor> file;
    frame::FileVersion before;  // none: it was only opened
    frame::FileVersion after;
    bool own = false;               // not what somebody else has made of it
    bool preamble_changed = false;  // what stands in front of the chunks' bytes has changed with the rest
    bool gave_up = false;           // the state is the same, but something that programs wrote is lost
  };
  using OnCommitted = std::function<void(const Committed&)>;

  /// What is to be decided when the first data of a new frame is known.
  using Choose = std::function<frame::NewFrame(codec::ByteView first_chunk)>;

  /// Whether a commit waits for locks that other programs hold.
  enum class Wait : std::uint8_t {
    none,
    lock,      // for seconds, if no other request does; while one waits the others must not take all service threads
    past_lock  // for a moment, and then goes on without the frame's own lock: there will be no other attempt
  };

  enum class Extent : std::uint8_t {
    all,
    complete,  // not the last chunk, if it is still growing: a stream would encode it twice
  };

  /// unsupported: the frame cannot be written. `frame`: what lies at the place: its file, or its directory. `fresh`:
  /// made just now. `choose`: parameters of a frame that is empty and was made with preliminary ones; may be empty.
  static codec::Result<std::shared_ptr<WriteBack>> open(WriteBackShared& shared, FrameLocation place,
                                                        const std::shared_ptr<const frame::Descriptor>& frame,
                                                        bool fresh, Choose choose, OnCommitted committed);
  ~WriteBack();
  WriteBack(const WriteBack&) = delete;
  WriteBack& operator=(const WriteBack&) = delete;

  std::uint64_t size();
  /// Uncommitted data; if so, when a program wrote last.
  std::optional<struct timespec> dirty_since_write();
  /// When the oldest of it was written.
  std::optional<std::chrono::steady_clock::time_point> oldest_dirty();
  std::uint64_t dirty_bytes();
  /// Nothing waits for a commit, and none is under way that could leave something.
  bool is_clean();
  /// The committed state.
  std::shared_ptr<const FrameSnapshot> snapshot();
  /// The same, and the file's identity as the last committed() told it. Both stay what they are until `at` returns,
  /// which may take what committed() takes.
  using Look =
      std::function<void(const std::shared_ptr<const FrameSnapshot>& snapshot, const frame::FileVersion& file)>;
  void inspect(const Look& at);
  /// Whether a file in this state is what the last commit has left, or is being changed by a commit right now.
  bool owns(const frame::FileVersion& identity);
  bool is_committing();
  /// Whether a commit is under way, or a sync of what is committed already.
  bool has_commit_under_way() { return !std::unique_lock(commit_mutex_, std::try_to_lock).owns_lock(); }
  /// Until it has ended.
  void wait_for_commit() { const std::lock_guard commits(commit_mutex_); }
  /// Follows what somebody else did to a clean file. stale: it is dirty.
  codec::Result<void> refresh();
  /// Whether somebody else has changed the frame under what was written and not committed.
  bool is_stale();

  /// Tells apart what programs change by, a handle; null: it is not known.
  using Changer = const void*;
  /// `place`: where the bytes go; none: to the end. Returns where they went. `by`: as that of check_whole().
  codec::Result<std::uint64_t> write(std::optional<std::uint64_t> place, codec::ByteView bytes,
                                     ChangePermit& permit = free_permit(), Changer by = nullptr);
  /// Before a write that the kernel makes of its pages, in any order: if an array was emptied, its new header has to
  /// come before what lies behind it.
  void wait_for_head(std::uint64_t at);
  /// `by`: as that of check_whole().
  codec::Result<void> resize(std::uint64_t size, Changer by = nullptr);
  /// A program has set the size that the file has already: its times move all the same.
  void touch();
  /// A program has set the time of modification, as utimensat(2): a later commit of what was written before keeps it.
  void note_times(const struct timespec& modified);
  /// Whether everything that is written can be committed. invalid: the last row of an array is not whole. `by`: and
  /// that was left so by this one, or by one that is not known. What others are about to complete is no failure of its.
  codec::Result<void> check_whole(Changer by = nullptr);
  /// The header in front has changed since programs read it; told once.
  bool take_new_head();
  /// fallocate(2).
  codec::Result<void> allocate(int mode, std::uint64_t at, std::uint64_t length);
  /// `note`: is told of the snapshot that stored bytes come from.
  codec::Result<void> read(std::uint64_t at, std::uint64_t length, Reply& reply,
                           const std::function<void(const std::shared_ptr<const FrameSnapshot>&)>& note);

  codec::Result<void> commit(frame::Durability durability, Extent extent = Extent::all, Wait wait = Wait::none);
  /// No program asks how it went: what was given up is told by the next commit(). EAGAIN: another thread commits.
  /// `opens_again`: as open_again().
  codec::Result<void> background_commit(Extent extent, bool opens_again = false);
  /// After a sync that failed nothing can be committed until the frame is opened again, which this does. EAGAIN:
  /// another thread commits. REQUIRES: no program that was told of it has the frame open for writing.
  codec::Result<void> open_again();
  /// Whether something waits for a commit that can still be made.
  bool is_waiting();
  /// Plain bytes of what is not committed, at most, and whether the frame has a name in which they would be missed.
  struct Uncommitted {
    std::uint64_t bytes = 0;
    bool has_name = true;
  };
  Uncommitted uncommitted();
  /// Chunks as another frame stores them, whole ones but for the last.
  struct CopiedChunks {
    frame::NewFrame like;  // how that frame is made
    std::vector<codec::EncodedChunk> chunks;
    std::uint64_t nbytes = 0;
  };
  /// Puts them in the place of the bytes from `at` on, and commits. A frame that is empty and has no parameters of its
  /// own is made like theirs if it `may_remake`. False: nothing was done, for they do not fit there.
  codec::Result<bool> store_copied(std::uint64_t at, CopiedChunks copied, bool may_remake, ChangePermit& permit);
  /// Commits with a change of metalayers that `change` makes.
  codec::Result<void> commit_metadata(const std::function<codec::Result<void>(frame::FrameWriter&)>& change,
                                      ChangePermit& permit);
  /// After the last writer has gone: gives back what commits have left behind, if that is worth it.
  void compact_if_wasteful();
  /// Makes a change of the mount's own to the file that leaves its content alone (mode, owner, times).
  codec::Result<void> change_file(const std::function<codec::Result<void>()>& change);
  /// Forgets what is not committed, and answers whether there was something; unless it `may` not be, which is asked
  /// when no program can change anything. So what a program that comes meanwhile has written stays.
  std::optional<bool> discard(const std::function<bool()>& may);
  /// No program writes through this any more: other programs are told so at once, however long it is kept. It is stale
  /// from then on, and follows no change.
  void close();

  /// Holds commits off while the frame's name is changed.
  class Pause {
   public:
    explicit Pause(std::shared_ptr<WriteBack> file);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    /// The frame has this name now.
    void moved(FrameLocation place);
    /// The frame has no name any more.
    void unlinked();

   private:
    std::shared_ptr<WriteBack> file_;
    std::unique_lock<std::mutex> commits_;
    bool was_right_ = false;
  };

 private:
  struct Segment {
    enum class Source : std::uint8_t { zeros, held, stored } source = Source::zeros;
    std::uint64_t begin = 0;
    std::uint64_t length = 0;
    const std::uint8_t* bytes = nullptr;  // of `held`
  };
  /// Whether what is under way while busy_ has begun to change the file.
  ///
  ///   possibly --begin_commit()--> not_yet --begin_change()--> known_file or foreign_file --end_change()--> possibly
  ///                                   ^                                      |
  ///                                   +------ a part of it is adopted -------+
  enum class Changing : std::uint8_t {
    possibly,      // what does not begin with begin_commit() does not tell
    not_yet,       // chunks are encoded, a lock is waited for: a change of the file is another program's
    known_file,    // of the state that was known: the file's new stamps are the commit's
    foreign_file,  // of another one: another program has changed the file, and its header is as it was
  };
  /// What a commit works on: taken under mutex_, then its own.
  struct Batch {
    DirtyLayer layer;
    std::shared_ptr<const FrameSnapshot> snapshot;
  };

  WriteBack(WriteBackShared& shared, FrameLocation place, Choose choose, OnCommitted committed);

  codec::Result<void> open_writer(const std::shared_ptr<const frame::Descriptor>& frame, bool fresh);
  codec::Result<frame::FileVersion> identity_on_disk() const REQUIRES(mutex_);
  bool has_same_content(const frame::FileVersion& disk) const REQUIRES(mutex_);
  codec::Result<void> reload();
  /// REQUIRES: commit_mutex_.
  codec::Result<void> reload_held();
  codec::Result<void> make_room(std::uint64_t bytes);
  /// False: the file has that size already, or what was written is taken back by it and nothing is left to commit.
  codec::Result<bool> change_size(std::uint64_t size, Changer by);
  void chunk_filled(const DirtyLayer::Chunk& chunk) REQUIRES(mutex_);
  codec::Result<void> check_usable() REQUIRES(mutex_);
  /// Whether the file's stamps may be moving because of what is under way here.
  bool may_change_file() const REQUIRES(mutex_) { return busy_ && changing_ != Changing::not_yet; }
  /// Whether what was there before somebody else's change still is.
  codec::Result<void> check_readable() REQUIRES(mutex_);
  std::uint64_t size_below() const REQUIRES(mutex_);
  void note_dirty() REQUIRES(mutex_);
  std::uint64_t most_at_once();
  codec::Result<std::uint64_t> write_part_of(std::optional<std::uint64_t> place, codec::ByteView bytes,
                                             ChangePermit& permit, Changer by);
  codec::Result<void> check_chunk(std::uint64_t length) const;
  codec::Result<std::uint64_t> write_locked(std::uint64_t place, codec::ByteView bytes,
                                            ChangePermit& permit = free_permit()) REQUIRES(mutex_);
  /// Whether there is anything to commit that is not being committed.
  bool is_dirty() const REQUIRES(mutex_) { return is_new_array_ || dirty_.differs_from(size_below()); }
  /// The file becomes the array that `bytes`, its first ones, say.
  codec::Result<void> begin_new_array(codec::ByteView bytes) REQUIRES(mutex_);
  void forget_new_array() REQUIRES(mutex_);
  codec::Result<std::uint64_t> write_array(std::uint64_t at, codec::ByteView bytes) REQUIRES(mutex_);
  codec::Result<std::uint64_t> write_array_part(std::uint64_t at, codec::ByteView bytes) REQUIRES(mutex_);
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
  codec::Result<bool> zero(std::uint64_t at, std::uint64_t length) REQUIRES(mutex_);
  codec::Result<bool> allocate_locked(int mode, std::uint64_t at, std::uint64_t length);
  codec::Result<void> check_size(std::uint64_t size) const REQUIRES(mutex_);
  /// The programs' view of [at, at + length), which must not go past its end.
  class SegmentList;
  std::vector<Segment> segments(std::uint64_t at, std::uint64_t length) const REQUIRES(mutex_);
  Buffer copy_head(std::uint64_t at, std::uint64_t length) REQUIRES(mutex_);
  codec::Result<void> copy_view(std::uint64_t at, codec::ByteSpan out) REQUIRES(mutex_);
  DirtyLayer::Chunk new_chunk(std::uint64_t size) const;

  codec::Result<bool> begin_commit(Extent extent);
  /// The file, or its times, are about to be changed for what is under way. Without effect if they have been.
  codec::Result<void> begin_change();
  /// Has the writer commit; on a full disk once more with the room that is dead in the frame.
  codec::Result<void> commit_writer(frame::Durability durability, ChangePermit& permit = free_permit());
  /// On a full disk, what was cut off makes room for what was written after that.
  codec::Result<void> commit_cut();
  void give_back_room();
  /// Programs that read while bytes of the state that they read are taken away read again.
  void tell_of_overwrites();
  codec::Result<void> write_out();
  codec::Result<void> choose_parameters();
  codec::Result<void> remake(const frame::NewFrame& wanted);
  void wait_until_copied() REQUIRES(mutex_);
  bool takes_copied(std::uint64_t at, std::uint64_t size, const CopiedChunks& copied, bool may_remake) const;
  enum class CopyStart : std::uint8_t { begun, unfit, dirty, behind };
  codec::Result<CopyStart> begin_copy(std::uint64_t at, const CopiedChunks& copied, bool may_remake);
  codec::Result<void> commit_copied(std::uint64_t at, CopiedChunks copied, ChangePermit& permit);
  void end_copy(codec::Result<void>& done, std::uint64_t end) REQUIRES(mutex_);
  codec::Result<void> store_chunks(const Batch& batch);
  codec::Result<void> store_array(const Batch& batch, const ArrayChanges& array);
  codec::Result<void> store_new_array(const Batch& batch, const ArrayChanges& array);
  codec::Result<void> put_new_array_in_place(frame::Durability durability);
  static void store_zeros(frame::FrameWriter& to, const frame::ChunkIntervals& zeros);
  codec::Result<void> store_in_order(frame::FrameWriter& to, const codec::EncodeParameters& parameters,
                                     std::vector<ChunkToEncode> chunks, std::uint64_t chunksize);
  /// Bytes of the chunks of a dirty layer.
  std::uint64_t layer_unit() const REQUIRES(mutex_);
  void defer_tail(DirtyLayer& layer, std::uint64_t below, Extent extent) REQUIRES(mutex_);
  void note_head(std::uint64_t size_before) REQUIRES(mutex_);
  codec::Result<void> commit_patches_first(const Batch& batch, std::vector<ChunkToEncode>& chunks);
  codec::Result<void> commit_some(frame::Durability durability, Extent extent, Wait wait);
  /// Runs `work`, whose commits wait so for locks.
  codec::Result<void> waiting(Wait wait, const std::function<codec::Result<void>()>& work);
  codec::Result<void> commit_held(frame::Durability durability, Extent extent);
  codec::Result<void> open_failed_again();
  /// Gives the backing file the time of the last write that the commit under way contains.
  void stamp_last_write();
  std::vector<ChunkToEncode> chunks_of(const Batch& batch);
  ChunkToEncode patched_chunk(const Batch& batch, std::int64_t number, std::shared_ptr<const ChunkPatches> patches);
  bool drop_unreadable_patches(const codec::Error& error, DirtyLayer& layer) REQUIRES(mutex_);
  /// Has the writer commit, and counts what that was.
  codec::Result<void> commit_counted(const std::function<codec::Result<void>()>& commit);
  void count_dead_bytes(std::uint64_t dead);
  codec::Result<void> finish_commit(codec::Result<void> done);
  codec::Result<void> adopt_state(bool own) REQUIRES(mutex_);
  /// The state that a commit has left.
  codec::Result<void> adopt_commit() REQUIRES(mutex_);
  /// A commit that failed, or room that was given back, may have moved the stamps of the file: the content is what it
  /// was.
  void note_own_change() REQUIRES(mutex_);
  void end_change() REQUIRES(mutex_);
  /// The content is what it was, but the file is another one to stat(2).
  void note_identity(const frame::FileVersion& disk) REQUIRES(mutex_);
  void refresh_identity(bool was_right) REQUIRES(mutex_);

  WriteBackShared& shared_;
  const OnCommitted committed_;

  // Held by whoever uses the writer. Not a codec::Mutex: Pause keeps it beyond a function.
  std::mutex commit_mutex_;
  FrameLocation place_;                                 // commit_mutex_
  std::unique_ptr<frame::FrameWriter> writer_;          // commit_mutex_
  std::unique_ptr<frame::FrameWriter::Beside> beside_;  // commit_mutex_; of a new array that is being committed
  codec::EncodeParameters encode_;                      // commit_mutex_
  Choose choose_;                                       // commit_mutex_; empty once the frame has its parameters
  bool has_name_ = true;                                // commit_mutex_
  bool has_committed_ = false;                          // commit_mutex_
  bool partly_ = false;                                 // commit_mutex_; of the commit under way a part is done
  struct timespec batch_write_ {};            // commit_mutex_; the last write that the commit under way contains
  bool batch_time_shown_ = false;             // commit_mutex_; a program has seen that time
  std::uint64_t searched_dead_ = 0;           // commit_mutex_; with so many dead bytes they were looked for last
  std::uint64_t counted_dead_ = 0;            // commit_mutex_; this frame's part of the mount's counter
  std::atomic<std::int64_t> unreadable_{-1};  // chunk that the commit under way needs to read and cannot
  bool fresh_ = false;                        // commit_mutex_; nothing of the file need survive a crash yet
  std::atomic<bool> named_{true};             // has_name_, for others

  mutable codec::Mutex mutex_;
  DirtyLayer dirty_ GUARDED_BY(mutex_);
  std::optional<DirtyLayer> committing_ GUARDED_BY(mutex_);
  bool busy_ GUARDED_BY(mutex_) = false;  // a commit, or another change of our own, is under way
  Changing changing_ GUARDED_BY(mutex_) = Changing::possibly;
  bool copying_ GUARDED_BY(mutex_) = false;  // store_copied() is at work: what programs write has to wait
  codec::CondVar copied_;
  std::shared_ptr<const FrameSnapshot> snapshot_ GUARDED_BY(mutex_);
  std::optional<ArrayChanges> array_ GUARDED_BY(mutex_);  // what snapshot_ is, if it is an array, or will be
  bool is_new_array_ GUARDED_BY(mutex_) = false;          // dirty_ is another array than the layer below
  bool commits_new_array_ GUARDED_BY(mutex_) = false;     // committing_ is another one than snapshot_
  bool awaits_array_ GUARDED_BY(mutex_) = false;  // one that cannot be emptied was, and its items are still there
  bool awaits_head_ GUARDED_BY(mutex_) = false;   // an array was emptied, and nothing was written to it since
  codec::CondVar head_came_;
  Changer changed_by_ GUARDED_BY(mutex_) = nullptr;  // the last change of an array's size, or of its last row
  bool head_was_read_ GUARDED_BY(mutex_) = true;     // since it was last told to be new
  bool new_head_ GUARDED_BY(mutex_) = false;
  std::shared_ptr<const frame::Descriptor> file_ GUARDED_BY(mutex_);
  frame::FileVersion identity_ GUARDED_BY(mutex_);
  std::uint64_t foreign_states_ GUARDED_BY(mutex_) = 0;  // that a clean file has followed, or overwritten ones
  bool stale_ GUARDED_BY(mutex_) = false;
  std::optional<codec::Error> lost_ GUARDED_BY(mutex_);  // why something written had to be given up, if not told yet
  std::int64_t last_touched_ GUARDED_BY(mutex_) = -1;    // chunk
  std::uint64_t filled_bytes_ GUARDED_BY(mutex_) = 0;    // of dirty chunks that were filled in order
  // None: not known before the first data is, or an array. They never change while a chunk is encoded early.
  std::optional<codec::EncodeParameters> early_parameters_ GUARDED_BY(mutex_);
  struct timespec last_write_ GUARDED_BY(mutex_) {};
  bool write_time_shown_ GUARDED_BY(mutex_) = false;  // a program has seen it since
  using Time = std::chrono::steady_clock::time_point;
  std::optional<Time> oldest_ GUARDED_BY(mutex_);            // of dirty_
  std::optional<Time> committing_since_ GUARDED_BY(mutex_);  // of committing_
};

}  // namespace cframefs::fs
