// Encodes the index chunk of a frame from its entries, in order, a block at a time.
//
// A block is 2,048 entries, shuffled and compressed into eight LZ4 streams, one for each byte of an entry. Blocks are
// independent of each other, so a commit that changes few entries of a large index reuses the other encoded blocks. If
// all entries are equal (a file that is one hole), the chunk has 40 bytes for any number of entries.
//
// Thread safety: one thread. Ownership: encoded blocks are shared with the caller, which keeps them for the next
// commit. Units: entries. Memory: that of the encoded blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/stream/encode_context.h"

namespace cframefs::frame {

class IndexEncoder {
 public:
  static constexpr std::int64_t kBlockEntries = 2048;
  /// The most entries that an index chunk can hold.
  static constexpr std::int64_t kMaxEntries = (0x7fffffff - 32) / 8;

  struct EncodedBlock {
    std::vector<std::uint8_t> streams;
    std::optional<std::int64_t> uniform;  // set if all entries have this value
  };
  using Block = std::shared_ptr<const EncodedBlock>;

  void append(std::int64_t entry);
  /// Appends `entry` `count` times.
  void append_run(std::int64_t entry, std::int64_t count);
  void append_all(std::span<const std::int64_t> entries);
  /// Appends a block of another encoder. REQUIRES: count() is a multiple of kBlockEntries.
  void append_block(const Block& block);

  std::int64_t count() const;
  /// Returns the chunk. REQUIRES: 0 < count() <= kMaxEntries; the caller appends nothing afterwards.
  std::vector<std::uint8_t> finish();
  /// Moves the full blocks out, in order.
  std::vector<Block> take_blocks() { return std::move(blocks_); }

 private:
  void close_block();
  void note(std::int64_t entry);
  std::vector<std::uint8_t> repeated() const;
  std::vector<std::uint8_t> memcpyed() const;
  std::vector<std::uint8_t> compressed();
  void put_stream(std::vector<std::uint8_t>& to, codec::ByteView plain);
  std::vector<std::uint8_t> split_streams();
  std::vector<std::uint8_t> leftover_stream();

  codec::EncodeContext context_;
  std::vector<Block> blocks_;
  std::vector<std::int64_t> open_;  // entries of the block that is not full
  Block last_uniform_;              // shared by all equal blocks
  std::optional<std::int64_t> first_;
  bool uniform_ = true;  // all entries so far equal `first_`
};

}  // namespace cframefs::frame
