#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <string>
#include <utility>

#include <fcntl.h>

#include "frame/base/parse_budget.h"
#include "frame/cframe/cframe.h"
#include "frame/cframe/sparse_frame.h"
#include "frame/io/advisory_lock.h"
#include "frame/io/buffered_appender.h"
#include "frame/io/overlay_source.h"
#include "frame/io/replacement_file.h"
#include "frame/open/open.h"
#include "frame/write/compaction.h"
#include "frame/write/dead_space.h"
#include "frame/write/frame_writer-inl.h"
#include "frame/write/seal_writer.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::load_be;
using codec::stale;
using codec::unsupported;

using Bytes = std::vector<std::uint8_t>;

constexpr std::chrono::milliseconds kNoWait(0);

/// Returns one past the last byte of the header that a commit changes, at least kSwitchEnd.
std::size_t switch_end(ByteView header, ByteView next) {
  std::size_t end = header.size();
  while (end > kSwitchEnd && header[end - 1] == next[end - 1])
    --end;
  return end;
}

/// Returns unsupported if chunks cannot be added to and replaced in such a frame.
Result<void> check_writable(const FrameContainer& frame, std::uint8_t general_flags, bool stores_chunks) {
  const FrameParameters& parameters = frame.parameters();
  const bool variable = (general_flags & layout::kVariableChunksFlag) != 0;
  if (variable || (parameters.variable_chunks && parameters.nbytes > 0)) {
    return unsupported("a frame with chunks of different sizes cannot be changed");
  }
  if (parameters.vl_blocks) return unsupported("a frame with blocks of different sizes cannot be changed");
  if (stores_chunks) return codec::check_encodable(encode_parameters(parameters));
  return {};
}

}  // namespace

FrameWriter::FrameWriter(FileOps& files, OpenFile dir, std::string path, std::shared_ptr<IndexCache> cache,
                         const WriterOptions& options)
    : files_(files),
      dir_(dir),
      path_(std::move(path)),
      cache_(cache ? std::move(cache) : std::make_shared<IndexCache>()),
      options_(options),
      state_(options.fresh ? WriterState::fresh : WriterState::synced) {}

Result<std::unique_ptr<FrameWriter>> FrameWriter::open(FileOps& files, OpenFile dir, const std::string& path,
                                                       std::shared_ptr<IndexCache> cache,
                                                       const WriterOptions& options) {
  const auto fd = files.open_at(dir, path, O_PATH | O_NOFOLLOW);
  if (!fd) return Failure(fd.error());
  return open(files, dir, path, share_descriptor(files, *fd), std::move(cache), options);
}

Result<std::unique_ptr<FrameWriter>> FrameWriter::open(FileOps& files, OpenFile dir, const std::string& name,
                                                       const std::shared_ptr<const Descriptor>& frame,
                                                       std::shared_ptr<IndexCache> cache,
                                                       const WriterOptions& options) {
  std::unique_ptr<FrameWriter> writer(new FrameWriter(files, dir, name, std::move(cache), options));
  if (auto opened = writer->open_files(frame->handle()); !opened) return Failure(opened.error());
  if (auto loaded = writer->load(); !loaded) return Failure(loaded.error());
  return writer;
}

Result<std::unique_ptr<FrameWriter>> FrameWriter::open_shared(FileOps& files, OpenFile dir, const std::string& name,
                                                              const std::shared_ptr<const Descriptor>& frame,
                                                              std::shared_ptr<IndexCache> cache,
                                                              const WriterOptions& options, ByteView image) {
  std::unique_ptr<FrameWriter> writer(new FrameWriter(files, dir, name, std::move(cache), options));
  writer->file_ = frame;
  if (auto loaded = writer->load(image); !loaded) return Failure(loaded.error());
  return writer;
}

/// Opens the frame's file, or the directory and the index file of a sparse frame.
Result<void> FrameWriter::open_files(OpenFile frame) {
  const int flags = O_RDWR | O_NONBLOCK | O_NOCTTY;
  // O_NOATIME: the writer's reads do not count as accesses by programs.
  auto fd = files_.reopen(frame, flags | O_NOATIME);
  if (!fd && fd.error().sys == EPERM) fd = files_.reopen(frame, flags);
  if (!fd && fd.error().sys == EISDIR) {
    const auto directory = files_.reopen(frame, O_RDONLY | O_DIRECTORY);
    if (!directory) return Failure(directory.error());
    directory_ = share_descriptor(files_, *directory);
    auto states = options_.sparse_registry ? options_.sparse_registry->states_of(files_, directory_)
                                           : std::make_shared<SparseStates>(files_, directory_);
    sparse_ = std::make_unique<SparseChunks>(files_, directory_->handle(), std::move(states));
    state_ = WriterState::synced;  // chunk files are synced as they are written
    fd = files_.open_at(*directory, kSparseIndexName, flags);
  }
  if (!fd) return Failure(fd.error());
  file_ = share_descriptor(files_, *fd);
  return {};
}

