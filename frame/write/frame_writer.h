// Changes a frame: chunks replaced, appended, dropped, metalayers set; then commit(), which makes all of it or nothing
// of it the frame's new state.
//
// What store(), resize() and the metalayer calls are told is held in memory (pending_bytes() tells how much). commit()
// writes it behind the frame's end, where no reader looks, then switches to it with one write of the header's fields
// (frame/doc/commit-protocol.md section 1). Nothing that the header reaches is overwritten before that. What cannot be
// switched to so (the last chunk goes, the header's length changes) becomes a new file beside, renamed over the old
// one. Of a sparse frame, chunks become files of new numbers, and the new index takes the place of the old one so.
//
// States: after a failed sync nothing is known of what is on disk, so every later commit() fails until the frame is
// opened again. After any other error what is pending is still pending, the disk holds the committed state, and
// commit() can be tried again.
//
// Thread safety: one thread at a time. Ownership: owns its descriptor of the frame; borrows the file operations and
// `dir`, which must outlive it. Readers share container(), which stays readable for as long as they hold it.
// Errors: unsupported (the frame cannot be written safely), stale (somebody else changed the frame; the disk is left
// alone), invalid (what no frame can hold), io, corruption.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/chunk_encoder.h"
#include "frame/cframe/frame_container.h"
#include "frame/cframe/frame_encoding.h"
#include "frame/cframe/index_cache.h"
#include "frame/cframe/index_encoder.h"
#include "frame/write/pending_changes.h"
#include "frame/write/sparse_chunks.h"

namespace cframefs::frame {

class AdvisoryLock;
class BufferedAppender;

enum class Durability : std::uint8_t {
  ordered,  // after a crash: the state before or the state after, whole
  durable,  // and once commit() has answered: the state after
};

struct WriterOptions {
  /// The file was made just now and nothing of it or of its name was ever synced: until the first durable commit it
  /// need not survive a crash, so ordered commits do not wait for the disk.
  bool fresh = false;
  /// Chunks will be stored: a frame whose codec or filters cannot be encoded with, or lose bits, is refused.
  bool stores_chunks = true;
  /// How long to wait for a lock that somebody else holds.
  std::chrono::milliseconds lock_timeout{5000};
  /// No other program may have the frame open for writing, or hold a lock on it: for what makes a new file of it.
  bool alone = false;
  /// Until stop_staying_open() it holds a lock that keeps writers out that want to be alone.
  bool stays_open = false;
  /// Where one writer after another opens the same sparse frame: so that the later one lets the states be that are
  /// read since the earlier one's time. Null: it does not know of these.
  std::shared_ptr<SparseRegistry> sparse_registry = nullptr;
};

class FrameWriter {
 public:
  /// Opens the frame at `path` beneath `dir` to change it. Nothing is written before the first commit.
  static Result<std::unique_ptr<FrameWriter>> open(FileOps& files, int dir, const std::string& path,
                                                   std::shared_ptr<IndexCache> cache,
                                                   const WriterOptions& options = {});
  /// The same of a frame that the caller has open, perhaps with O_PATH: its file, or the directory of a sparse one.
  /// `name`: where it lies in `dir`.
  static Result<std::unique_ptr<FrameWriter>> open(FileOps& files, int dir, const std::string& name,
                                                   const std::shared_ptr<const Descriptor>& frame,
                                                   std::shared_ptr<IndexCache> cache,
                                                   const WriterOptions& options = {});
  ~FrameWriter();
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;

  /// As committed.
  const FrameParameters& parameters() const { return container_->parameters(); }
  /// The committed state, to read from. Another object after each commit.
  std::shared_ptr<const Container> container() const { return container_; }
  /// The file that holds it, of a sparse frame its index; another one after a commit that made a new file.
  std::shared_ptr<const Descriptor> file() const { return file_; }
  /// What the frame's name leads to: the file, or the directory of a sparse frame.
  std::shared_ptr<const Descriptor> entry() const { return directory_ ? directory_ : file_; }

