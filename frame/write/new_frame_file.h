// Writes a new frame into an empty file, chunk by chunk, in large writes.
//
// The header is written last: until finish() has returned, the file is not a frame. To change an existing frame, see
// frame_writer.h. Each byte is written once: header and seal are gaps until then.
//
// Thread safety: one thread. Ownership: borrows the target. Errors: io; invalid (more
// chunks than an index can hold, or a chunk of a wrong length). After an error the caller must discard the file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "codec/chunk_encoder.h"
#include "frame/cframe/frame_container.h"
#include "frame/cframe/frame_encoding.h"
#include "frame/cframe/index_encoder.h"
#include "frame/container/chunk_reader.h"
#include "frame/io/buffered_appender.h"
#include "frame/io/write_target.h"
#include "frame/write/seal_writer.h"

namespace cframefs::frame {

class RunningXxh3;

class NewFrameFile {
 public:
  /// REQUIRES: `frame` as for empty_frame().
  NewFrameFile(WriteTarget& target, const NewFrame& frame);

  /// Appends a chunk. All chunks but the last must have the frame's chunksize.
  Result<void> append(const codec::EncodedChunk& chunk);

  /// Appends a copy of the chunk as stored. REQUIRES: it is stored.
  Result<void> append_stored(const ChunkReader& chunk);

  /// Returns the index entry of the last appended chunk. REQUIRES: a chunk was appended.
  std::int64_t last_entry() const { return last_entry_; }
  /// Appends `count` chunks of `nbytes` uncompressed bytes, all with this index entry: of a special chunk, or of a
  /// chunk that was appended before.
  Result<void> append_run(std::int64_t entry, std::int32_t nbytes, std::int64_t count);
  /// As append_run(), which says why if this returns false. Faster, for runs of few chunks.
  bool try_append_run(std::int64_t entry, std::int32_t nbytes, std::int64_t count);

  /// Copies all chunks of a frame without decoding them. Errors: corruption of a chunk's header or
  /// the index; unsupported if chunks share bytes. REQUIRES: nothing was appended, nor is later; the chunksize is that
  /// of `from`.
  Result<void> take_chunks(const FrameContainer& from);

  /// Writes index, trailer and header. `vlmetalayers`: uncompressed contents.
  Result<void> finish(const std::vector<Metalayer>& vlmetalayers = {});
  /// Does the same with contents that are already encoded: calls `content` for each metalayer in turn, and keeps none
  /// in memory. stale: a content has not the length in `vlmetalayers`.
  using ContentOf = std::function<Result<std::vector<std::uint8_t>>(std::size_t number)>;
  Result<void> finish(const std::vector<MetalayerLength>& vlmetalayers, const ContentOf& content);

  /// Return the uncompressed bytes and the stored bytes so far, the header included.
  std::uint64_t nbytes() const { return nbytes_; }
  std::uint64_t stored() const { return out_.position(); }

 private:
  Result<void> put_trailer(const std::vector<MetalayerLength>& vlmetalayers, const ContentOf& content,
                           RunningXxh3& digest);

  WriteTarget& target_;
  const std::int32_t chunksize_;
  std::vector<std::uint8_t> header_;
  BufferedAppender out_;
  IndexEncoder index_;
  std::unique_ptr<SealWriter> seal_;  // null: the frame gets no seal
  std::int64_t last_entry_ = 0;
  std::uint64_t nbytes_ = 0;
  bool ends_short_ = false;  // the last chunk has less than chunksize_ bytes: none may follow
};

}  // namespace cframefs::frame
