// Changes a frame: replaces, appends and removes chunks and sets metalayers. commit() applies all pending changes
// atomically.
//
// Its metalayers are changed by FrameMetalayers, its dead bytes by FrameSpace, and it is replaced by another frame by
// FrameReplacement, each in a header of its own.
//
// store(), resize() and the metalayer calls keep their changes in memory (pending()). commit()
// writes them after the frame's end, where no reader looks, then switches to the new state with one write of header
// fields (frame/doc/commit-protocol.md section 1). Before the switch, nothing that the header refers to is overwritten.
// A state that such a write cannot switch to (the last chunk is removed, the length of the header changes) is written
// to a new file, which is renamed over the old one. In a sparse frame, chunks become files with new numbers, and the
// new index file replaces the old one by a rename.
//
// States of the committed version (WriterState, in writer_state.h): after a failed sync the content of the disk is
// unknown, so every later commit() fails until the frame is opened again. After any other error the changes are still
// pending, the disk holds the committed state, and commit() can be tried again.
//
// Thread safety: one thread at a time. Ownership: owns its descriptor of the frame; borrows the file operations and
// `dir`, which must outlive it. Readers share container(), which stays readable as long as they hold it.
// Errors: unsupported (the frame cannot be written safely), stale (another program changed the frame; the disk is left
// alone), invalid (a state that no frame can hold), io, corruption.
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
#include "frame/write/checksums.h"
#include "frame/write/pending_changes.h"
#include "frame/write/sparse_chunks.h"
#include "frame/write/writer_state.h"

namespace cframefs::frame {

class AdvisoryLock;
class BufferedAppender;
class ReplacementFile;
class SealWriter;

enum class Durability : std::uint8_t {
  ordered,  // after a crash: the complete old state or the complete new state
  durable,  // as ordered, and after commit() has returned: the new state
};

struct WriterOptions {
  /// The file is new, and neither its content nor its name was ever synced: WriterState::fresh.
  bool fresh = false;
  /// The caller will store chunks: open() refuses a frame with a codec or filters that are lossy or have no encoder.
  bool stores_chunks = true;
  /// How long to wait for a lock that another program holds.
  std::chrono::milliseconds lock_timeout{5000};
  /// The caller needs the frame for itself, to replace its file: locking fails if another program has the frame open
  /// for writing or holds a lock on it.
  bool alone = false;
  /// The writer holds the open lock (advisory_lock.h) until stop_staying_open(): no other writer replaces the file.
  bool stays_open = false;
  /// With stays_open: open() waits while another writer holds its lock. It fails with EBUSY after lock_timeout, and
  /// with stale if that writer has replaced the file.
  bool waits_for_writers = false;
  Checksums checksums = Checksums::on;
  /// Shared by successive writers of the same sparse frame, so that a later writer keeps the states that readers opened
  /// through an earlier writer. Null: the writer does not know these states.
  std::shared_ptr<SparseRegistry> sparse_registry = nullptr;
  /// Returns true if the caller knows that the frame's directory has no entry of this name now. Null: it never knows.
  std::function<bool(const std::string& name)> lacks_entry = nullptr;
};

/// Called by a commit that has changes, with the locks held. An error ends the commit. Null: nothing is called.
struct CommitHooks {
  std::function<Result<void>()> before_change = nullptr;  // after the check for foreign changes
  std::function<Result<void>()> after_change = nullptr;   // in the new state, which no other program can follow yet
};

class FrameWriter {
 public:
  /// Opens the frame at `path` in `dir` for changes. Writes nothing before the first commit.
  static Result<std::unique_ptr<FrameWriter>> open(FileOps& files, OpenFile dir, const std::string& path,
                                                   std::shared_ptr<IndexCache> cache,
                                                   const WriterOptions& options = {});
  /// Opens a frame that the caller has open, perhaps with O_PATH. `frame`: the file, or the directory of a sparse
  /// frame. `name`: its path in `dir`.
  static Result<std::unique_ptr<FrameWriter>> open(FileOps& files, OpenFile dir, const std::string& name,
                                                   const std::shared_ptr<const Descriptor>& frame,
                                                   std::shared_ptr<IndexCache> cache,
                                                   const WriterOptions& options = {});
  /// As above, for a contiguous frame that is open for reading and writing: the writer shares the descriptor, instead
  /// of opening the file again. `image`: the whole content, if the caller has just written it; then nothing is read. If
  /// the file has another content since, commits return stale.
  static Result<std::unique_ptr<FrameWriter>> open_shared(FileOps& files, OpenFile dir, const std::string& name,
                                                          const std::shared_ptr<const Descriptor>& frame,
                                                          std::shared_ptr<IndexCache> cache,
                                                          const WriterOptions& options, ByteView image = {});
  ~FrameWriter();
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;

