// The programs' side of a write-back: reading and changing the layers. The disk's side is write_back_commit.cc.
#include "fs/write_back.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>

namespace cframefs::fs {
namespace {

// An index has eight bytes for each chunk and must itself fit into a chunk.
constexpr std::uint64_t kMostChunks = 0x7fffffff / 8;
// How often a read is begun again because another program was changing the frame.
constexpr int kViewAttempts = 5;
// A stream is committed whenever it has filled so much, or a part of what may be dirty at all if that is less.
constexpr std::uint64_t kStreamCommit = std::uint64_t{24} << 20;
constexpr std::uint64_t kFirstCommit = std::uint64_t{4} << 20;
constexpr std::uint64_t kStreamShare = 4;
// Chunks that may wait to be encoded before the programs that fill them have to help.
constexpr std::uint64_t kMostWaiting = std::uint64_t{16} << 20;
// A chunk with more scattered pieces than these is read and held whole.
constexpr std::size_t kMostPieces = 64;
// When too much is dirty, a file of which no more than this is may still take a share of the limit.
constexpr std::uint64_t kLittleDirty = std::uint64_t{4} << 20;
constexpr std::uint64_t kReserveShare = 8;

}  // namespace

std::uint64_t WriteBack::size() {
  codec::MutexLock lock(mutex_);
  return dirty_.size();
}

std::optional<struct timespec> WriteBack::dirty_since_write() {
  codec::MutexLock lock(mutex_);
  if (!committing_ && !is_dirty()) return std::nullopt;
  write_time_shown_ = true;
  return last_write_;
}

std::optional<std::chrono::steady_clock::time_point> WriteBack::oldest_dirty() {
  codec::MutexLock lock(mutex_);
  return oldest_;
}

bool WriteBack::is_clean() {
  codec::MutexLock lock(mutex_);
  return !oldest_ && !committing_;
}

std::uint64_t WriteBack::dirty_bytes() {
  codec::MutexLock lock(mutex_);
  std::uint64_t bytes = dirty_.chunks().size() * dirty_.chunksize();
  for (const auto& [number, patches] : dirty_.patches())
    bytes += patches->footprint();
  return bytes;
}

WriteBack::Uncommitted WriteBack::uncommitted() {
  codec::MutexLock lock(mutex_);
  Uncommitted held{0, named_};
  const auto add = [&held](const DirtyLayer& layer) {
    for (const auto& [number, chunk] : layer.chunks())
      held.bytes += layer.length_of(number);
    for (const auto& [number, patches] : layer.patches())
      held.bytes += patches->written();
  };
  add(dirty_);
  if (committing_) add(*committing_);
  return held;
}

std::shared_ptr<const Generation> WriteBack::generation() {
  codec::MutexLock lock(mutex_);
  return generation_;
}

void WriteBack::look(const Look& at) {
  codec::MutexLock lock(mutex_);
  at(generation_, identity_);
}

bool WriteBack::owns(const frame::Identity& identity) {
  codec::MutexLock lock(mutex_);
  return busy_ || identity == identity_;
}

bool WriteBack::is_committing() {
  codec::MutexLock lock(mutex_);
  return busy_;
}

std::uint64_t WriteBack::size_below() const {
  return committing_ ? committing_->size() : generation_->view().size();
}

codec::Result<void> WriteBack::check_usable() {
  if (stale_) return codec::stale("another program changed the frame under what was written and not committed");
  return {};
}

codec::Result<void> WriteBack::check_readable() {
  if (!stale_) return {};
  const auto disk = identity_on_disk();
  return disk && has_same_content(*disk) ? codec::Result<void>() : check_usable();
}

void WriteBack::note_dirty() {
  write_time_shown_ = false;
  clock_gettime(CLOCK_REALTIME_COARSE, &last_write_);  // the clock that stamps files
  if (oldest_) return;
  oldest_ = shared_.clock();
  shared_.became_dirty();
}

bool WriteBack::has_same_content(const frame::Identity& disk) const {
  // Another time of change alone: mode, owner or links.
  frame::Identity same = disk;
  same.ctime_ns = identity_.ctime_ns;
  return same == identity_;
}

codec::Result<void> WriteBack::follow() {
  {
    codec::MutexLock lock(mutex_);
    if (stale_ || may_change_file()) return check_usable();
    auto disk = identity_on_disk();
    if (!disk) return codec::Failure(disk.error());
    if (*disk == identity_) return {};
    if (has_same_content(*disk)) {
      note_identity(*disk);
      return {};
    }
    if (busy_) {
      // What is being committed lies over a state that is gone.
      stale_ = true;
      return check_usable();
    }
  }
  return reload();
}

bool WriteBack::is_stale() {
  static_cast<void>(follow());
  codec::MutexLock lock(mutex_);
  return stale_;
}

codec::Result<void> WriteBack::make_room(std::uint64_t bytes) {
  const auto used = [this] { return shared_.dirty_bytes.load(std::memory_order_relaxed); };
  // As much again may be taken by encoded chunks of a commit.
  const std::uint64_t bound = shared_.dirty_limit / 2;
  if (used() + bytes > bound / 2) shared_.wake();
  if (used() + bytes <= bound) return {};
  // A little for each file that has little, so that its program does not wait for the commit of another one's much.
  const std::uint64_t reserve = shared_.dirty_limit / kReserveShare;
  const std::uint64_t little = std::min(kLittleDirty, reserve / 2);
  if (used() + bytes <= bound + reserve && dirty_bytes() + bytes <= little) return {};
  const auto before = generation();
  const auto is_enough = [&] { return used() + bytes <= bound || generation() != before; };
  shared_.make_room(bound - std::min(bytes, bound));
  if (is_enough()) return {};
  {
    // Another thread may be at it: what it leaves is little, and would be stored twice.
    const std::lock_guard commits(commit_mutex_);
  }
  if (is_enough()) return {};
  // What cannot be committed is kept; but there is an end to what is taken besides.
  auto done = commit(frame::Durability::ordered, Extent::complete, Wait::lock);
  if (done && used() + bytes > shared_.dirty_limit) done = commit(frame::Durability::ordered, Extent::all, Wait::lock);
  return done;
}

codec::Result<std::uint64_t> WriteBack::write(std::optional<std::uint64_t> place, codec::ByteView bytes,
                                              ChangePermit& permit, Changer by) {
  if (auto room = make_room(bytes.size()); !room) return codec::Failure(room.error());
  if (auto followed = follow(); !followed) return codec::Failure(followed.error());
  shared_.statistics.writes.fetch_add(1, std::memory_order_relaxed);
  shared_.statistics.bytes_taken.fetch_add(bytes.size(), std::memory_order_relaxed);
  codec::Result<std::uint64_t> done;
  std::uint64_t chunksize = 0;
  {
    codec::MutexLock lock(mutex_);
    wait_for_copy();
    if (auto begun = permit.begin(); !begun) return codec::Failure(begun.error());
    chunksize = dirty_.chunksize();
    const std::uint64_t at = place.value_or(dirty_.size());
    const std::uint64_t before = dirty_.size();
    done = array_ ? write_array(at, bytes) : write_locked(at, bytes, permit);
    // A write that completes what another one has begun leaves nothing to be told.
    if (array_ && (dirty_.size() != before || capped_sum(at, bytes.size()) >= before)) changed_by_ = by;
  }
  permit.end();
  shared_.encoders.help_down_to(this, static_cast<std::size_t>(std::max<std::uint64_t>(kMostWaiting / chunksize, 2)));
  return done;
}

/// Its bytes are there and likely to stay as they are: there is no need to wait with encoding it.
void WriteBack::chunk_filled(const DirtyLayer::Chunk& chunk) {
  filled_bytes_ += dirty_.chunksize();
  if (early_parameters_ && !chunk->early()) shared_.encoders.encode_early(this, *early_parameters_, chunk);
  // The first commit finds out with which parameters, so that it should not be long in coming.
  const std::uint64_t most = early_parameters_ ? kStreamCommit : kFirstCommit;
  if (filled_bytes_ >= std::min(most, shared_.dirty_limit / 2 / kStreamShare)) shared_.wake();
}

codec::Result<void> WriteBack::check_size(std::uint64_t size) const {
  if (array_) return {};  // asked already, and held against its own chunks
  if (size > 0 && (size - 1) / dirty_.chunksize() >= kMostChunks) return codec::io_error(EFBIG, "write");
  return {};
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

/// Writes what goes into one chunk: as a patch where the rest of the chunk would have to be read.
codec::Result<void> WriteBack::write_part(std::int64_t number, std::uint64_t from, codec::ByteView bytes,
                                          ChangePermit& permit) {
  const std::uint64_t chunksize = dirty_.chunksize();
  const std::uint64_t begin = static_cast<std::uint64_t>(number) * chunksize;
  const std::uint64_t to = from + bytes.size();
  // What is written to an array is put together by its commit; its pieces are no chunks.
  const bool lacks_rest = !array_ && dirty_.find(number) == nullptr && begin < dirty_.kept();
  if (lacks_rest && (from != 0 || to < dirty_.length_of(number))) {
    const ChunkPatches& patches = dirty_.patch(number, from, bytes, shared_.dirty_bytes);
    dirty_.grow(begin + to);
    const bool covered = patches.covers(chunksize);
    if (!covered && patches.pieces().size() <= kMostPieces) return {};
    // What is written is there. The rest of the chunk may have to be waited for.
    permit.end();
    auto chunk = assemble(number);
    if (!chunk) return codec::Failure(chunk.error());
    if (covered && (*chunk)->note_written(0, chunksize)) chunk_filled(*dirty_.find(number));
    return permit.begin();
  }
  auto chunk = chunk_to_write(number, from, to);
  if (!chunk) return codec::Failure(chunk.error());
  std::memcpy((*chunk)->bytes().data() + from, bytes.data(), bytes.size());
  dirty_.grow(begin + to);
  if (!array_ && (*chunk)->note_written(from, to)) chunk_filled(*dirty_.find(number));
  return {};
}

DirtyLayer::Chunk WriteBack::new_chunk(std::uint64_t size) const {
  return std::make_shared<DirtyChunk>(shared_.route.pool(), size, shared_.dirty_bytes);
}

codec::Result<DirtyChunk*> WriteBack::chunk_to_write(std::int64_t number, std::uint64_t from, std::uint64_t to) {
  const DirtyLayer::Chunk* known = dirty_.find(number);
  if (known != nullptr && *known) return &dirty_.to_change(number);
  const bool overwrites = from == 0 && to >= dirty_.length_of(number);
  if (known == nullptr && !overwrites) return assemble(number);
  DirtyLayer::Chunk chunk = new_chunk(dirty_.chunksize());
  const codec::ByteSpan rest = chunk->bytes().subspan(known != nullptr ? 0 : to);
  std::fill(rest.begin(), rest.end(), std::uint8_t{0});
  DirtyChunk* raw = chunk.get();
  dirty_.put(number, std::move(chunk));
  return raw;
}

/// The whole chunk as programs see it, of patches and what lies below.
codec::Result<DirtyChunk*> WriteBack::assemble(std::int64_t number) {
  DirtyLayer::Chunk chunk = new_chunk(dirty_.chunksize());
  const std::uint64_t valid = dirty_.length_of(number);
  const std::uint64_t begin = static_cast<std::uint64_t>(number) * dirty_.chunksize();
  if (auto read = copy_view(begin, chunk->bytes().first(valid)); !read) return codec::Failure(read.error());
  const auto rest = chunk->bytes().subspan(valid);
  std::fill(rest.begin(), rest.end(), std::uint8_t{0});
  DirtyChunk* raw = chunk.get();
  dirty_.put(number, std::move(chunk));
  return raw;
}

void WriteBack::touch() {
  std::shared_ptr<const frame::Descriptor> file;
  {
    codec::MutexLock lock(mutex_);
    if (dirty_.differs_from(size_below())) {
      clock_gettime(CLOCK_REALTIME_COARSE, &last_write_);  // the clock that stamps files
      return;
    }
    file = file_;
  }
  // Times of a file that belongs to another user cannot be set.
  static_cast<void>(change_file([&] {
    return shared_.files.set_times(file->fd(), {{{0, UTIME_OMIT}, {0, UTIME_NOW}}});
  }));
}

void WriteBack::note_times(const struct timespec& modified) {
  if (modified.tv_nsec == UTIME_OMIT) return;
  codec::MutexLock lock(mutex_);
  write_time_shown_ = true;
  if (modified.tv_nsec == UTIME_NOW) {
    clock_gettime(CLOCK_REALTIME_COARSE, &last_write_);
  } else {
    last_write_ = modified;
  }
}

codec::Result<void> WriteBack::resize(std::uint64_t size, Changer by) {
  if (auto followed = follow(); !followed) return followed;
  auto changed = change_size(size, by);
  if (!changed) return codec::Failure(changed.error());
  if (!*changed) touch();
  return {};
}

codec::Result<bool> WriteBack::change_size(std::uint64_t size, Changer by) {
  codec::MutexLock lock(mutex_);
  wait_for_copy();
  if (auto usable = check_usable(); !usable) return codec::Failure(usable.error());
  const std::uint64_t before = dirty_.size();
  if (array_) {
    const auto allowed = array_->check_resize(size, before);
    changed_by_ = by;
    awaits_head_ = size == 0 && array_->head_bytes() > 0;
    if (!allowed && size == 0 && array_->head_bytes() > 0) {
      // What makes another array of it comes next, or nothing does.
      awaits_array_ = true;
      return {};
    }
    if (!allowed) return codec::Failure(allowed.error());
    size = *allowed;
  }
  if (auto fits = check_size(size); !fits) return codec::Failure(fits.error());
  if (size == before) return false;
  dirty_.resize(size);
  note_dirty();
  note_head(before);
  // Without anything left to commit, no commit leaves the time of this change.
  return is_dirty();
}

codec::Result<void> WriteBack::zero(std::uint64_t at, std::uint64_t length) {
  const std::uint64_t chunksize = dirty_.chunksize();
  const std::uint64_t end = std::min(capped_sum(at, length), dirty_.size());
  while (at < end) {
    const std::uint64_t from = at % chunksize;
    const std::uint64_t step = std::min(end - at, chunksize - from);
    const auto number = static_cast<std::int64_t>(at / chunksize);
    dirty_.touch(at);
    if (from == 0 && step >= dirty_.length_of(number)) {
      dirty_.put(number, nullptr);
    } else {
      auto chunk = chunk_to_write(number, from, from + step);
      if (!chunk) return codec::Failure(chunk.error());
      const auto hole = (*chunk)->bytes().subspan(from, step);
      std::fill(hole.begin(), hole.end(), std::uint8_t{0});
    }
    note_dirty();
    at += step;
  }
  return {};
}

codec::Result<void> WriteBack::allocate(int mode, std::uint64_t at, std::uint64_t length) {
  constexpr int kKnown = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE;
  if ((mode & ~kKnown) != 0) return codec::io_error(EOPNOTSUPP, "fallocate");
  if (length == 0) return codec::io_error(EINVAL, "fallocate");
  if (auto room = make_room(0); !room) return room;
  if (auto followed = follow(); !followed) return followed;
  codec::MutexLock lock(mutex_);
  wait_for_copy();
  if (auto usable = check_usable(); !usable) return usable;
  const std::uint64_t end = capped_sum(at, length);
  const std::uint64_t before = dirty_.size();
  if (array_) {
    if (auto allowed = array_->check_allocate(mode, at, length, before); !allowed) return allowed;
  }
  if ((mode & FALLOC_FL_KEEP_SIZE) == 0) {
    if (auto fits = check_size(end); !fits) return fits;
  }
  if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0) {
    if (auto zeroed = zero(at, length); !zeroed) return zeroed;
  }
  // Room that is promised: what compressed chunks will take nobody knows, so the promise is the size alone.
  if ((mode & FALLOC_FL_KEEP_SIZE) == 0 && end > dirty_.size()) {
    dirty_.resize(end);
    note_dirty();
    note_head(before);
  }
  return {};
}

/// Segments in order; neighbours that come from the same place become one.
class WriteBack::SegmentList {
 public:
  using Source = Segment::Source;

