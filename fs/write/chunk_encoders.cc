#include "fs/write/chunk_encoders.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "codec/base/mutex.h"
#include "fs/util/no_memory.h"

namespace cframefs::fs {
namespace {

// How many chunks each worker may be ahead of the chunks taken.
constexpr std::size_t kAheadOfEach = 4;

}  // namespace

struct ChunkEncoders::Work {
  Work(ChunkEncoders& e, const codec::EncodeParameters& p, std::vector<ChunkToEncode> c)
      : encoders(e), parameters(p), chunks(std::move(c)), results(chunks.size()) {}

  ChunkEncoders& encoders;
  const codec::EncodeParameters parameters;
  std::vector<ChunkToEncode> chunks;  // each is used by the thread that claimed it
  codec::Mutex mutex;
  codec::CondVar done;
  std::vector<std::optional<Encoded>> results GUARDED_BY(mutex);
  std::size_t next GUARDED_BY(mutex) = 0;    // the first unclaimed chunk
  std::size_t taken GUARDED_BY(mutex) = 0;   // chunks handed over
  std::size_t active GUARDED_BY(mutex) = 0;  // chunks that are being encoded
  bool stopped GUARDED_BY(mutex) = false;

  /// Claims a chunk to encode. Returns nullopt if none is left or the encoders are `ahead` chunks ahead.
  std::optional<std::size_t> claim(std::size_t ahead) {
    codec::MutexLock lock(mutex);
    if (stopped || next >= chunks.size() || next > taken + ahead) return std::nullopt;
    ++active;
    return next++;
  }

