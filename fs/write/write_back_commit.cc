// The disk's side of a write-back: commits of what programs have written. write_back_changes.cc makes other changes of
// the frame; write_back_open.cc opens it and follows changes by other programs.
#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include "frame/base/elapsed.h"
#include "frame/write/data_samples.h"
#include "frame/write/frame_replacement.h"
#include "frame/write/frame_space.h"
#include "fs/util/log.h"
#include "fs/util/no_memory.h"
#include "fs/write/chunk_patching.h"
#include "fs/write/lock_patience.h"
#include "fs/write/write_back.h"

namespace cframefs::fs {
namespace {

// Uncompressed bytes of patched chunks that are encoded before they are committed; 1/4 of dirty_limit if that is less.
// The next chunks are encoded while the disk writes these.
constexpr std::uint64_t kMaxPatched = std::uint64_t{48} << 20;
constexpr std::chrono::milliseconds kNoPatience(0);

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

bool same_parameters(const codec::EncodeParameters& a, const codec::EncodeParameters& b) {
  return a.compcode == b.compcode && a.clevel == b.clevel && a.filters == b.filters &&
         a.filters_meta == b.filters_meta && a.typesize == b.typesize && a.blocksize == b.blocksize &&
         a.split_mode == b.split_mode && a.use_dict == b.use_dict;
}

// If the last write is younger than this and no program has seen its time, the time of the commit is kept instead.
constexpr std::int64_t kFreshWriteNs = 10'000'000;

/// Returns the bytes of the first chunk that does not repeat one value; empty if there is none among the first chunks
/// of the layer.
std::vector<std::uint8_t> first_data(const DirtyLayer& layer) {
  constexpr int kMostSearched = 32;
  int searched = 0;
  for (const auto& [number, chunk] : layer.chunks().whole()) {
    if (!frame::repeats_one_value(chunk->bytes())) return chunk->first(layer.length_of(number));
    if (++searched == kMostSearched) break;
  }
  return {};
}

}  // namespace

codec::Result<bool> WriteBack::begin_commit(CommitExtent extent) {
  codec::MutexLock lock(mutex_);
  if (!is_dirty()) return false;
  const std::uint64_t below = new_array_ == NewArray::in_dirty ? dirty_.kept() : size_below();
  if (auto usable = check_usable(); !usable) return codec::Failure(usable.error());
  // A chunk that grows slowly is not deferred again and again.
  if (oldest_ && shared_.clock() - *oldest_ >= shared_.interval) extent = CommitExtent::all;
  DirtyLayer layer = std::move(dirty_);
  dirty_ = DirtyLayer(layer.chunksize(), layer.size());
  filled_bytes_ = 0;
  batch_write_ = last_write_;
  batch_time_shown_ = write_time_shown_;
  committing_since_ = std::exchange(oldest_, std::nullopt);
  try {
    defer_tail(layer, below, extent);
  } catch (...) {
    dirty_ = std::move(layer);
    oldest_ = committing_since_;
    throw;
  }
  if (new_array_ == NewArray::none && !layer.differs_from(below)) return false;
  if (new_array_ == NewArray::in_dirty) new_array_ = NewArray::in_commit;
  committing_ = std::move(layer);
  state_.enter(Progress::preparing);
  return true;
}

codec::Result<void> WriteBack::begin_change() {
  codec::MutexLock lock(mutex_);
  if (state_.has_begun_writing()) return {};
  if (auto usable = check_usable(); !usable) return usable;
  const auto disk = identity_on_disk();
  if (!disk) return codec::Failure(disk.error());
  state_.begin_writing(has_same_content(*disk));
  return {};
}

/// Moves data that are not to be committed yet into dirty_.
void WriteBack::defer_tail(DirtyLayer& layer, std::uint64_t below, CommitExtent extent) {
  if (array_ && array_->is_flat()) {
    const std::uint64_t size = array_->to_commit(layer.size(), below, extent == CommitExtent::complete);
    if (size == layer.size()) return;
    dirty_ = layer.split_off(size);
    oldest_ = committing_since_;
    return;
  }
  const std::int64_t last = layer.size() == 0 ? -1 : static_cast<std::int64_t>((layer.size() - 1) / layer.chunksize());
  const std::uint64_t last_begin = static_cast<std::uint64_t>(std::max<std::int64_t>(last, 0)) * layer.chunksize();
  const bool grows = last == last_touched_ && layer.size() % layer.chunksize() != 0;
  const DirtyLayer::Chunk* growing = grows ? layer.chunks().find(last) : nullptr;
  if (extent == CommitExtent::complete && growing != nullptr && layer.kept() == below && last_begin >= below) {
    dirty_ = layer.split_off_last();
    oldest_ = committing_since_;
  }
}

codec::Result<void> WriteBack::commit(frame::Durability durability, CommitExtent extent, CommitWait wait) {
  auto done = commit_some(durability, extent, wait);
  codec::MutexLock lock(mutex_);
  const std::optional<codec::Error> lost = std::exchange(lost_, std::nullopt);
  if (done && lost) return codec::Failure(*lost);
  return done;
}

codec::Result<void> WriteBack::background_commit(CommitExtent extent, bool opens_again) {
  const std::unique_lock commits(commit_mutex_, std::try_to_lock);
  if (!commits.owns_lock()) return codec::io_error(EAGAIN, "commit");
  if (opens_again) {
    if (auto opened = open_failed_again(); !opened) return opened;
  }
  return waiting(CommitWait::none, [&] { return commit_held(frame::Durability::ordered, extent); });
}

codec::Result<void> WriteBack::commit_some(frame::Durability durability, CommitExtent extent, CommitWait wait) {
  const std::lock_guard commits(commit_mutex_);
  return waiting(wait, [&] { return commit_held(durability, extent); });
}

/// REQUIRES: commit_mutex_.
codec::Result<void> WriteBack::waiting(CommitWait wait, const std::function<codec::Result<void>()>& work) {
  std::optional<LockPatience> patience;
  if (wait == CommitWait::lock) patience.emplace(shared_.waits_for_lock, shared_.lock_timeout);
  const auto others = wait == CommitWait::none ? kNoPatience : LockPatience::kShort;
  writer_->wait_for_locks(patience ? patience->length() : others, wait == CommitWait::past_lock);
  auto done = or_no_memory(work);
  writer_->wait_for_locks(kNoPatience);
  return done;
}

/// REQUIRES: commit_mutex_.
codec::Result<void> WriteBack::commit_held(frame::Durability durability, CommitExtent extent) {
  auto begun = or_no_memory([&] { return begin_commit(extent); });
  if (!begun) return codec::Failure(begun.error());
  if (*begun) {
    bool has_time = false;
    const auto set_time = [&]() -> codec::Result<void> {
      has_time = try_in_memory([this] { stamp_last_write(); });
      return {};
    };
    const auto commit_all = [&] {
      auto written = write_out();
      if (!written) return written;
      // Under the commit's lock, as far as that is possible: another program may commit after it, and would lose what
      // it writes next if the time of the file changed.
      return commit_counted([&] {
        return beside_ ? put_new_array_in_place(durability) : commit_writer(durability, free_permit(), set_time);
      });
    };
    auto done = or_no_memory(commit_all);
    if (!done && done.error().sys == ENOSPC && or_no_memory([this] { return commit_cut(); })) {
      done = or_no_memory(commit_all);
    }
    if (done && !has_time) static_cast<void>(set_time());
    beside_.reset();
    has_committed_ = has_committed_ || done || partly_committed_;
    done = finish_commit(std::move(done));
    if (done) give_back_room();
    return done;
  }
  if (durability == frame::Durability::ordered) return {};
  if (auto done = writer_->commit(durability); !done) return done;
  return shared_.files.sync(writer_->file()->handle(), false);
}

void WriteBack::stamp_last_write() {
  // Shortly after a write whose time no program has seen, the commit's own time is as good, and costs nothing.
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  const std::int64_t age = frame::elapsed_ns(batch_write_, now);
  if (!batch_time_shown_ && age >= 0 && age < kFreshWriteNs) return;
  // begin_change() is needed if the last part of the commit had nothing to change.
  if (auto begun = begin_change(); !begun) return;
  // Ignore errors: only the owner may set times; otherwise the commit's own time stays.
  static_cast<void>(shared_.files.set_times(writer_->file()->handle(), {{{0, UTIME_OMIT}, batch_write_}}));
}

codec::Result<void> WriteBack::commit_counted(const std::function<codec::Result<void>()>& commit) {
  const std::shared_ptr<const frame::Descriptor> file = writer_->file();
  const std::shared_ptr<const frame::Container> before = writer_->container();
  const std::uint64_t length = writer_->parameters().frame_length;
  // The chunks of a sparse frame are separate files.
  std::uint64_t written = writer_->parameters().kind == frame::ContainerKind::sframe ? writer_->pending().bytes() : 0;
  const auto began = shared_.statistics.commit_time.start();
  auto done = commit();
  if (!done || writer_->container() == before) return done;
  shared_.statistics.commit_time.stop(began);
  const std::uint64_t now = writer_->parameters().frame_length;
  written += writer_->file() == file ? now - std::min(length, now) : now;
  shared_.statistics.commits.fetch_add(1, std::memory_order_relaxed);
  shared_.statistics.bytes_written.fetch_add(written, std::memory_order_relaxed);
  count_dead_bytes(frame::FrameSpace(*writer_).dead_bytes());
  return done;
}

void WriteBack::count_dead_bytes(std::uint64_t dead) {
  shared_.statistics.dead_bytes.fetch_add(dead - std::exchange(counted_dead_, dead), std::memory_order_relaxed);
}

codec::Result<void> WriteBack::write_out() {
  writer_->abandon();
  partly_committed_ = false;
  bool is_new = false;
  {
    codec::MutexLock lock(mutex_);
    is_new = new_array_ == NewArray::in_commit;
  }
  if (parameters_from_ != Parameters::fixed && !is_new) {
    if (auto chosen = choose_parameters(); !chosen) return chosen;
  }
  Batch batch;
  std::optional<ArrayChanges> array;
  {
    codec::MutexLock lock(mutex_);
    batch = {*committing_, snapshot_};
    array = array_;
  }
  if (is_new) return store_new_array(batch, *array);
  return array ? store_array(batch, *array) : store_chunks(batch);
}

/// Replaces the empty frame by another one. The dirty layers stay. parameters_from_ is `fixed` after an error that
/// occurred once the frame was replaced.
codec::Result<void> WriteBack::remake(const frame::NewFrame& wanted) {
  auto replaced = or_no_memory([&] { return frame::FrameReplacement(*writer_).replace_empty(wanted); });
  codec::MutexLock lock(mutex_);
  if (!replaced && writer_->file() == file_) return replaced;
  parameters_from_ = Parameters::fixed;
  encode_ = frame::encode_parameters(writer_->parameters());
  auto adopted = adopt_in_memory(true);
  return replaced ? adopted : replaced;
}

/// Replaces the empty frame by one whose parameters suit the first data.
codec::Result<void> WriteBack::choose_parameters() {
  std::vector<std::uint8_t> first;
  std::uint64_t chunksize = 0;
  {
    codec::MutexLock lock(mutex_);
    if (committing_->size() == 0 || writer_->pending().chunk_count() != 0 || !has_name_) return {};
    chunksize = committing_->chunksize();
    first = first_data(*committing_);
  }
  const frame::NewFrame wanted =
      parameters_from_ == Parameters::chosen_by_host ? host_->choose_parameters(first) : defaults_;
  const bool same = same_parameters(wanted.encode, encode_) && wanted.chunksize == writer_->pending().chunksize();
  if (!same) {
    auto made = remake(wanted);
    if (!made && parameters_from_ != Parameters::fixed) return made;
    codec::MutexLock lock(mutex_);
    const auto target = static_cast<std::uint64_t>(wanted.chunksize);
    if (target != chunksize && !array_) {
      const auto make = [this](std::uint64_t size) { return new_chunk(size); };
      // The frame has chunks of this size now: without memory there is no way back.
      until_there_is_memory([&]() NO_THREAD_SAFETY_ANALYSIS {
        // Merge what has been written since: one layer is easier to split into other chunks than two.
        DirtyLayer all = *committing_;
        dirty_.merge_into(all, make);
        DirtyLayer parts = rechunked(all, target, make);
        dirty_ = DirtyLayer(target, parts.size());
        committing_ = std::move(parts);
      });
    }
    if (!made) return made;
  }
  parameters_from_ = Parameters::fixed;
  return {};
}

/// Returns a chunk for which the layer has patches, or only another length than the stored chunk has.
ChunkToEncode WriteBack::patched_chunk(const Batch& batch, std::int64_t number,
                                       std::shared_ptr<const ChunkPatches> patches) {
  const DirtyLayer& layer = batch.layer;
  const std::uint64_t begin = static_cast<std::uint64_t>(number) * layer.chunksize();
  const std::uint64_t length = layer.length_of(number);
  const std::uint64_t kept = std::clamp(layer.kept(), begin, begin + length) - begin;
  const std::uint64_t size = batch.snapshot->view().size();
  const std::uint64_t there = size > begin ? std::min(layer.chunksize(), size - begin) : 0;
  const auto patching = std::make_shared<const ChunkPatching>(
      shared_.read_path, batch.snapshot, ChunkPatching::Extent{number, length, kept, std::max(length, there)},
      std::move(patches));
  const auto unless_unreadable = [this, number](auto made) {
    if (!made && made.error().kind != codec::ErrorKind::io) unreadable_.store(number);
    return made;
  };
  ChunkToEncode chunk{number, nullptr, length, [=] { return unless_unreadable(patching->whole()); }};
  chunk.patch = [=](const codec::EncodeParameters& parameters) {
    return unless_unreadable(patching->changed_blocks(parameters));
  };
  return chunk;
}

/// Returns the chunks to store, in order.
std::vector<ChunkToEncode> WriteBack::chunks_of(const Batch& batch) {
  const DirtyLayer& layer = batch.layer;
  std::vector<ChunkToEncode> chunks;
  for (const auto& [number, chunk] : layer.chunks().whole())
    chunks.push_back({number, chunk, layer.length_of(number), nullptr});
  for (const auto& [number, patches] : layer.chunks().patches())
    chunks.push_back(patched_chunk(batch, number, patches));
  const auto has = [&layer](std::int64_t number) {
    return layer.chunks().find(number) != nullptr || layer.chunks().find_patches(number) != nullptr;
  };
  // A last chunk of zeros that is not a whole number of items must be stored, unlike other zeros.
  const std::uint64_t tail = layer.size() % layer.chunksize();
  const auto last = static_cast<std::int64_t>(layer.size() / layer.chunksize());
  const bool is_new = static_cast<std::uint64_t>(last) * layer.chunksize() >= layer.kept();
  if (tail % static_cast<std::uint64_t>(encode_.typesize) != 0 && is_new && !has(last)) {
    chunks.push_back({last, nullptr, tail, nullptr});
  }
  // A chunk that was the last one, or is now, has another length than the stored chunk.
  const std::uint64_t before = batch.snapshot->view().size();
  const auto edge = static_cast<std::int64_t>(layer.kept() / layer.chunksize());
  const bool has_edge = layer.kept() % layer.chunksize() != 0 && (layer.kept() != before || layer.size() != before);
  if (has_edge && !has(edge)) chunks.push_back(patched_chunk(batch, edge, nullptr));
  std::sort(chunks.begin(), chunks.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  return chunks;
}

/// Patches are small and their chunks are not: if there are very many, commits some of the chunks before the others, so
/// that not all are held at once. Programs see no difference, because the layer lies over all of these versions. Each
/// of these versions is what programs read from then on.
codec::Result<void> WriteBack::commit_patches_first(const Batch& batch, std::vector<ChunkToEncode>& chunks) {
  const DirtyLayer& layer = batch.layer;
  const std::uint64_t bytes = std::min(kMaxPatched, shared_.dirty_limit / 4);
  const auto most = static_cast<std::size_t>(std::max<std::uint64_t>(bytes / layer.chunksize(), 1));
  // Only chunks whose length stays, so that the size of the frame does not change.
  const std::uint64_t same = std::min({layer.kept(), layer.size(), writer_->pending().nbytes()});
  const auto is_inner = [&](const ChunkToEncode& chunk) {
    return chunk.make && (static_cast<std::uint64_t>(chunk.number) + 1) * layer.chunksize() <= same;
  };
  if (static_cast<std::size_t>(std::count_if(chunks.begin(), chunks.end(), is_inner)) <= most) return {};
  const auto first_inner =
      std::stable_partition(chunks.begin(), chunks.end(), [&](const ChunkToEncode& chunk) { return !is_inner(chunk); });
  std::vector<ChunkToEncode> inner(std::make_move_iterator(first_inner), std::make_move_iterator(chunks.end()));
  chunks.erase(first_inner, chunks.end());
  std::size_t stored = 0;
  const auto store_and_commit = [&](std::int64_t number, codec::EncodedChunk encoded) -> codec::Result<void> {
    auto done = writer_->store(frame::ChunkNumber{number}, std::move(encoded));
    if (!done || ++stored % most != 0) return done;  // the remaining ones are committed with the other chunks
    done = commit_counted([this] { return commit_writer(frame::Durability::ordered); });
    if (!done) return done;
    partly_committed_ = true;
    codec::MutexLock lock(mutex_);
    done = adopt_commit();
    if (done) state_.enter(Progress::preparing);
    return done;
  };
  return shared_.encoders.encode_in_order(encode_, std::move(inner), store_and_commit);
}

codec::Result<void> WriteBack::store_chunks(const Batch& batch) {
  const DirtyLayer& layer = batch.layer;
  std::vector<ChunkToEncode> chunks = chunks_of(batch);
  if (auto done = commit_patches_first(batch, chunks); !done) return done;
  // Truncate first, to whole chunks; the chunk with the new end is among those that are stored again.
  const std::uint64_t left = std::min(rounded_up(layer.kept(), layer.chunksize()), layer.size());
  if (left < writer_->pending().nbytes()) {
    if (auto cut = writer_->resize(left); !cut) return cut;
  }
  store_zeros(*writer_, layer.chunks().zeros());
  if (auto done = store_in_order(*writer_, encode_, std::move(chunks), layer.chunksize()); !done) return done;
  if (writer_->pending().nbytes() < layer.size()) return writer_->resize(layer.size());
  return {};
}

/// REQUIRES: the frame has these chunks.
void WriteBack::store_zeros(frame::FrameWriter& to, const frame::ChunkIntervals& zeros) {
  for (const auto& [begin, end] : zeros.runs())
    to.store_zeros(frame::ChunkNumber{begin}, frame::ChunkNumber{end});
}

codec::Result<void> WriteBack::store_in_order(frame::FrameWriter& to, const codec::EncodeParameters& parameters,
                                              std::vector<ChunkToEncode> chunks, std::uint64_t chunksize) {
  const auto store = [&](std::int64_t number, codec::EncodedChunk encoded) -> codec::Result<void> {
    if (number > to.pending().chunk_count()) {
      const std::uint64_t gap = static_cast<std::uint64_t>(number) * chunksize;
      if (auto grown = to.resize(gap); !grown) return grown;
    }
    return to.store(frame::ChunkNumber{number}, std::move(encoded));
  };
  return shared_.encoders.encode_in_order(parameters, std::move(chunks), store);
}

/// Drops patches of a chunk whose other bytes cannot be read: they can never be committed, and must not block the rest.
/// The error is reported once.
void WriteBack::drop_unreadable_patches(const codec::Error& error, DirtyLayer& layer) {
  const std::int64_t number = unreadable_.exchange(-1);
  if (number < 0 || !state_.is_usable()) return;
  until_there_is_memory([&]() NO_THREAD_SAFETY_ANALYSIS {
    lost_ = error;
    host_->committed({snapshot_, file_, identity_, identity_, true, false, true});
  });
  layer.drop_patches(number);
}

codec::Result<void> WriteBack::finish_commit(codec::Result<void> done) {
  codec::MutexLock lock(mutex_);
  const bool was_new_array = std::exchange(new_array_, NewArray::none) == NewArray::in_commit;
  if (done) done = adopt_commit();
  if (!done) {
    if (was_new_array && !partly_committed_) new_array_ = NewArray::in_dirty;
    writer_->abandon();
    codec::Error& error = done.error();
    shared_.statistics.failed_commits.fetch_add(1, std::memory_order_relaxed);
    try_in_memory([&] {
      if (error.path.empty()) error.path = place_.path;
      // A commit that fails because of a lock is retried, and its result is reported then.
      if (error.sys != EBUSY) shared_.once.error(error);
    });
    // A part of the commit, or all of it, is the frame's version now; the layers lie over it as they did over the one
    // before.
    adopt_if_switched(error);
    const auto disk = identity_on_disk();
    // Nothing was written before the failed read: if the file has another version now, that was the cause.
    const bool read_other = unreadable_.load() >= 0 && disk && *disk != identity_;
    if (read_other || error.kind == codec::ErrorKind::stale) state_.lose_track();
    if (read_other) {
      try_in_memory([&]() NO_THREAD_SAFETY_ANALYSIS { error = check_usable().error(); });
    } else if (state_.is_usable()) {
      note_own_change();
    }
    DirtyLayer all = std::move(*committing_);
    const auto make = [this](std::uint64_t size) { return new_chunk(size); };
    until_there_is_memory([&]() NO_THREAD_SAFETY_ANALYSIS { dirty_.merge_into(all, make); });
    drop_unreadable_patches(error, all);
    dirty_ = std::move(all);
    oldest_ = committing_since_;
  }
  committing_.reset();
  end_change();
  copied_.notify_all();
  if (!done || !early_parameters_) return done;
  // Chunks that were filled before the parameters were known.
  for (const auto& [number, chunk] : dirty_.chunks().whole()) {
    if (chunk->is_filled() && !chunk->early()) shared_.encoders.encode_early(this, *early_parameters_, chunk);
  }
  return done;
}

codec::Result<void> WriteBack::adopt_commit() {
  return adopt_in_memory(!state_.writes_over_other());
}

void WriteBack::adopt_if_switched(const codec::Error& error) {
  const bool is_adopted = &snapshot_->container() == writer_->container().get();
  if (!is_adopted && error.kind != codec::ErrorKind::stale) static_cast<void>(adopt_commit());
}

void WriteBack::note_own_change() {
  // If the commit has not begun to change the file, or the file was not in its known version, the new version contains
  // a change by another program.
  refresh_identity(state_.writes_known_file());
}

void WriteBack::end_change() {
  state_.enter(Progress::idle);
}

}  // namespace cframefs::fs