  /// Returns the parameters of the committed state.
  const FrameParameters& parameters() const { return container_->parameters(); }
  /// Returns the committed state for reading: a new object after each commit.
  std::shared_ptr<const Container> container() const { return container_; }
  /// Returns the file of the committed state, or the index file of a sparse frame. Changes with a commit that makes a
  /// new file.
  std::shared_ptr<const Descriptor> file() const { return file_; }
  /// Returns what the frame's name refers to: the file, or the directory of a sparse frame.
  std::shared_ptr<const Descriptor> entry() const { return directory_ ? directory_ : file_; }

  /// Returns stale if the header on disk is not that of the committed state: another program has changed the frame.
  Result<void> check_header() const;

  /// Returns the changes that are not committed yet, and sizes that include them.
  const PendingChanges& pending() const { return pending_; }
  bool has_changes() const;

  /// Replaces a chunk, or appends it if `chunk` is chunk_count(). All chunks but the last have chunksize() bytes. A
  /// short last chunk must be stored again with its full length before a commit that adds chunks after it.
  Result<void> store(ChunkNumber chunk, codec::EncodedChunk encoded);
  /// Replaces chunks [begin, end) by zeros. The cost does not depend on their number. REQUIRES: 0 <= begin <= end <=
  /// chunk_count().
  void store_zeros(ChunkNumber begin, ChunkNumber end);
  /// Appends zero chunks, which take 8 bytes of index each, or removes chunks. If the length of a stored chunk changes
  /// (the old or the new last one), the chunk must be stored again before the commit.
  Result<void> resize(std::uint64_t nbytes);

  /// Commits the pending changes; to a new file if the old one has more dead bytes than live ones. `durable` also makes
  /// earlier ordered commits durable.
  Result<void> commit(Durability durability, const CommitHooks& hooks = {});
  /// Sets how long to wait for a lock that another program holds. `past_frame`: after that time go on without the
  /// frame's own lock, as at the end of a mount; the lock of the side-car is still required.
  void wait_for_locks(std::chrono::milliseconds patience, bool past_frame = false);
  /// Releases the lock of WriterOptions::stays_open.
  void stop_staying_open();
  /// Computes the digests of all committed chunks, which the next commit writes as a seal, whatever
  /// WriterOptions::checksums says. `hashed`: called after each chunk with its
  /// stored bytes; false ends the call with EINTR.
  Result<void> seal(const std::function<bool(std::uint64_t bytes)>& hashed);
  /// Discards pending changes.
  void abandon();
  WriterState state() const { return state_; }

  /// The caller reports that the frame was renamed to `path` in `dir`.
  void moved(OpenFile dir, std::string path);
  /// The caller reports that the frame was unlinked. Commits go on in the file without a name; commits of a sparse
  /// frame, whose files are gone, return stale.
  void unlinked() { has_name_ = false; }

 private:
  friend class FrameMetalayers;
  friend class FrameReplacement;
  friend class FrameSpace;
  struct Next;

  FrameWriter(FileOps& files, OpenFile dir, std::string path, std::shared_ptr<IndexCache> cache,
              const WriterOptions& options);

