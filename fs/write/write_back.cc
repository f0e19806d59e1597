// The programs' side of a write-back: changes of the layers. write_back_view.cc reads them, write_back_holes.cc makes
// holes; write_back_commit.cc is the disk's side.
#include "fs/write/write_back.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>
#include <sys/stat.h>

#include "fs/write/mount_changes.h"

namespace cframefs::fs {
namespace {

// A stream is committed whenever it has filled this much, or 1/4 of what may be dirty if that is less.
constexpr std::uint64_t kStreamCommit = std::uint64_t{24} << 20;
constexpr std::uint64_t kFirstCommit = std::uint64_t{4} << 20;
constexpr std::uint64_t kStreamShare = 4;
// A write of more than this part of what may be dirty is split.
constexpr std::uint64_t kWriteShare = 16;
// Chunks up to this size can be written in part even if they exceed dirty_limit.
constexpr std::uint64_t kMinWritable = std::uint64_t{64} << 20;
// Bytes of chunks that may wait to be encoded before the programs that fill them must help.
constexpr std::uint64_t kMaxWaiting = std::uint64_t{16} << 20;
// A chunk with more pieces than this is read and held whole.
constexpr std::size_t kMaxPieces = 64;
// When the bound is reached, a file with at most this much dirty may use the reserve, 1/8 of the limit.
constexpr std::uint64_t kLittleDirty = std::uint64_t{4} << 20;
constexpr std::uint64_t kReserveShare = 8;

}  // namespace

WriteBackStatus WriteBack::status() {
  codec::MutexLock lock(mutex_);
  const bool is_stale = !state_.is_usable();
  return {dirty_.size(),    oldest_, !oldest_ && !committing_, !is_stale && (committing_ || is_dirty()),
          state_.is_busy(), is_stale};
}

std::optional<struct timespec> WriteBack::dirty_since_write() {
  codec::MutexLock lock(mutex_);
  if (!committing_ && !is_dirty()) return std::nullopt;
  write_time_shown_ = true;
  return last_write_;
}

std::uint64_t WriteBack::dirty_bytes() {
  codec::MutexLock lock(mutex_);
  return dirty_.chunks().footprint();
}

Uncommitted WriteBack::uncommitted() {
  codec::MutexLock lock(mutex_);
  Uncommitted held{0, dirty_.chunks().footprint(), has_name_};
  const auto add = [&held](const DirtyLayer& layer) {
    for (const auto& [number, chunk] : layer.chunks().whole())
      held.bytes += layer.length_of(number);
    for (const auto& [begin, end] : layer.chunks().zeros().runs()) {
      const std::uint64_t from = static_cast<std::uint64_t>(begin) * layer.chunksize();
      held.bytes += std::min(static_cast<std::uint64_t>(end) * layer.chunksize(), layer.size()) - from;
    }
    for (const auto& [number, patches] : layer.chunks().patches())
      held.bytes += patches->written();
  };
  add(dirty_);
  if (committing_) add(*committing_);
  return held;
}

std::shared_ptr<const FrameSnapshot> WriteBack::snapshot() {
  codec::MutexLock lock(mutex_);
  return snapshot_;
}

void WriteBack::inspect(
    const std::function<void(const std::shared_ptr<const FrameSnapshot>&, const frame::FileVersion& file)>& at) {
  codec::MutexLock lock(mutex_);
  at(snapshot_, identity_);
}

bool WriteBack::owns(const frame::FileVersion& identity) {
  codec::MutexLock lock(mutex_);
  return committing_ || state_.may_change_file() || identity == identity_;
}

std::uint64_t WriteBack::size_below() const {
  return committing_ ? committing_->size() : snapshot_->view().size();
}

codec::Result<void> WriteBack::check_usable() {
  if (!state_.is_usable()) return codec::stale("another program changed the frame, which has uncommitted writes");
  return {};
}

codec::Result<void> WriteBack::check_readable() {
  if (state_.is_usable()) return {};
  const auto disk = identity_on_disk();
  return disk && has_same_content(*disk) ? codec::Result<void>() : check_usable();
}

void WriteBack::note_dirty() {
  write_time_shown_ = false;
  clock_gettime(CLOCK_REALTIME_COARSE, &last_write_);  // the clock of file timestamps
  if (oldest_) return;
  oldest_ = shared_.clock();
  host_->became_dirty();
}

bool WriteBack::has_same_content(const frame::FileVersion& disk) const {
  return disk.has_content_of(identity_);
}

codec::Result<void> WriteBack::refresh(RefreshFor reason) {
  {
    codec::MutexLock lock(mutex_);
    if (!state_.is_usable()) return check_usable();
    // A file that is clean when another program commits must not become dirty before that shows.
    const bool may_hide_others = reason == RefreshFor::change && !committing_ && !is_dirty();
    if (state_.may_change_file() && !may_hide_others) return {};
    auto disk = identity_on_disk();
    if (!disk) return codec::Failure(disk.error());
    if (*disk == identity_) return {};
    if (has_same_content(*disk)) {
      if (!state_.may_change_file()) note_identity(*disk);
      return {};
    }
    if (committing_) {
      // The layer being committed lies over a version that is gone.
      state_.lose_track();
      return check_usable();
    }
  }
  return reload();
}

codec::Result<void> WriteBack::make_room(std::uint64_t bytes) {
  const auto used = [this] { return shared_.dirty_bytes.load(std::memory_order_relaxed); };
  // Encoded chunks of a commit may take as much again.
  const std::uint64_t bound = shared_.dirty_limit / 2;
  if (used() + bytes > bound / 2) host_->much_is_dirty();
  if (used() + bytes <= bound) return {};
  // The reserve is for files with little dirty, so that their programs do not wait for the commit of another file.
  const std::uint64_t reserve = shared_.dirty_limit / kReserveShare;
  const std::uint64_t little = std::min(kLittleDirty, reserve / 2);
  if (used() + bytes <= bound + reserve && dirty_bytes() + bytes <= little) return {};
  const auto before = snapshot();
  const auto is_enough = [&] { return used() + bytes <= bound || snapshot() != before; };
  host_->make_room(bound - std::min(bytes, bound));
  if (is_enough()) return {};
  {
    // Wait for a commit of another thread: it leaves little, which would be stored twice.
    const std::lock_guard commits(commit_mutex_);
  }
  if (is_enough()) return {};
  // Data that cannot be committed are kept; so the write fails if there is no room for more.
  auto done = commit(frame::Durability::ordered, CommitExtent::complete, CommitWait::lock);
  if (done && used() + bytes > shared_.dirty_limit)
    done = commit(frame::Durability::ordered, CommitExtent::all, CommitWait::lock);
  return done;
}

/// Returns how many bytes are written at once: with small chunks a write takes more memory than its bytes.
std::uint64_t WriteBack::most_at_once() {
  codec::MutexLock lock(mutex_);
  const std::uint64_t chunk = dirty_.chunksize();
  return std::max<std::uint64_t>(shared_.dirty_limit / kWriteShare / (chunk + DirtyChunk::kOverhead), 1) * chunk;
}

codec::Result<std::uint64_t> WriteBack::write(std::optional<std::uint64_t> place, codec::ByteView bytes,
                                              ChangePermit& permit, Changer by) {
  shared_.statistics.writes.fetch_add(1, std::memory_order_relaxed);
  shared_.statistics.write_bytes.fetch_add(bytes.size(), std::memory_order_relaxed);
  std::optional<std::uint64_t> first;
  do {
    const auto part = bytes.first(std::min<std::uint64_t>(bytes.size(), most_at_once()));
    auto done = write_part_of(place, part, permit, by);
    if (!done) return done;
    if (!first) first = *done;
    if (place) *place += part.size();
    bytes = bytes.subspan(part.size());
  } while (!bytes.empty());
  return *first;
}

codec::Result<std::uint64_t> WriteBack::write_part_of(std::optional<std::uint64_t> place, codec::ByteView bytes,
                                                      ChangePermit& permit, Changer by) {
  if (auto room = make_room(bytes.size()); !room) return codec::Failure(room.error());
  if (auto followed = refresh(RefreshFor::change); !followed) return codec::Failure(followed.error());
  codec::Result<std::uint64_t> done;
  std::uint64_t chunksize = 0;
  {
    codec::MutexLock lock(mutex_);
    wait_until_copied();
    if (auto begun = permit.begin(); !begun) return codec::Failure(begun.error());
    chunksize = dirty_.chunksize();
    const std::uint64_t at = place.value_or(dirty_.size());
    const std::uint64_t before = dirty_.size();
    if (by != changed_by_) named_size_.reset();
    const bool is_new_array = becomes_array(at, bytes);
    done = is_new_array ? write_new_array(bytes) : array_ ? write_array(at, bytes) : write_locked(at, bytes, permit);
    // A write that completes the row of another handle leaves no failure to report.
    if (array_ && (dirty_.size() != before || capped_sum(at, bytes.size()) >= before)) changed_by_ = by;
  }
  permit.end();
  const std::uint64_t most = kMaxWaiting / (chunksize + DirtyChunk::kOverhead);
  shared_.encoders.drain_to(this, static_cast<std::size_t>(std::max<std::uint64_t>(most, 2)));
  return done;
}

/// Starts to encode a full chunk, whose bytes will probably not change any more.
void WriteBack::chunk_filled(const DirtyLayer::Chunk& chunk) {
  filled_bytes_ += dirty_.chunksize();
  if (early_parameters_ && !chunk->early()) shared_.encoders.encode_early(this, *early_parameters_, chunk);
  // The first commit chooses the parameters, so it should come soon.
  const std::uint64_t most = early_parameters_ ? kStreamCommit : kFirstCommit;
  if (filled_bytes_ >= std::min(most, shared_.dirty_limit / 2 / kStreamShare)) host_->much_is_dirty();
}

codec::Result<void> WriteBack::check_size(std::uint64_t size) const {
  if (array_) return {};  // checked by ArrayChanges, against the array's own chunks
  constexpr auto kMaxChunks = static_cast<std::uint64_t>(frame::IndexEncoder::kMaxEntries);
  if (size > 0 && (size - 1) / dirty_.chunksize() >= kMaxChunks) {
    return codec::io_error(EFBIG, "write", fmt::format("a frame has at most {} chunks", kMaxChunks));
  }
  return {};
}

/// Checks a chunk that is written in part: a commit holds it whole. `length`: of the chunk.
codec::Result<void> WriteBack::check_chunk(std::uint64_t length) const {
  const std::uint64_t most = std::max(shared_.dirty_limit, kMinWritable);
  if (length <= most) return {};
  codec::Error error = codec::io_error(EFBIG, "write").value();
  error.reason = fmt::format("a chunk of {} bytes exceeds the {} bytes that may be held uncommitted: raise dirty_limit",
                             length, most);
  return codec::Failure(std::move(error));
}

codec::Result<std::uint64_t> WriteBack::write_locked(std::uint64_t place, codec::ByteView bytes, ChangePermit& permit) {
  if (auto usable = check_usable(); !usable) return codec::Failure(usable.error());
  const std::uint64_t end = capped_sum(place, bytes.size());
  if (auto fits = check_size(end); !fits) return codec::Failure(fits.error());
  const std::uint64_t chunksize = dirty_.chunksize();
  for (std::uint64_t at = place; at < end;) {
    const std::uint64_t from = at % chunksize;
    const std::uint64_t step = std::min(end - at, chunksize - from);
    const auto number = static_cast<std::int64_t>(at / chunksize);
    if (auto done = write_part(number, from, bytes.subspan(at - place, step), permit); !done) {
      return codec::Failure(done.error());
    }
    dirty_.touch(at);
    last_touched_ = number;
    note_dirty();
    at += step;
  }
  return place;
}

/// Writes into one chunk: as a patch if the rest of the chunk would have to be read.
codec::Result<void> WriteBack::write_part(std::int64_t number, std::uint64_t from, codec::ByteView bytes,
                                          ChangePermit& permit) {
  const std::uint64_t chunksize = dirty_.chunksize();
  const std::uint64_t begin = static_cast<std::uint64_t>(number) * chunksize;
  const std::uint64_t to = from + bytes.size();
  const std::uint64_t held =
      array_ && array_->is_flat() ? array_->chunk_bytes() : std::max(dirty_.length_of(number), to);
  if (auto fits = check_chunk(held); !fits) return fits;
  // The commit of an array assembles its chunks; pieces of the dirty layer are no chunks.
  const bool lacks_rest = !array_ && dirty_.chunks().find(number) == nullptr && begin < dirty_.kept();
  if (lacks_rest && (from != 0 || to < dirty_.length_of(number))) {
    const ChunkPatches& patches = dirty_.patch(number, from, bytes, shared_.dirty_bytes);
    dirty_.grow(begin + to);
    const bool covered = patches.covers(chunksize);
    if (!covered && patches.pieces().size() <= kMaxPieces) return {};
    // The bytes are written. Reading the rest of the chunk may take time.
    permit.end();
    auto chunk = assemble(number);
    if (!chunk) return codec::Failure(chunk.error());
    if (covered && (*chunk)->note_written(0, chunksize)) chunk_filled(*dirty_.chunks().find(number));
    return permit.begin();
  }
  auto chunk = chunk_to_write(number, from, to);
  if (!chunk) return codec::Failure(chunk.error());
  std::memcpy((*chunk)->bytes().data() + from, bytes.data(), bytes.size());
  dirty_.grow(begin + to);
  if (!array_ && (*chunk)->note_written(from, to)) chunk_filled(*dirty_.chunks().find(number));
  return {};
}

DirtyLayer::Chunk WriteBack::new_chunk(std::uint64_t size) const {
  return std::make_shared<DirtyChunk>(shared_.read_path.pool(), size, shared_.dirty_bytes);
}

/// Returns the chunk, with its bytes before `to` held. Bytes of [from, to) are written next.
codec::Result<DirtyChunk*> WriteBack::chunk_to_write(std::int64_t number, std::uint64_t from, std::uint64_t to) {
  const DirtyLayer::Chunk* known = dirty_.chunks().find(number);
  const auto hold = [from, to, is_array = array_.has_value()](DirtyChunk& chunk) {
    chunk.hold(from, to);
    if (is_array) chunk.hold(chunk.size(), chunk.size());  // a commit uses pieces of an array whole
    return &chunk;
  };
  if (known != nullptr && *known) return hold(dirty_.to_change(number));
  if (known == nullptr && (from != 0 || to < dirty_.length_of(number))) {
    auto assembled = assemble(number);
    return assembled ? codec::Result<DirtyChunk*>(hold(**assembled)) : assembled;
  }
  const DirtyLayer::Chunk zeros = new_chunk(dirty_.chunksize());
  hold(*zeros);
  dirty_.put(number, zeros);
  return zeros.get();
}

/// Assembles the whole chunk as programs see it, from patches and the layers below.
codec::Result<DirtyChunk*> WriteBack::assemble(std::int64_t number) {
  const DirtyLayer::Chunk chunk = new_chunk(dirty_.chunksize());
  const std::uint64_t valid = dirty_.length_of(number);
  const std::uint64_t begin = static_cast<std::uint64_t>(number) * dirty_.chunksize();
  chunk->hold(0, valid);
  if (auto read = copy_view(begin, chunk->bytes().first(valid)); !read) return codec::Failure(read.error());
  dirty_.put(number, chunk);
  return chunk.get();
}

void WriteBack::touch() {
  std::shared_ptr<const frame::Descriptor> file;
  {
    codec::MutexLock lock(mutex_);
    if (dirty_.differs_from(size_below())) {
      clock_gettime(CLOCK_REALTIME_COARSE, &last_write_);  // the clock of file timestamps
      return;
    }
    file = file_;
  }
  // Ignore errors: times of another user's file cannot be set.
  static_cast<void>(MountChanges(*this).change_file([&] {
    return shared_.files.set_times(file->handle(), {{{0, UTIME_OMIT}, {0, UTIME_NOW}}});
  }));
}

codec::Result<void> WriteBack::resize(std::uint64_t size, Changer by) {
  if (auto followed = refresh(RefreshFor::change); !followed) return followed;
  auto changed = change_size(size, by);
  if (!changed) return codec::Failure(changed.error());
  if (!*changed) touch();
  return {};
}

codec::Result<bool> WriteBack::change_size(std::uint64_t size, Changer by) {
  codec::MutexLock lock(mutex_);
  wait_until_copied();
  if (auto usable = check_usable(); !usable) return codec::Failure(usable.error());
  const std::uint64_t before = dirty_.size();
  if (array_) {
    const auto allowed = array_->check_resize(size, before);
    if (size == 0 || by != changed_by_) named_size_.reset();
    changed_by_ = by;
    head_.truncated(size == 0 && array_->head_bytes() > 0);
    if (!allowed && size == 0 && array_->head_bytes() > 0) {
      // A header that makes another array of the file may follow.
      head_.require_array();
      return {};
    }
    if (!allowed) return codec::Failure(allowed.error());
    size = *allowed;
  } else if (may_become_array_ && size == 0) {
    head_.truncated(true);
  }
  if (auto fits = check_size(size); !fits) return codec::Failure(fits.error());
  if (size == before) return false;
  // The chunk that contains the shorter of both ends is stored again, unless it is zeros.
  const std::uint64_t edge = std::min(size, before);
  const auto number = static_cast<std::int64_t>(edge / dirty_.chunksize());
  if (!array_ && edge % dirty_.chunksize() != 0 && !shows_zeros(number, number + 1)) {
    const std::uint64_t begin = edge - edge % dirty_.chunksize();
    if (auto fits = check_chunk(std::min(dirty_.chunksize(), std::max(size, before) - begin)); !fits) {
      return codec::Failure(fits.error());
    }
  }
  dirty_.resize(size);
  note_dirty();
  note_head(before);
  // If nothing is left to commit, no commit will set the time of this change.
  return is_dirty();
}

std::optional<bool> WriteBack::discard(const std::function<bool()>& may) {
  const std::lock_guard commits(commit_mutex_);
  codec::MutexLock lock(mutex_);
  if (!may()) return std::nullopt;
  const bool had = is_dirty();
  forget_new_array();
  dirty_ = DirtyLayer(dirty_.chunksize(), size_below());
  oldest_.reset();
  return had;
}

}  // namespace cframefs::fs