  // What is pending is included:
  std::uint64_t nbytes() const { return pending_.nbytes(); }
  std::int64_t chunk_count() const { return pending_.chunk_count(); }
  std::int32_t chunksize() const { return pending_.chunksize(); }

  /// Bytes of encoded chunks that wait for a commit.
  std::uint64_t pending_bytes() const { return pending_.bytes(); }
  bool has_changes() const;

  /// Replaces a chunk, or appends it if `chunk` is chunk_count(). All but the last have chunksize() bytes; a last one
  /// that is short must be stored again, whole, before a commit that has chunks behind it.
  Result<void> store(ChunkNumber chunk, codec::EncodedChunk encoded);
  /// Chunks become zeros, however many: a run costs as much as one chunk. REQUIRES: 0 <= begin <= end <= chunk_count().
  void store_zeros(ChunkNumber begin, ChunkNumber end);
  /// Longer: zero chunks, which take 8 bytes of index each. Shorter: chunks go. A stored chunk whose length changes
  /// with it (the last one, before or after) must be stored again before the commit.
  Result<void> resize(std::uint64_t nbytes);

  /// Metalayers have names of 1 to 31 bytes; at most 16 of each kind.
  Result<void> set_vlmetalayer(const std::string& name, ByteView content);
  /// The same of a content that is a chunk already, which the caller has checked.
  Result<void> set_stored_vlmetalayer(const std::string& name, std::vector<std::uint8_t> chunk);
  Result<void> remove_vlmetalayer(const std::string& name);
  Result<void> set_metalayer(const std::string& name, ByteView content);

  /// Puts another empty frame in the place of this one, whole or not at all, with the metalayers of this one. Forgets
  /// what is pending. REQUIRES: it is empty and has a name. stale, as in commit(): it is not empty any more.
  Result<void> replace_empty(const NewFrame& wanted);

  /// A frame that is being written beside this one, to take its place whole. No other program commits to this one
  /// meanwhile. Goes away with its file if it does not take the place. Must not outlive the writer that made it.
  struct Beside;
  Result<std::unique_ptr<Beside>> make_beside(const NewFrame& wanted);
  /// Puts it in the place of this frame. What `next.writer` has committed is the frame then; this writer has no use any
  /// more. REQUIRES: it has a name and is contiguous.
  Result<void> give_place_to(Beside& next);

  /// Called by commit() with the locks held, after its look at the frame and before it changes anything; an error ends
  /// the commit.
  using BeforeChange = std::function<Result<void>()>;
  /// Makes what is pending the frame's state; in a new file if more of the old one is dead than alive. `durable` also
  /// makes earlier ordered commits so.
  Result<void> commit(Durability durability, const BeforeChange& before_change = nullptr);
  /// Whether the filesystem has room for a new file of what is live, as far as it tells.
  bool has_room_for_copy();
  /// Called before something is done that takes bytes away from programs that read an older state, or the committed one
  /// if that has chunks and the next one has none.
  void on_overwrite(std::function<void()> tell) { on_overwrite_ = std::move(tell); }
  /// Gives the dead bytes of the committed state back to the filesystem as holes; the state is made durable before.
  /// Returns how many bytes that were: none if another program holds a lock on the frame, or may read an older state
  /// and shows it by a lock. Programs that read an older state without a lock find zeros in the place of its chunks: so
  /// this is for disks that are full. What is pending stays.
  Result<std::uint64_t> punch_dead_bytes();
  /// From now on a lock that another program holds is waited for so long. `past_frame`: and then the frame's own lock
  /// is done without, as at the end of a mount; the side-car's is not.
  void wait_for_locks(std::chrono::milliseconds patience, bool past_frame = false);
  /// Lets go of the lock of WriterOptions::stays_open.
  void stop_staying_open();
  /// Forgets what is pending.
  void abandon();
  /// A sync failed: every commit fails until the frame is opened again.
  bool has_failed() const { return failed_; }