  Result<void> open_files(OpenFile frame);
  Result<void> load(ByteView image = {});
  Result<std::shared_ptr<const FrameContainer>> load_container(ByteView image);
  Result<std::vector<std::uint8_t>> load_header(ByteView image);
  OpenFile entry_dir() const;
  std::string entry_name() const;
  Result<void> commit_locked(Durability durability, bool force_rewrite, const CommitHooks& hooks);
  Result<AdvisoryLock> lock();
  /// Takes the lock of WriterOptions::stays_open.
  Result<void> stay_open();
  /// Makes the next file the frame's, with the lock of WriterOptions::stays_open.
  Result<void> put_in_place(ReplacementFile& replacement, const Next& next);
  Result<void> check_unchanged() const;
  Result<void> check_named() const;
  Result<std::uint64_t> cut_tail_locked();
  std::uint64_t dead_bytes();
  bool has_room_for_copy();
  bool needs_new_file() const;
  bool can_be_emptied() const;
  bool metalayers_need_new_file() const;
  Result<std::vector<Metalayer>> stored_vlmetalayers() const;
  Result<std::vector<std::uint8_t>> next_trailer() const;
  std::vector<std::uint8_t> next_header() const;
  bool next_has_vlmetalayers() const;

  Result<void> encode_index(Next& next, IndexEncoder& index) const;
  /// What an image has beside its data.
  struct Extras {
    SealWriter* seal = nullptr;  // null: no seal
    bool spare_room = false;     // the last block of the file has room for the index of the next state
  };
  Result<void> write_behind(Next& next, Extras extras);
  /// How the next state comes into its file.
  enum class Image {
    appended,   // behind the committed state
    replaced,   // into a new file, by a commit
    compacted,  // into a new file, by FrameSpace::compact()
  };
  Result<bool> keeps_seal() const;
  bool reads_all_chunks(Image image) const;
  Result<std::unique_ptr<SealWriter>> begin_seal(Image image) const;
  Result<std::unique_ptr<SealWriter>> begin_committed_seal(Image image) const;
  Result<void> finish_image(Next& next, std::optional<std::uint64_t> cbytes, IndexEncoder& index, BufferedAppender& out,
                            Extras extras) const;
  Result<void> open_next(Next& next) const;
  /// Makes a transition. REQUIRES: it is legal.
  void enter(WriterState next);
  /// Enters the failed state that follows the current one.
  void fail() { enter(failed_after(state_)); }
  Result<void> append_or_compact(const AdvisoryLock& held);
  Result<void> empty_in_place();
  Result<void> append_and_switch();
  Result<void> publish_header(const Next& next);
  Result<void> rewrite_file(Image image);
  void adopt(Next next);
  Result<void> sync_all();

  FileOps& files_;
  OpenFile dir_;
  std::string path_;
  const std::shared_ptr<IndexCache> cache_;
  WriterOptions options_;

  std::shared_ptr<const Descriptor> directory_;  // of a sparse frame; null for a contiguous one
  std::unique_ptr<SparseChunks> sparse_;         // chunk files of a sparse frame

  // The committed state.
  std::shared_ptr<const Descriptor> file_;
  std::vector<std::uint8_t> header_;  // as it is on disk
  bool is_blank_ = false;             // the file has 0 bytes and represents an empty frame: header_ is not on disk yet
  std::shared_ptr<const FrameContainer> container_;
  std::vector<IndexEncoder::Block> index_blocks_;  // leading blocks of its index that this writer encoded

  // The pending changes.
  PendingChanges pending_;
  std::optional<std::vector<Metalayer>> vlmetalayers_;  // each content is an encoded chunk
  std::optional<std::vector<Metalayer>> metalayers_;
  std::unique_ptr<SealWriter> new_seal_;  // of seal(), for the chunks of the committed state

  WriterState state_ = WriterState::synced;

  // Facts that are independent of the state: set by the caller at any time.
  bool has_name_ = true;
  bool past_frame_lock_ = false;  // see wait_for_locks()
  std::function<void()> on_overwrite_ = [] {};
  std::uint64_t compact_from_ = 0;  // dead bytes from which on a failed compaction is tried again
  std::optional<std::uint64_t> dead_bytes_;
};

}  // namespace cframefs::frame