  void add(Source source, std::uint64_t begin, std::uint64_t end, const std::uint8_t* bytes = nullptr) {
    if (begin >= end) return;
    if (source != Source::held && !found_.empty() && found_.back().source == source) {
      found_.back().length += end - begin;
    } else {
      found_.push_back({source, begin, end - begin, bytes});
    }
  }
  /// [begin, end) of the chunk that begins at `chunk_begin`.
  void add_chunk(const DirtyLayer::Chunk& chunk, std::uint64_t chunk_begin, std::uint64_t begin, std::uint64_t end) {
    if (chunk) {
      add(Source::held, begin, end, chunk->bytes().data() + (begin - chunk_begin));
    } else {
      add(Source::zeros, begin, end);
    }
  }
  /// [at, end), which lies in one chunk, as `layer` has it over `below`; null: over the committed frame.
  void add_view(const DirtyLayer& layer, const DirtyLayer* below, std::uint64_t at, std::uint64_t end) {
    const auto add_below = [&](std::uint64_t from, std::uint64_t to) {
      const std::uint64_t kept = std::clamp(layer.kept(), from, to);
      if (below == nullptr) {
        add(Source::stored, from, kept);
      } else if (from < kept) {
        add_view(*below, nullptr, from, kept);
      }
      add(Source::zeros, kept, to);
    };
    const auto number = static_cast<std::int64_t>(at / layer.chunksize());
    const std::uint64_t begin = at / layer.chunksize() * layer.chunksize();
    if (const DirtyLayer::Chunk* chunk = layer.find(number)) {
      add_chunk(*chunk, begin, at, end);
      return;
    }
    if (const ChunkPatches* patches = layer.find_patches(number)) {
      for (const auto& [from, piece] : patches->pieces()) {
        const std::uint64_t first = std::clamp(begin + from, at, end);
        const std::uint64_t last = std::clamp(begin + from + piece.size(), at, end);
        if (first >= last) continue;
        add_below(at, first);
        add(Source::held, first, last, piece.data() + (first - begin - from));
        at = last;
      }
    }
    add_below(at, end);
  }
  std::vector<Segment> take() { return std::move(found_); }