  /// Cuts off what a commit that did not finish left behind the frame, which the next commit would do anyway. Returns
  /// how many bytes that were.
  Result<std::uint64_t> cut_tail();
  /// Writes what is live, with what is pending, into a new file and renames it over the frame. A sparse frame has
  /// nothing dead but files that a crash left.
  Result<void> compact();
  /// Bytes of the frame that nothing refers to any more: measured when first asked for (measure_dead_bytes()), counted
  /// from then on.
  std::uint64_t dead_bytes();

  /// The frame was renamed: where it is now.
  void moved(int dir, std::string path);
  /// The frame was unlinked: commits go on, to the file without a name. Of a sparse frame nothing is left: they are
  /// stale.
  void unlinked() { has_name_ = false; }

 private:
  struct Next;

  FrameWriter(FileOps& files, int dir, std::string path, std::shared_ptr<IndexCache> cache, WriterOptions options);

  Result<void> open_files(int frame);
  Result<void> load(int frame);
  int entry_dir() const;
  std::string entry_name() const;
  Result<void> commit_locked(Durability durability, bool anew, const BeforeChange& before_change);
  Result<AdvisoryLock> lock();
  Result<void> check_unchanged() const;
  Result<void> check_header() const;
  Result<void> check_named() const;
  Result<std::uint64_t> cut_tail_locked();
  bool needs_new_file() const;
  bool can_be_emptied() const;
  bool metalayers_need_new_file() const;
  Result<std::vector<Metalayer>> stored_vlmetalayers() const;
  Result<void> change_vlmetalayers(const std::function<Result<void>(std::vector<Metalayer>&)>& change);
  Result<NewFrame> with_all_metalayers(NewFrame wanted) const;
  Result<std::vector<std::uint8_t>> next_trailer() const;
  std::vector<std::uint8_t> next_header() const;
  bool next_has_vlmetalayers() const;

  Result<void> encode_index(Next& next, IndexEncoder& index) const;
  Result<void> write_behind(Next& next);
  Result<void> finish_image(Next& next, std::uint64_t cbytes, IndexEncoder& index, BufferedAppender& out) const;
  Result<void> open_next(Next& next) const;
  Result<void> append_or_compact();
  Result<void> empty_in_place();
  Result<void> append_and_switch();
  Result<void> publish_header(const Next& next);
  Result<void> rewrite_file();
  void adopt(Next next);
  Result<void> sync_all();

  FileOps& files_;
  int dir_;
  std::string path_;
  const std::shared_ptr<IndexCache> cache_;
  WriterOptions options_;
  bool has_name_ = true;

  std::shared_ptr<const Descriptor> directory_;  // of a sparse frame; null: a contiguous one
  std::unique_ptr<SparseChunks> sparse_;         // its chunk files

  // The committed state.
  std::shared_ptr<const Descriptor> file_;
  std::vector<std::uint8_t> header_;  // as it is on disk
  bool is_blank_ = false;             // a file of 0 bytes, which stands for an empty frame: there is no header on disk
  std::shared_ptr<const FrameContainer> container_;
  std::vector<IndexEncoder::Block> index_blocks_;  // those of its index that this writer made, from the first on

  // What is pending.
  PendingChanges pending_;
  std::optional<std::vector<Metalayer>> vlmetalayers_;  // contents are chunks
  std::optional<std::vector<Metalayer>> metalayers_;

  bool unsynced_ = false;    // the switch to the committed state may not be durable
  bool ever_synced_ = true;  // something in the file is
  bool failed_ = false;      // a sync failed
  bool past_frame_lock_ = false;
  std::function<void()> on_overwrite_ = [] {};
  bool may_compact_ = true;         // no other program has the frame open
  std::uint64_t compact_from_ = 0;  // dead bytes with which a compaction that failed is tried again
  std::optional<std::uint64_t> dead_bytes_;
};

/// Writes the live parts of the frame at `path` beneath `dir` into a new file and renames it over the frame, if no lock
/// is in the way.
Result<void> compact(FileOps& files, int dir, const std::string& path, std::shared_ptr<IndexCache> cache,
                     const WriterOptions& options = {});

}  // namespace cframefs::frame