Result<void> FrameWriter::stay_open() {
  if (!options_.stays_open) return {};
  const bool waits = options_.waits_for_writers;
  const auto held = AdvisoryLock::open_frame(files_, file_->handle(), waits ? options_.lock_timeout : kNoWait);
  if (!waits) return {};
  // With the lock, no other writer replaces the file.
  return held ? check_named() : held;
}

/// `image`: as open_shared().
Result<void> FrameWriter::load(ByteView image) {
  if (auto held = stay_open(); !held) return held;
  auto opened = load_container(image);
  if (!opened) return Failure(opened.error());
  container_ = std::move(*opened);
  if (!container_) return unsupported("neither a contiguous nor a sparse frame: only these can be changed");
  // Header and trailer are kept in memory and written again, the trailer twice if a metalayer changes.
  ParseBudget budget = ParseBudget::asked(container_->stored_bytes());
  const std::uint64_t held = 2 * (parameters().header_length + container_->trailer().length);
  if (auto fits = budget.take_memory(held, "header and trailer"); !fits) return fits;
  auto header = load_header(image);
  if (!header) return Failure(header.error());
  header_ = std::move(*header);
  header_.resize(static_cast<std::size_t>(parameters().header_length));
  if (load_be<std::uint64_t>(&header_[layout::kFrameLengthAt]) != parameters().frame_length) {
    return stale("the frame changed while it was opened");
  }
  pending_ = PendingChanges(*container_);
  return check_writable(*container_, header_[layout::kGeneralFlagsAt], options_.stores_chunks);
}

/// Returns null if the file is no frame.
Result<std::shared_ptr<const FrameContainer>> FrameWriter::load_container(ByteView image) {
  if (!image.empty()) return open_cframe(memory_source({image.begin(), image.end()}), cache_);
  const auto opened = directory_ ? open_sparse_state(files_, directory_, file_, cache_, sparse_->begin_state().hold)
                                 : open_container(files_, file_, cache_);
  if (!opened) return Failure(opened.error());
  return as_shared_frame(*opened);
}

Result<Bytes> FrameWriter::load_header(ByteView image) {
  if (!image.empty()) return Bytes(image.begin(), image.end());
  const auto status = files_.status(file_->handle());
  if (!status) return Failure(status.error());
  is_blank_ = status->st_size == 0;
  return is_blank_ ? Result<Bytes>(blank_frame())
                   : read_bytes(files_, file_->handle(), FileOffset{0}, parameters().header_length);
}

bool FrameWriter::has_changes() const {
  return pending_.any_chunks() || vlmetalayers_ || metalayers_ || new_seal_;
}

Result<void> FrameWriter::store(ChunkNumber chunk, codec::EncodedChunk encoded) {
  return pending_.store(chunk, std::move(encoded));
}

void FrameWriter::store_zeros(ChunkNumber begin, ChunkNumber end) {
  pending_.store_zeros(begin.value, end.value);
}

Result<void> FrameWriter::resize(std::uint64_t nbytes) {
  return pending_.resize(nbytes);
}

void FrameWriter::enter(WriterState next) {
  assert(is_legal(state_, next));
  state_ = next;
}

void FrameWriter::abandon() {
  pending_ = PendingChanges(*container_);
  vlmetalayers_.reset();
  metalayers_.reset();
  new_seal_.reset();
}

OpenFile FrameWriter::entry_dir() const {
  return directory_ ? directory_->handle() : dir_;
}

std::string FrameWriter::entry_name() const {
  return directory_ ? kSparseIndexName : path_;
}

void FrameWriter::moved(OpenFile dir, std::string path) {
  dir_ = dir;
  path_ = std::move(path);
}

// ---- commit ----

Result<void> FrameWriter::commit(Durability durability, const CommitHooks& hooks) {
  return commit_locked(durability, false, hooks);
}

FrameWriter::~FrameWriter() {
  stop_staying_open();
}

