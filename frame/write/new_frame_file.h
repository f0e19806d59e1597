// Writes a whole new frame into an empty file, chunk after chunk, in one go and in large writes.
//
// The header is written last: until finish() has answered, the file is no frame. To change a frame that exists, see
// frame_writer.h.
//
// Thread safety: one thread. Ownership: borrows the file operations and the descriptor. Errors: io; invalid (more
// chunks than an index holds, or one that does not fit behind the others); after one the file is to be thrown away.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "codec/chunk_encoder.h"
#include "frame/cframe/frame_container.h"
#include "frame/cframe/frame_encoding.h"
#include "frame/cframe/index_encoder.h"
#include "frame/io/buffered_appender.h"
#include "frame/io/file_ops.h"

namespace cframefs::frame {

class NewFrameFile {
 public:
  /// REQUIRES: as empty_frame().
  NewFrameFile(FileOps& files, int fd, const NewFrame& frame);

  /// All chunks but the last have the frame's chunksize.
  Result<void> append(const codec::EncodedChunk& chunk);

  /// A chunk as it is stored elsewhere, of `cbytes` bytes and `nbytes` plain ones.
  Result<void> append_stored(const ByteSource& source, FileOffset at, std::uint64_t cbytes, std::int32_t nbytes);

  /// The index entry of the chunk that was appended last. REQUIRES: there is one.
  std::int64_t last_entry() const { return last_entry_; }
  /// `count` chunks of `nbytes` plain bytes that are not stored, or are one that is: `entry` says so.
  Result<void> append_run(std::int64_t entry, std::int32_t nbytes, std::int64_t count);

  /// All chunks of a frame of today as they are, in its place. corruption of a chunk's header or the index;
  /// unsupported, for chunks that share bytes. REQUIRES: nothing was appended; the chunksize is that of `from`.
  Result<void> take_chunks(const FrameContainer& from);

  /// Index, trailer, header. `vlmetalayers`: plain contents.
  Result<void> finish(const std::vector<Metalayer>& vlmetalayers = {});
  /// The same with the chunks of variable-length metalayers as they are stored elsewhere: `content` is asked for each
  /// in turn, and none is kept. stale: one has another length than was said.
  using ContentOf = std::function<Result<std::vector<std::uint8_t>>(std::size_t number)>;
  Result<void> finish(const std::vector<MetalayerLength>& vlmetalayers, const ContentOf& content);

  /// Plain bytes so far, and what they took, header included.
  std::uint64_t nbytes() const { return nbytes_; }
  std::uint64_t stored() const { return out_.position(); }

 private:
  Result<void> put_trailer(const std::vector<MetalayerLength>& vlmetalayers, const ContentOf& content);

  FileOps& files_;
  const int fd_;
  const std::int32_t chunksize_;
  std::vector<std::uint8_t> header_;
  BufferedAppender out_;
  IndexEncoder index_;
  std::int64_t last_entry_ = 0;
  std::uint64_t nbytes_ = 0;
};

}  // namespace cframefs::frame
