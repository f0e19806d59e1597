// Makes the index chunk of a frame from its entries, in order, a block at a time.
//
// A block is 2,048 entries, shuffled and made into eight streams of LZ4, one for each byte of an entry. Blocks do not
// depend on each other: a commit that changes few entries of a large index takes the other blocks as they were made
// before. Entries that are all alike (a file that is one hole) make a chunk of 40 bytes, however many they are.
//
// Thread safety: one thread. Ownership: encoded blocks are shared with whoever keeps them for the next commit.
// Units: entries. Memory: that of the encoded blocks.
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
  /// No index chunk holds more.
  static constexpr std::int64_t kMaxEntries = (0x7fffffff - 32) / 8;

  struct EncodedBlock {
    std::vector<std::uint8_t> streams;
    std::optional<std::int64_t> uniform;  // all entries are this one
  };
  using Block = std::shared_ptr<const EncodedBlock>;

  void append(std::int64_t entry);
  /// `count` times the same.
  void append_run(std::int64_t entry, std::int64_t count);
  void append_all(std::span<const std::int64_t> entries);
  /// A block that another encoder made. REQUIRES: count() is a multiple of kBlockEntries.
  void append_block(const Block& block);

  std::int64_t count() const;
  /// The whole chunk. REQUIRES: 0 < count() <= kMaxEntries; nothing is appended afterwards.
  std::vector<std::uint8_t> finish();
  /// The blocks that are full, in order.
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
  Block last_uniform_;              // shared by all blocks like it
  std::optional<std::int64_t> first_;
  bool uniform_ = true;  // all entries so far are `first_`
};

}  // namespace cframefs::frame