void FrameWriter::stop_staying_open() {
  if (options_.stays_open && file_) AdvisoryLock::close_frame(files_, file_->handle());
  options_.stays_open = false;
}

Result<void> FrameWriter::commit_locked(Durability durability, bool force_rewrite, const CommitHooks& hooks) {
  if (is_failed(state_)) return codec::io_error(EIO, "commit after a failed sync");
  if (has_changes() || force_rewrite) {
    if (auto stored = pending_.store_odd_zeros(*container_); !stored) return stored;
    if (auto fine = pending_.check(*container_); !fine) return fine;
    const std::shared_ptr<const Descriptor> locked = file_;  // keeps the locked file open while `held` exists
    const auto held = lock();
    if (!held) return Failure(held.error());
    if (auto same = check_unchanged(); !same) return same;
    if (force_rewrite) {
      const auto is_alone = held->is_alone();
      if (!is_alone) return Failure(is_alone.error());
      if (!*is_alone) return codec::io_error(EBUSY, "compact: another program uses the frame");
    }
    if (hooks.before_change) {
      if (auto allowed = hooks.before_change(); !allowed) return allowed;
    }
    const Image image = force_rewrite ? Image::compacted : Image::replaced;
    auto done = force_rewrite || needs_new_file() ? rewrite_file(image) : append_or_compact(*held);
    if (!done && done.error().sys == ENOSPC && can_be_emptied() && held->is_alone().value_or(false))
      done = empty_in_place();
    if (!done) return done;
    // Another program may have renamed a new file over the frame after check_unchanged(). This commit is lost then.
    if (!held->is_exclusive()) {
      if (auto named = check_named(); !named) return named;
    }
    if (hooks.after_change) {
      if (auto noted = hooks.after_change(); !noted) return noted;
    }
  }
  if (durability == Durability::durable && state_ != WriterState::synced) return sync_all();
  return {};
}

Result<std::uint64_t> FrameWriter::cut_tail_locked() {
  const std::uint64_t end = parameters().frame_length;
  const auto status = files_.status(file_->handle());
  if (!status) return Failure(status.error());
  const auto size = static_cast<std::uint64_t>(status->st_size);
  if (size <= end) return std::uint64_t{0};
  if (auto cut = files_.truncate(file_->handle(), end); !cut) return Failure(cut.error());
  return size - end;
}

bool FrameWriter::metalayers_need_new_file() const {
  if (!metalayers_) return false;
  const std::vector<std::uint8_t> next = next_header();
  return next.size() != header_.size() || switch_end(header_, next) > kSector;
}

/// Appending is not possible if the frame gets no chunks, because its trailer must follow the header, and for sparse
/// frames, because their index must follow the header.
bool FrameWriter::needs_new_file() const {
  return directory_ || is_blank_ || pending_.nbytes() == 0 || metalayers_need_new_file();
}

/// Returns true if empty_in_place() can commit the next state.
bool FrameWriter::can_be_emptied() const {
  return !is_failed(state_) && !directory_ && !is_blank_ && pending_.nbytes() == 0 && !metalayers_;
}

Result<void> FrameWriter::append_and_switch() {
  if (auto cut = cut_tail_locked(); !cut) return Failure(cut.error());
  const std::uint64_t end = parameters().frame_length;
  Next next;
  next.file = file_;
  next.header = next_header();
  const auto killed = measure_killed_bytes(*container_, pending_);
  if (!killed) return Failure(killed.error());
  next.dead_bytes = dead_bytes() + *killed + (end - header_.size() - parameters().cbytes);
  const Next unsealed = next;

  auto seal = begin_seal(Image::appended);
  if (!seal) return Failure(seal.error());
  auto written = write_behind(next, {.seal = seal->get(), .spare_room = true});
  if (!written && written.error().sys == ENOSPC) {
    // A full disk may have room for the data alone.
    if (auto cut = files_.truncate(file_->handle(), end); !cut) return cut;
    next = unsealed;
    written = write_behind(next, {});
  }
  if (written) written = open_next(next);
  if (!written) {
    static_cast<void>(files_.truncate(file_->handle(), end));  // if this fails, the next commit truncates
    return written;
  }
  if (!is_fresh(state_)) {
    if (auto synced = files_.sync(file_->handle(), true); !synced) {
      fail();
      return synced;
    }
  }
  if (auto same = check_unchanged(); !same) return same;
  if (auto switched = publish_header(next); !switched) return switched;
  adopt(std::move(next));
  return {};
}

