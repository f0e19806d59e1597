// Writes a whole new frame into an empty file, chunk after chunk, in one go and in large writes.
//
// The header is written last: until finish() has answered, the file is no frame. To change a frame that exists, see
// frame_writer.h.
//
// Thread safety: one thread. Ownership: borrows the file operations and the descriptor. Errors: io; invalid (more
// chunks than an index holds, or one that does not fit behind the others); after one the file is to be thrown away.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/chunk_encoder.h"
#include "frame/file_ops.h"
#include "frame/frame_container.h"
#include "frame/frame_image.h"
#include "frame/index_encoder.h"
#include "frame/tail_writer.h"

namespace cframefs::frame {

class NewFrameFile {
 public:
  /// REQUIRES: as empty_frame().
  NewFrameFile(FileOps& files, int fd, const NewFrame& frame);

  /// All chunks but the last have the frame's chunksize.
  Result<void> append(const codec::EncodedChunk& chunk);

  /// All chunks of a frame of today as they are, in its place. corruption of a chunk's header or the index;
  /// unsupported, for chunks that share bytes. REQUIRES: nothing was appended; the chunksize is that of `from`.
  Result<void> take_chunks(const FrameContainer& from);

  /// Index, trailer, header. `vlmetalayers`: plain contents.
  Result<void> finish(const std::vector<Metalayer>& vlmetalayers = {});

  /// Plain bytes so far, and what they took, header included.
  std::uint64_t nbytes() const { return nbytes_; }
  std::uint64_t stored() const { return out_.position(); }

 private:
  FileOps& files_;
  const int fd_;
  const std::int32_t chunksize_;
  std::vector<std::uint8_t> header_;
  TailWriter out_;
  IndexEncoder index_;
  std::uint64_t nbytes_ = 0;
};

}  // namespace cframefs::frame
