#include "fs/read/read_ahead.h"

#include <algorithm>

namespace cframefs::fs {
namespace {

// The largest distance from the expected offset, either way, at which a read belongs to the same stream: the kernel has
// a few requests of up to 1 MiB in flight.
constexpr std::uint64_t kSlack = std::uint64_t{2} << 20;
// Bytes that one task decodes, about: large enough to pay for itself, small enough to spread over the workers.
constexpr std::uint64_t kTaskBytes = std::uint64_t{512} << 10;
constexpr std::uint64_t kMaxTaskBytes = std::uint64_t{2} << 20;
// A reader of an array is sequential if it reads at least 1/4 of the bytes that it passes.
constexpr std::uint64_t kSkippedShare = 4;
// Bytes to decode ahead for each thread. More would leave the processor's cache before it is read.
constexpr std::uint64_t kThreadShare = std::uint64_t{1} << 20;
// Uncompressed bytes ahead of the reader whose compressed bytes are fetched, and how many are fetched at a time.
constexpr std::uint64_t kFetchAhead = std::uint64_t{12} << 20;
constexpr std::uint64_t kFetchStep = std::uint64_t{4} << 20;

/// Returns the bytes of a task. Tasks end where chunks of one size end, so that no two workers share a chunk
/// needlessly.
std::uint64_t task_bytes(const FrameSnapshot& snapshot) {
  if (snapshot.view().array() != nullptr) return kTaskBytes;
  const std::int32_t chunksize = snapshot.container().parameters().chunksize;
  if (chunksize <= 0) return kTaskBytes;
  const auto size = static_cast<std::uint64_t>(chunksize);
  if (size > kMaxTaskBytes) return kTaskBytes;
  return size >= kTaskBytes ? size : kTaskBytes / size * size;
}

}  // namespace

ReadAhead::Shared::Shared(ReadPath& r, WorkerPool& w, std::optional<std::uint64_t> limit, unsigned decoders)
    : read_path(r), workers(w), readahead(limit_for(limit, decoders)) {}

std::uint64_t ReadAhead::limit_for(std::optional<std::uint64_t> limit, unsigned decoders) {
  return limit.value_or((decoders + 1) * kThreadShare);
}

ReadAhead::ReadAhead(Shared& shared) : shared_(shared), reader_(std::make_shared<Reader>()) {}

ReadAhead::~ReadAhead() {
  codec::MutexLock lock(mutex_);
  jump(0);
}

void ReadAhead::jump(std::uint64_t end) {
  if (window_ != 0) shared_.sequential_readers.fetch_sub(1, std::memory_order_relaxed);
  window_ = 0;
  next_ = end;
  begin_ = end;
  read_ = 0;
  scheduled_ = end;
  fetched_ = end;
  reader_->epoch.fetch_add(1, std::memory_order_relaxed);
}

/// Returns how many bytes ahead of this reader may be decoded without being evicted before they are read.
std::uint64_t ReadAhead::most_ahead(const FrameSnapshot& snapshot) const {
  const std::uint64_t readers = std::max<std::uint64_t>(1, shared_.sequential_readers.load(std::memory_order_relaxed));
  const BlockCache& cache = shared_.read_path.cache();
  const std::uint64_t usual = std::min(shared_.readahead, cache.staging_bytes() / (2 * readers));
  const frame::ArrayGeometry* array = snapshot.view().array();
  if (array == nullptr) return usual;
  const std::uint64_t room = cache.bound() / 4 * 3 / (2 * readers);
  return array->slab_block_bytes() <= room ? std::max(usual, array->slab_bytes()) : usual;
}

void ReadAhead::fetch(const FrameSnapshot& snapshot, std::uint64_t end, Ahead& ahead) {
  const std::uint64_t begin = std::max(fetched_, end);
  if (begin - end >= kFetchAhead || begin >= snapshot.view().size()) return;
  ahead.fetch_begin = begin;
  ahead.fetch_end = std::min(begin + kFetchStep, snapshot.view().size());
  fetched_ = ahead.fetch_end;
}

ReadPath::AccessPattern ReadAhead::follow(const FrameSnapshot& snapshot, std::uint64_t at, std::uint64_t length,
                                          Ahead& ahead) {
  using AccessPattern = ReadPath::AccessPattern;
  const std::uint64_t end = at + length;
  const bool near = at + kSlack >= next_ && at <= next_ + kSlack;
  if (snapshot.id() != snapshot_ || !near) {
    snapshot_ = snapshot.id();
    jump(end);
    // A program that begins at offset 0 usually continues from there.
    return at == 0 ? AccessPattern::any : AccessPattern::random;
  }
  // An older request of the same stream, or a repeated read.
  if (end <= next_) return window_ == 0 ? AccessPattern::any : AccessPattern::sequential;
  if (at < next_ && window_ == 0 && next_ - at > length) {
    jump(end);
    return AccessPattern::random;
  }
  next_ = end;
  read_ += length;
  const bool is_array = snapshot.view().array() != nullptr;
  if (is_array && read_ * kSkippedShare < end - begin_) return AccessPattern::any;
  reader_->position.store(at, std::memory_order_relaxed);
  if (window_ == 0) {
    shared_.sequential_readers.fetch_add(1, std::memory_order_relaxed);
    window_ = length;
  }
  if (!is_array && shared_.readahead != 0) fetch(snapshot, end, ahead);
  const std::uint64_t most = most_ahead(snapshot);
  const std::uint64_t step = task_bytes(snapshot);
  // Bytes decoded now would be evicted before they are read.
  if (shared_.readahead == 0 || most < step) return AccessPattern::sequential;
  window_ = std::min(window_ * 2, most);
  ahead.begin = std::max(scheduled_, end);
  // Whole steps only, so that tasks are not queued for slivers.
  ahead.end = std::min((end + window_) / step * step, snapshot.view().size());
  if (end + window_ >= snapshot.view().size()) ahead.end = snapshot.view().size();
  if (ahead.end > ahead.begin) scheduled_ = ahead.end;
  ahead.epoch = reader_->epoch.load(std::memory_order_relaxed);
  return AccessPattern::sequential;
}

ReadPath::AccessPattern ReadAhead::note(const std::shared_ptr<const FrameSnapshot>& snapshot, std::uint64_t at,
                                        std::uint64_t length) {
  Ahead ahead;
  ReadPath::AccessPattern pattern = ReadPath::AccessPattern::any;
  {
    codec::MutexLock lock(mutex_);
    pattern = follow(*snapshot, at, length, ahead);
  }
  if (ahead.fetch_begin < ahead.fetch_end) {
    shared_.workers.post([snapshot, begin = ahead.fetch_begin, length = ahead.fetch_end - ahead.fetch_begin] {
      snapshot->prefetch(frame::FlatOffset{begin}, length);
    });
  }
  const std::uint64_t step = task_bytes(*snapshot);
  while (ahead.begin < ahead.end) {
    const std::uint64_t begin = ahead.begin;
    const std::uint64_t stop = std::min((begin / step + 1) * step, ahead.end);
    shared_.workers.post(
        [&read_path = shared_.read_path, reader = reader_, snapshot, begin, stop, epoch = ahead.epoch] {
          const auto wanted = [&reader, epoch, stop] {
            return reader->epoch.load(std::memory_order_relaxed) == epoch &&
                   reader->position.load(std::memory_order_relaxed) < stop;
          };
          if (wanted()) read_path.decode_ahead(*snapshot, frame::FlatOffset{begin}, stop - begin, wanted);
        });
    ahead.begin = stop;
  }
  return pattern;
}

}  // namespace cframefs::fs
