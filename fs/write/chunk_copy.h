// Stores compressed chunks of another frame in a write-back and commits them at once, without decoding.
//
// Programs that would change the file wait until the copy is committed (Progress::copying): their writes may have to
// overwrite the copied bytes.
//
// Thread safety: one thread per object; copies into the same write-back exclude each other. Ownership: borrows the
// write-back. Errors: those of WriteBack.
#pragma once

#include <cstdint>
#include <vector>

#include "fs/write/write_back.h"

namespace cframefs::fs {

/// Chunks in compressed form from another frame; all but the last one are whole.
struct CopiedChunks {
  frame::NewFrame like;  // parameters of that frame
  std::vector<codec::EncodedChunk> chunks;
  std::uint64_t nbytes = 0;
};

class ChunkCopy {
 public:
  explicit ChunkCopy(WriteBack& file) : file_(file) {}

  /// Stores the chunks in place of the bytes from `at` on, and commits. An empty frame with placeholder parameters gets
  /// those of the chunks if `may_remake`. Returns false, with nothing done, if the chunks do not fit there.
  codec::Result<bool> store(std::uint64_t at, CopiedChunks copied, bool may_remake, ChangePermit& permit);

 private:
  enum class Start : std::uint8_t { begun, unfit, dirty, behind };

  bool has_open_parameters() const;
  bool fits(std::uint64_t at, std::uint64_t size, const CopiedChunks& copied, bool may_remake) const;
  codec::Result<Start> begin(std::uint64_t at, const CopiedChunks& copied, bool may_remake);
  codec::Result<void> commit(std::uint64_t at, CopiedChunks copied, ChangePermit& permit);
  void finish(codec::Result<void>& done, std::uint64_t end) REQUIRES(file_.mutex_);

  WriteBack& file_;
};

}  // namespace cframefs::fs
