#include "tools/frame_packer.h"

#include <algorithm>
#include <cerrno>

#include "frame/new_frame_file.h"
#include "tools/chunk_blocks.h"
#include "tools/ordered_ring.h"

namespace cframefs::tools {

using codec::Result;

namespace {

constexpr std::size_t kChunksPerWorker = 3;
constexpr std::size_t kMostMemory = std::size_t{1} << 30;  // of plain bytes, but never less than two chunks

struct Slot {
  RawBuffer buffer;
  codec::ByteView plain;
  Result<codec::EncodedChunk> chunk;
};

std::size_t slot_count(unsigned workers, std::size_t chunksize) {
  return std::clamp<std::size_t>(kMostMemory / chunksize, 2, kChunksPerWorker * workers);
}

}  // namespace

Result<Packed> pack_frame(Input& input, const frame::NewFrame& frame, frame::FileOps& files, int fd, unsigned workers,
                          const std::function<void(const Packed&)>& progress, const std::atomic<bool>& stop) {
  const auto chunksize = static_cast<std::size_t>(frame.chunksize);
  frame::NewFrameFile file(files, fd, frame);
  OrderedRing<Slot, codec::EncodeContext> ring(workers, slot_count(workers, chunksize),
                                               [&frame](codec::EncodeContext& context, Slot& slot) {
                                                 slot.chunk = codec::encode_chunk(context, frame.encode, slot.plain);
                                               });
  bool ended = false;
  while (!ended || !ring.empty()) {
    if (stop.load()) return codec::io_error(EINTR, "pack");
    while (!ended && !ring.full()) {
      Slot& slot = ring.free();
      const codec::ByteSpan buffer = slot.buffer.of(chunksize);
      const auto got = input.read(buffer);
      if (!got) return codec::Failure(got.error());
      ended = *got < chunksize;
      if (*got == 0) break;
      slot.plain = buffer.first(*got);
      ring.push();
    }
    if (ring.empty()) break;
    const Slot& slot = ring.oldest();
    if (!slot.chunk) return codec::Failure(slot.chunk.error());
    if (auto put = file.append(*slot.chunk); !put) return codec::Failure(put.error());
    ring.release();
    progress({file.nbytes(), file.stored()});
  }
  if (auto done = file.finish(); !done) return codec::Failure(done.error());
  return Packed{file.nbytes(), file.stored()};
}

}  // namespace cframefs::tools
