// The new version of a stored chunk into which programs have written, or whose length changes. If the blocks of both
// versions have the same form, only those that changed are decoded and encoded again: a program that appends a record
// to a log and calls fsync(2) pays for one block instead of a chunk.
//
// Thread safety: immutable. Ownership: shares the snapshot and the patches. Errors: those of reading the stored chunk;
// corruption: it has fewer bytes than the frame says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "codec/format/encode_parameters.h"
#include "fs/read/read_path.h"
#include "fs/write/chunk_encoders.h"
#include "fs/write/chunk_patches.h"

namespace cframefs::fs {

class ChunkPatching {
 public:
  struct Extent {
    std::int64_t number = 0;
    std::uint64_t length = 0;  // of the new version
    std::uint64_t kept = 0;    // bytes at its beginning that come from the stored chunk, unless a patch has them
    std::uint64_t most = 0;    // the greater one of `length` and the length of the stored chunk
  };

  /// `patches`: may be null.
  ChunkPatching(ReadPath& read_path, std::shared_ptr<const FrameSnapshot> snapshot, const Extent& extent,
                std::shared_ptr<const ChunkPatches> patches);

  /// Returns the uncompressed bytes; the buffer has Extent::most of them.
  codec::Result<Buffer> whole() const;
  /// Returns the bytes of the blocks that changed, and the others as stored. nullopt: no block can be kept.
  codec::Result<std::optional<PatchedChunk>> changed_blocks(const codec::EncodeParameters& parameters) const;

 private:
  std::vector<bool> unchanged(const codec::ChunkDecoder& earlier) const;
  bool is_unchanged(const codec::ByteRange& block) const;
  void put_patches(Buffer& plain) const;
  codec::Failure too_short(std::uint64_t found) const;

  ReadPath& read_path_;
  const std::shared_ptr<const FrameSnapshot> snapshot_;
  const Extent extent_;
  const std::shared_ptr<const ChunkPatches> patches_;
};

}  // namespace cframefs::fs
