// Encodes the chunks of a commit on all workers, and hands them over in order.
//
// Thread safety: encode_in_order() may run on several threads at once, for different commits; it encodes itself, too,
// and comes to its end even if no worker ever helps. Ownership: what a task still needs it shares. Errors: the first
// one, of encoding or of `take`.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "codec/chunk_encoder.h"
#include "fs/dirty_layer.h"
#include "fs/worker_pool.h"

namespace cframefs::fs {

struct ChunkToEncode {
  std::int64_t number = 0;
  DirtyLayer::Chunk chunk;  // null: zeros
  std::uint64_t length = 0;
  /// Makes the chunk where it is encoded, so that not all of them need be there at once; then `chunk` is null.
  std::function<codec::Result<DirtyLayer::Chunk>()> make = nullptr;
};

class ChunkEncoders {
 public:
  ChunkEncoders(WorkerPool& workers, unsigned helpers) : workers_(workers), helpers_(helpers) {}

  using Take = std::function<codec::Result<void>(std::int64_t number, codec::EncodedChunk encoded)>;
  /// Calls `take` from the calling thread for each chunk, in the order given. Chunks are released as they are encoded.
  codec::Result<void> encode_in_order(const codec::EncodeParameters& parameters, std::vector<ChunkToEncode> chunks,
                                      const Take& take);

 private:
  struct Work;

  WorkerPool& workers_;
  const unsigned helpers_;
  codec::EncodeContextPool contexts_;
};

}  // namespace cframefs::fs