/// Step 5 of commit-protocol.md section 2: switches with one write inside one sector.
Result<void> FrameWriter::publish_header(const Next& next) {
  const std::size_t end = switch_end(header_, next.header);
  const ByteView fields = ByteView(next.header).first(end).subspan(kSwitchBegin);
  auto written = files_.pwrite(file_->handle(), fields, FileOffset{kSwitchBegin});
  if (written) return {};
  // The write may be partial. Restore the old fields; if that fails, the state on disk is unknown, so enter the failed
  // state.
  const ByteView old = ByteView(header_).first(end).subspan(kSwitchBegin);
  const auto now = read_bytes(files_, file_->handle(), FileOffset{0}, header_.size());
  if (now && *now == header_) return written;
  auto restored = files_.pwrite(file_->handle(), old, FileOffset{kSwitchBegin});
  if (restored) restored = files_.sync(file_->handle(), true);
  if (!restored) fail();
  return written;
}

/// REQUIRES: `image` is not appended.
Result<void> FrameWriter::rewrite_file(Image image) {
  const bool durable = !is_fresh(state_);
  auto replacement = ReplacementFile::create(files_, entry_dir(), entry_name(), file_->handle());
  if (!replacement) return Failure(replacement.error());
  Next next;
  next.file = replacement->file();
  next.header = next_header();
  const std::uint64_t section = next.header.size();
  const auto seal = begin_seal(image);
  if (!seal) return Failure(seal.error());
  FileTarget target(files_, replacement->handle());
  BufferedAppender out(target, FileOffset{section});
  IndexEncoder index;
  const SparseChunks::Undo undo(sparse_.get());
  if (directory_) {
    next.state = sparse_->begin_state();
    const auto cbytes = sparse_->write(*container_, pending_, next.entries, next.state.number);
    if (!cbytes) {
      if (sparse_->sync_failed()) fail();
      return Failure(cbytes.error());
    }
    if (auto done = encode_index(next, index); !done) return done;
    if (auto done = finish_image(next, *cbytes, index, out, {.seal = seal->get()}); !done) return done;
  } else {
    if (auto copied = copy_live_chunks(*container_, pending_, section, out, index); !copied) return copied;
    const bool spare_room = image == Image::replaced;  // else there may be no next commit
    if (auto done = finish_image(next, out.position() - section, index, out, {seal->get(), spare_room}); !done)
      return done;
  }
  if (auto put = files_.pwrite(replacement->handle(), next.header, FileOffset{0}); !put) return put;
  if (auto opened = open_next(next); !opened) return opened;
  if (auto kept = replacement->keep_times(!has_changes()); !kept) return kept;
  if (durable) {
    if (auto synced = replacement->sync(); !synced) {
      fail();
      return synced;
    }
  }
  if (directory_ && durable) {
    // The names of the new chunk files must be durable before an index that refers to them.
    if (auto synced = sync_directory(files_, directory_->handle()); !synced) {
      fail();
      return synced;
    }
  }
  if (auto same = check_unchanged(); !same) return same;
  if (sparse_) sparse_->prepare_to_keep();
  if (auto placed = put_in_place(*replacement, next); !placed) return placed;
  if (sparse_) sparse_->keep();
  adopt(std::move(next));
  if (!durable || !has_name_) return {};
  auto synced = sync_directory_of(files_, entry_dir(), entry_name());
  if (!synced) {
    fail();
    return synced;
  }
  enter(WriterState::synced);
  if (sparse_) sparse_->delete_obsolete();
  return synced;
}

Result<void> FrameWriter::put_in_place(ReplacementFile& replacement, const Next& next) {
  // Before another program can have the file.
  if (options_.stays_open) AdvisoryLock::open_new_frame(files_, next.file->handle());
  return has_name_ ? replacement.publish() : replacement.drop_name();
}

void FrameWriter::adopt(Next next) {
  file_ = std::move(next.file);
  header_ = std::move(next.header);
  is_blank_ = false;
  container_ = std::move(next.container);
  index_blocks_ = std::move(next.index_blocks);
  dead_bytes_ = next.dead_bytes;
  if (!is_fresh(state_)) enter(WriterState::unsynced);
  abandon();
}

Result<void> FrameWriter::sync_all() {
  auto synced = files_.sync(file_->handle(), false);
  if (synced && is_fresh(state_) && has_name_) synced = sync_directory_of(files_, entry_dir(), entry_name());
  if (!synced) {
    fail();
    return synced;
  }
  enter(WriterState::synced);
  return {};
}

}  // namespace cframefs::frame
