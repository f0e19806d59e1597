// Part of one chunk, decoded into one buffer: what `cat` and `verify` do to every chunk.
//
// Thread safety: each thread has a BlockDecoder of its own. Ownership: keeps scratch memory between calls.
// Errors: those of the reader, with chunk and file offset.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "codec/stream/decode_context.h"
#include "frame/container/chunk_reader.h"
#include "fs/util/byte_budget.h"

namespace cframefs::tools {

/// Memory that is not cleared first, because it is written right after. Keeps the largest size it ever had, up to
/// `keep`; more than that is given back with the next smaller request.
class RawBuffer {
 public:
  codec::ByteSpan of(std::size_t size);
  /// Gives the memory back if it is more than `keep` bytes.
  void trim(std::size_t keep);

 private:
  std::unique_ptr<std::uint8_t[]> memory_;
  std::size_t capacity_ = 0;
};

class BlockDecoder {
 public:
  /// `large`: memory that all decoders given the same take together for large blocks that they check, where what is
  /// stored does not justify it; null: no bound.
  explicit BlockDecoder(fs::ByteBudget* large = nullptr) : large_(large) {}

  /// Plain bytes [begin, begin + out.size()) of the chunk. REQUIRES: begin + out.size() <= nbytes of the chunk.
  codec::Result<void> decode(const frame::ChunkReader& reader, std::uint32_t begin, codec::ByteSpan out);

  /// Decodes all blocks, some at a time, and keeps none of them. Waits for memory if they are large.
  codec::Result<void> check(const frame::ChunkReader& reader);

 private:
  codec::Result<void> check_blocks(const frame::ChunkReader& reader);
  codec::Result<codec::ByteView> reference(const frame::ChunkReader& reader, std::uint32_t first);

  fs::ByteBudget* const large_;
  codec::DecodeContext context_;
  RawBuffer reference_, edges_[2], checked_;
};

}  // namespace cframefs::tools
