#include "fs/chunk_encoders.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "codec/mutex.h"

namespace cframefs::fs {
namespace {

// How far workers may be ahead of what has been taken, for each of them.
constexpr std::size_t kAheadOfEach = 4;

}  // namespace

struct ChunkEncoders::Work {
  using Encoded = std::optional<codec::Result<codec::EncodedChunk>>;

  Work(codec::EncodeContextPool& pool, const codec::EncodeParameters& p, std::vector<ChunkToEncode> c)
      : contexts(pool), parameters(p), chunks(std::move(c)), results(chunks.size()) {}

  codec::EncodeContextPool& contexts;
  const codec::EncodeParameters parameters;
  std::vector<ChunkToEncode> chunks;  // each belongs to the thread that claimed it
  codec::Mutex mutex;
  codec::Condition done;
  std::vector<Encoded> results GUARDED_BY(mutex);
  std::size_t next GUARDED_BY(mutex) = 0;    // the first that nobody has claimed
  std::size_t taken GUARDED_BY(mutex) = 0;   // how many have been handed over
  std::size_t active GUARDED_BY(mutex) = 0;  // chunks that are being encoded
  bool stopped GUARDED_BY(mutex) = false;

  /// A chunk to encode, or none if there is nothing to do as things are.
  std::optional<std::size_t> claim(std::size_t ahead) {
    codec::MutexLock lock(mutex);
    if (stopped || next >= chunks.size() || next > taken + ahead) return std::nullopt;
    ++active;
    return next++;
  }

  void encode(std::size_t index) {
    ChunkToEncode& chunk = chunks[index];
    codec::Result<codec::EncodedChunk> result;
    codec::Result<void> made;
    if (chunk.make) {
      auto plain = chunk.make();
      if (plain)
        chunk.chunk = std::move(*plain);
      else
        made = codec::Failure(plain.error());
      chunk.make = nullptr;
    }
    if (!made) {
      result = codec::Failure(made.error());
    } else if (chunk.chunk) {
      const codec::EncodeContextPool::Lease context = contexts.acquire();
      result = codec::encode_chunk(*context, parameters, chunk.chunk->bytes().first(chunk.length));
      chunk.chunk.reset();
    } else if (chunk.length % static_cast<std::uint64_t>(parameters.typesize) == 0) {
      result->special = codec::SpecialValue::zeros;
      result->nbytes = static_cast<std::int32_t>(chunk.length);
    } else {
      // Readers before 3.0 want whole items in a special chunk.
      const codec::EncodeContextPool::Lease context = contexts.acquire();
      result = codec::encode_chunk(*context, parameters, std::vector<std::uint8_t>(chunk.length));
    }
    {
      codec::MutexLock lock(mutex);
      results[index] = std::move(result);
      --active;
    }
    done.notify_all();
  }
};

codec::Result<void> ChunkEncoders::encode_in_order(const codec::EncodeParameters& parameters,
                                                   std::vector<ChunkToEncode> chunks, const Take& take) {
  const auto work = std::make_shared<Work>(contexts_, parameters, std::move(chunks));
  const std::size_t count = work->chunks.size();
  const std::size_t ahead = kAheadOfEach * (helpers_ + 1);
  codec::Result<void> result;
  for (std::size_t index = 0; index < count && result; ++index) {
    const std::int64_t number = work->chunks[index].number;
    // A helper stops where it is far enough ahead; it is called again when there is room for it.
    if (index % kAheadOfEach == 0) {
      for (unsigned i = 0; i < std::min<std::size_t>(helpers_, count - index - 1); ++i) {
        workers_.post([work, ahead] {
          while (const auto claimed = work->claim(ahead))
            work->encode(*claimed);
        });
      }
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
    result = encoded ? take(number, std::move(*encoded)) : codec::Result<void>(codec::Failure(encoded.error()));
  }
  codec::MutexLock lock(work->mutex);
  work->stopped = true;
  // After an error the chunks are their owner's again, who may go on changing them.
  while (work->active > 0)
    work->done.wait(work->mutex);
  return result;
}

}  // namespace cframefs::fs
