// Encodes the chunks of commits on all workers: early, as soon as a program has filled a chunk, or when the commit
// comes. Hands the encoded chunks over in order.
//
// A chunk that is encoded early goes from waiting (in the queue) to running to done. The commit takes the result, waits
// for it, or, if no thread has begun, encodes the chunk itself. A chunk that is no longer needed (a program has
// overwritten it or cut it off) is dropped from the queue when it is destroyed.
//
// Thread safety: all members may be called concurrently; encode_in_order() encodes chunks itself, too, and finishes
// even if no worker ever helps. Ownership: a chunk owns its early encoding; the queue has weak pointers to chunks; a
// task shares what it needs. Errors: the first error of encoding or of `store`.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "codec/base/mutex.h"
#include "codec/base/turns.h"
#include "codec/chunk_encoder.h"
#include "fs/util/statistics.h"
#include "fs/util/worker_pool.h"
#include "fs/write/dirty_layer.h"

namespace cframefs::fs {

/// A new version of a chunk, and the version before it as stored, of which it keeps blocks.
struct PatchedChunk {
  Buffer plain;  // the bytes of blocks that are kept are undefined
  Buffer earlier;
  std::vector<codec::ByteView> kept;  // as for encode_with_kept_blocks(), views of `earlier`
  std::uint64_t kept_bytes = 0;       // uncompressed
};

struct ChunkToEncode {
  std::int64_t number = 0;
  DirtyLayer::Chunk chunk;  // null: zeros, unless `make` is set
  std::uint64_t length = 0;
  /// Returns the uncompressed bytes when the chunk is encoded, so that not all chunks are in memory at once. Called by
  /// any thread.
  std::function<codec::Result<Buffer>()> make = nullptr;
  /// If set, tried before `make`. Returns nullopt if no block can be kept.
  std::function<codec::Result<std::optional<PatchedChunk>>(const codec::EncodeParameters&)> patch = nullptr;
};

/// A chunk that is encoded before a commit asks for it. Members change under the mutex of ChunkEncoders.
struct Preencode {
  enum class State : std::uint8_t { waiting, running, done, taken };
  codec::EncodeParameters parameters;
  std::weak_ptr<DirtyChunk> chunk;
  State state = State::waiting;
  codec::Result<codec::EncodedChunk> result;
};

class ChunkEncoders {
 public:
  ChunkEncoders(WorkerPool& workers, unsigned helpers, WritingStatistics& statistics)
      : workers_(workers), helpers_(helpers), statistics_(statistics), turns_(helpers + 1) {}

  /// Identifies the file that a chunk belongs to: an address, for comparison only.
  using Owner = const void*;

  /// Frees contexts that are not in use.
  void release_memory() { contexts_.clear(); }
  /// Queues a whole chunk, whose bytes must not change any more, for encoding. Files take turns.
  void encode_early(Owner owner, const codec::EncodeParameters& parameters, const DirtyLayer::Chunk& chunk);
  /// Encodes chunks of the file until at most `most` of them wait. Writers that outpace the encoders call this
  /// (back-pressure).
  void drain_to(Owner owner, std::size_t most);

  using Store = std::function<codec::Result<void>(std::int64_t number, codec::EncodedChunk encoded)>;
  /// Encodes `chunks` and calls `store` in the calling thread for each, in order. Releases chunks as they are encoded.
  codec::Result<void> encode_in_order(const codec::EncodeParameters& parameters, std::vector<ChunkToEncode> chunks,
                                      const Store& store);

 private:
  struct Work;
  using Encoded = codec::Result<codec::EncodedChunk>;

  using Waiting = std::map<Owner, std::deque<std::shared_ptr<Preencode>>>;

  void run_next();
  bool run_waiting(Owner owner, std::size_t most);
  Encoded encode(const codec::EncodeParameters& parameters, codec::ByteView plain);
  Encoded encode(const codec::EncodeParameters& parameters, const ChunkToEncode& chunk);
  std::optional<Encoded> encode_patched(const codec::EncodeParameters& parameters, const ChunkToEncode& chunk);
  std::optional<Encoded> take_early(Preencode& early);

  WorkerPool& workers_;
  const unsigned helpers_;
  WritingStatistics& statistics_;
  codec::Turns turns_;  // limits the threads that encode: commits of many files must not take all processors
  codec::EncodeContextPool contexts_;
  codec::Mutex mutex_;
  codec::CondVar done_;
  Waiting waiting_ GUARDED_BY(mutex_);             // an empty queue is removed at its turn
  Owner last_owner_ GUARDED_BY(mutex_) = nullptr;  // the file whose chunk a worker took last
};

}  // namespace cframefs::fs
