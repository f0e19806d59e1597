// Decodes a part of one chunk into one buffer, as `cat` and `verify` do for every chunk.
//
// Thread safety: each thread has its own BlockDecoder. Ownership: keeps scratch memory between calls.
// Errors: those of the reader, with chunk and file offset.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "codec/stream/decode_context.h"
#include "frame/container/chunk_reader.h"
#include "fs/util/byte_budget.h"

namespace cframefs::tools {

/// Memory that is not cleared, because the caller overwrites it. Keeps its largest size; more than 64 MiB is freed at
/// the next smaller request.
class RawBuffer {
 public:
  codec::ByteSpan of(std::size_t size);
  /// Frees the memory if it exceeds `keep` bytes.
  void trim(std::size_t keep);

 private:
  std::unique_ptr<std::uint8_t[]> memory_;
  std::size_t capacity_ = 0;
};

class BlockDecoder {
 public:
  /// `large`: a budget that decoders share in check(), for large blocks whose size the stored bytes do not justify;
  /// nullptr: no limit.
  explicit BlockDecoder(fs::ByteBudget* large = nullptr) : large_(large) {}

  /// Decodes bytes [begin, begin + out.size()) of the chunk. REQUIRES: begin + out.size() <= nbytes of the chunk.
  codec::Result<void> decode(const frame::ChunkReader& reader, std::uint32_t begin, codec::ByteSpan out);

  /// Decodes all blocks, some at a time, and discards them. Waits for the budget if they are large.
  codec::Result<void> check(const frame::ChunkReader& reader);

 private:
  codec::Result<void> check_blocks(const frame::ChunkReader& reader);
  codec::Result<codec::ByteView> reference(const frame::ChunkReader& reader, std::uint32_t first);

  fs::ByteBudget* const large_;
  codec::DecodeContext context_;
  RawBuffer reference_, edges_[2], checked_;
};

}  // namespace cframefs::tools