 private:
  std::vector<Segment> found_;
};

std::vector<WriteBack::Segment> WriteBack::segments(std::uint64_t at, std::uint64_t length) const {
  SegmentList list;
  const std::uint64_t chunksize = dirty_.chunksize();
  for (const std::uint64_t end = at + length; at < end;) {
    const std::uint64_t stop = std::min(end, (at / chunksize + 1) * chunksize);
    list.add_view(dirty_, committing_ ? &*committing_ : nullptr, at, stop);
    at = stop;
  }
  return list.take();
}

codec::Result<void> WriteBack::copy_view(std::uint64_t at, codec::ByteSpan out) {
  for (const Segment& segment : segments(at, out.size())) {
    const codec::ByteSpan into = out.subspan(segment.begin - at, segment.length);
    switch (segment.source) {
      case Segment::Source::zeros:
        std::fill(into.begin(), into.end(), std::uint8_t{0});
        break;
      case Segment::Source::held:
        std::memcpy(into.data(), segment.bytes, into.size());
        break;
      case Segment::Source::stored: {
        Reply reply{ReadPermit::without_turn()};
        auto done = shared_.route.read(*generation_, frame::FlatOffset{segment.begin}, segment.length, reply);
        if (!done) return done;
        if (reply.size() != segment.length) return codec::corrupt("the frame is shorter than its header says");
        reply.copy_to(into.data());
        break;
      }
    }
  }
  return {};
}

codec::Result<void> WriteBack::read(std::uint64_t at, std::uint64_t length, Reply& reply,
                                    const std::function<void(const std::shared_ptr<const Generation>&)>& note) {
  struct Part {
    Segment segment;
    Buffer copy;
  };
  for (int attempt = 1;; ++attempt) {
    // A stale file is read as long as it is there: another one has its name.
    if (auto followed = follow(); !followed && followed.error().kind != codec::ErrorKind::stale) return followed;
    std::vector<Part> parts;
    std::shared_ptr<const Generation> generation;
    std::uint64_t foreign_states = 0;
    {
      codec::MutexLock lock(mutex_);
      if (auto there = check_readable(); !there) return there;
      if (at >= dirty_.size()) return {};
      generation = generation_;
      foreign_states = foreign_states_;
      const std::uint64_t end = at + std::min(length, dirty_.size() - at);
      std::uint64_t behind = at;
      if (array_ && at < array_->head_bytes()) {
        behind = std::min(array_->head_bytes(), end);
        parts.push_back({{Segment::Source::held, at, behind - at, nullptr}, copy_head(at, behind - at)});
      }
      for (const Segment& segment : segments(behind, end - behind)) {
        parts.push_back({segment, {}});
        if (segment.source != Segment::Source::held) continue;
        parts.back().copy = shared_.route.pool().get(segment.length);
        std::memcpy(parts.back().copy.bytes().data(), segment.bytes, segment.length);
      }
    }
    codec::Result<void> done;
    for (Part& part : parts) {
      if (!done) break;
      const std::uint64_t before = reply.size();
      if (part.segment.source == Segment::Source::zeros) {
        reply.add_zeros(part.segment.length);
      } else if (part.segment.source == Segment::Source::held) {
        reply.add(std::move(part.copy), part.segment.length);
      } else {
        note(generation);
        done = shared_.route.read(*generation, frame::FlatOffset{part.segment.begin}, part.segment.length, reply);
      }
      if (done && reply.size() - before != part.segment.length) done = codec::corrupt("the frame ended early");
    }
    {
      // States that we have left are still there; only somebody else can have written over what was read.
      codec::MutexLock lock(mutex_);
      if (foreign_states_ == foreign_states) {
        if (may_change_file() || generation_ != generation) return done;
        auto disk = identity_on_disk();
        if (!disk || has_same_content(*disk)) return done;
      }
      if (stale_ || attempt == kViewAttempts)
        return codec::stale("another program changed the frame while it was read");
    }
    reply.clear();
  }
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