  void encode(std::size_t index) {
    Encoded result = or_no_memory([&] { return encoders.encode(parameters, chunks[index]); });
    chunks[index].chunk.reset();
    chunks[index].make = nullptr;
    chunks[index].patch = nullptr;
    {
      codec::MutexLock lock(mutex);
      results[index] = std::move(result);
      --active;
    }
    done.notify_all();
  }
};

ChunkEncoders::Encoded ChunkEncoders::encode(const codec::EncodeParameters& parameters, codec::ByteView plain) {
  const codec::Turns::Turn turn = turns_.take();
  const codec::EncodeContextPool::PooledPtr context = contexts_.acquire();
  Encoded encoded = codec::encode_chunk(*context, parameters, plain);
  statistics_.chunks_encoded.fetch_add(1, std::memory_order_relaxed);
  statistics_.bytes_encoded.fetch_add(plain.size(), std::memory_order_relaxed);
  return encoded;
}

ChunkEncoders::Encoded ChunkEncoders::encode(const codec::EncodeParameters& parameters, const ChunkToEncode& chunk) {
  if (chunk.chunk) {
    const auto early = chunk.chunk->early();
    if (early && chunk.length == chunk.chunk->size()) {
      // A failure may have passed since, as of an allocation.
      if (auto encoded = take_early(*early); encoded && *encoded) return std::move(*encoded);
    }
    const codec::ByteView held = chunk.chunk->bytes();
    if (chunk.length > held.size()) return encode(parameters, chunk.chunk->first(chunk.length));
    return encode(parameters, held.first(chunk.length));
  }
  if (chunk.patch) {
    if (auto encoded = encode_patched(parameters, chunk)) return std::move(*encoded);
  }
  if (chunk.make) {
    const auto made = chunk.make();
    if (!made) return codec::Failure(made.error());
    return encode(parameters, made->bytes().first(chunk.length));
  }
  // Readers before 3.0 expect a whole number of items in a special chunk.
  if (chunk.length % static_cast<std::uint64_t>(parameters.typesize) != 0) {
    return encode(parameters, std::vector<std::uint8_t>(chunk.length));
  }
  Encoded zeros;
  zeros->special = codec::SpecialValue::zeros;
  zeros->nbytes = static_cast<std::int32_t>(chunk.length);
  return zeros;
}

/// Returns nullopt if the chunk must be encoded as a whole.
std::optional<ChunkEncoders::Encoded> ChunkEncoders::encode_patched(const codec::EncodeParameters& parameters,
                                                                    const ChunkToEncode& chunk) {
  const auto patched = chunk.patch(parameters);
  if (!patched) return codec::Failure(patched.error());
  if (!*patched) return std::nullopt;
  const codec::Turns::Turn turn = turns_.take();
  const codec::EncodeContextPool::PooledPtr context = contexts_.acquire();
  Encoded encoded = codec::encode_with_kept_blocks(*context, parameters, (*patched)->plain.bytes().first(chunk.length),
                                                   (*patched)->kept);
  if (encoded && encoded->bytes.empty()) return std::nullopt;
  statistics_.chunks_encoded.fetch_add(1, std::memory_order_relaxed);
  statistics_.bytes_encoded.fetch_add(chunk.length - (*patched)->kept_bytes, std::memory_order_relaxed);
  return encoded;
}

void ChunkEncoders::encode_early(Owner owner, const codec::EncodeParameters& parameters,
                                 const DirtyLayer::Chunk& chunk) {
  auto early = std::make_shared<Preencode>();
  early->parameters = parameters;
  early->chunk = chunk;
  chunk->set_early(early);
  {
    codec::MutexLock lock(mutex_);
    waiting_[owner].push_back(std::move(early));
  }
  // If the task cannot be posted, the commit encodes the chunk.
  try_in_memory([this] { workers_.post([this] { run_next(); }); });
}

void ChunkEncoders::drain_to(Owner owner, std::size_t most) {
  while (run_waiting(owner, most)) {
  }
}

/// Encodes a chunk of the next file in turn.
void ChunkEncoders::run_next() {
  for (;;) {
    Owner owner = nullptr;
    {
      codec::MutexLock lock(mutex_);
      if (waiting_.empty()) return;
      const auto next = waiting_.upper_bound(last_owner_);
      owner = last_owner_ = next != waiting_.end() ? next->first : waiting_.begin()->first;
    }
    if (run_waiting(owner, 0)) return;
  }
}

/// Encodes the oldest waiting chunk of the file if more than `most` wait. Returns false if no more than `most` do.
bool ChunkEncoders::run_waiting(Owner owner, std::size_t most) {
  std::shared_ptr<Preencode> early;
  DirtyLayer::Chunk chunk;
  {
    codec::MutexLock lock(mutex_);
    while (!chunk) {
      const auto queue = waiting_.find(owner);
      if (queue == waiting_.end()) return false;
      if (queue->second.size() <= most) {
        if (queue->second.empty()) waiting_.erase(queue);
        return false;
      }
      early = std::move(queue->second.front());
      queue->second.pop_front();
      if (early->state == Preencode::State::waiting) chunk = early->chunk.lock();
    }
    early->state = Preencode::State::running;
  }
  Encoded encoded = or_no_memory([&] { return encode(early->parameters, chunk->bytes()); });
  {
    codec::MutexLock lock(mutex_);
    early->result = std::move(encoded);
    early->state = Preencode::State::done;
  }
  done_.notify_all();
  return true;
}

/// Returns the result of an early encoding once: a commit that is retried encodes again. Returns nullopt if no thread
/// has begun; no other thread will begin then.
std::optional<ChunkEncoders::Encoded> ChunkEncoders::take_early(Preencode& early) {
  using State = Preencode::State;
  codec::MutexLock lock(mutex_);
  while (early.state == State::running)
    done_.wait(mutex_);
  if (std::exchange(early.state, State::taken) != State::done) return std::nullopt;
  return std::move(early.result);
}

codec::Result<void> ChunkEncoders::encode_in_order(const codec::EncodeParameters& parameters,
                                                   std::vector<ChunkToEncode> chunks, const Store& store) {
  const auto work = std::make_shared<Work>(*this, parameters, std::move(chunks));
  const std::size_t count = work->chunks.size();
  const std::size_t ahead = kAheadOfEach * (helpers_ + 1);
  codec::Result<void> result;
  for (std::size_t index = 0; index < count && result; ++index) {
    const std::int64_t number = work->chunks[index].number;
    // A helper stops when it is far enough ahead; it is posted again when there is room.
    if (index % kAheadOfEach == 0) {
      const auto help = [work, ahead] {
        while (const auto claimed = work->claim(ahead))
          work->encode(*claimed);
      };
      for (unsigned i = 0; i < std::min<std::size_t>(helpers_, count - index - 1); ++i)
        try_in_memory([&] { workers_.post(help); });
    }
    codec::Result<codec::EncodedChunk> encoded;
    for (bool ready = false; !ready;) {
      {
        codec::MutexLock lock(work->mutex);
        if (work->results[index]) {
          encoded = std::move(*work->results[index]);
          work->results[index].reset();
          ++work->taken;
          break;
        }
      }
      if (const auto claimed = work->claim(ahead)) {
        work->encode(*claimed);
        continue;
      }
      codec::MutexLock lock(work->mutex);
      while (!work->results[index])
        work->done.wait(work->mutex);
    }
    result = or_no_memory([&]() -> codec::Result<void> {
      if (!encoded) return codec::Failure(encoded.error());
      return store(number, std::move(*encoded));
    });
  }
  codec::MutexLock lock(work->mutex);
  work->stopped = true;
  // After an error the chunks return to their owner, which may change them.
  while (work->active > 0)
    work->done.wait(work->mutex);
  return result;
}

}  // namespace cframefs::fs
