// Encodes the chunks of commits on all workers: ahead of the commit as soon as a program has filled a chunk, and what
// is left when it comes, which is then handed over in order.
//
// A chunk that is encoded early goes from waiting (in the queue) to running to done; the commit that wants it takes the
// result, waits for it, or, if nobody has begun, does it itself. What nobody wants any more (the program has written
// over the chunk, or cut it off) is let go with the chunk.
//
// Thread safety: all members may be called at once; encode_in_order() encodes itself, too, and comes to its end even if
// no worker ever helps. Ownership: a chunk owns its early encoding, the queue knows chunks weakly; what a task still
// needs it shares. Errors: the first one, of encoding or of `take`.
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

struct ChunkToEncode {
  std::int64_t number = 0;
  DirtyLayer::Chunk chunk;  // null: zeros, unless there is `make`
  std::uint64_t length = 0;
  /// Gives the plain bytes where the chunk is encoded, so that not all of them need be there at once; any thread's.
  std::function<codec::Result<Buffer>()> make = nullptr;
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
  ChunkEncoders(WorkerPool& workers, unsigned helpers, Statistics& statistics)
      : workers_(workers), helpers_(helpers), statistics_(statistics), turns_(helpers + 1) {}

  /// The file that a chunk belongs to: an address, for comparison alone.
  using Owner = const void*;

  /// Has a whole chunk encoded when there is time for it. Its bytes must not change any more. Files take turns.
  void encode_early(Owner owner, const codec::EncodeParameters& parameters, const DirtyLayer::Chunk& chunk);
  /// Encodes chunks of that file until at most `most` of them wait: for a writer that fills them faster than they are
  /// encoded.
  void drain_to(Owner owner, std::size_t most);

  using Take = std::function<codec::Result<void>(std::int64_t number, codec::EncodedChunk encoded)>;
  /// Calls `take` from the calling thread for each chunk, in the order given. Chunks are released as they are encoded.
  codec::Result<void> encode_in_order(const codec::EncodeParameters& parameters, std::vector<ChunkToEncode> chunks,
                                      const Take& take);

 private:
  struct Work;
  using Encoded = codec::Result<codec::EncodedChunk>;

  using Waiting = std::map<Owner, std::deque<std::shared_ptr<Preencode>>>;

  void run_next();
  bool run_waiting(Owner owner, std::size_t most);
  Encoded encode(const codec::EncodeParameters& parameters, codec::ByteView plain);
  Encoded encode(const codec::EncodeParameters& parameters, const ChunkToEncode& chunk);
  std::optional<Encoded> take_early(Preencode& early);

  WorkerPool& workers_;
  const unsigned helpers_;
  Statistics& statistics_;
  codec::Turns turns_;  // of threads that encode: commits of many files at once must not take all processors' time
  codec::EncodeContextPool contexts_;
  codec::Mutex mutex_;
  codec::CondVar done_;
  Waiting waiting_ GUARDED_BY(mutex_);             // an empty queue goes when its turn comes
  Owner last_owner_ GUARDED_BY(mutex_) = nullptr;  // whose chunk a worker took last
};

}  // namespace cframefs::fs
