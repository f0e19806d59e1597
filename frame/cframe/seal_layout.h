// The stored parts of a seal: the seal itself, the root and the pages of digests. Format: frame/doc/seal.md.
//
// Thread safety: functions and plain values. Units: bytes; places are offsets from the first byte of the frame. Errors:
// corruption.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"

namespace cframefs::frame {

/// Bytes of a seal. It ends where the trailer begins.
inline constexpr std::size_t kSealLength = 104;

/// Where a part of the seal lies, and its digest.
struct SealedPart {
  std::uint64_t place = 0;
  std::uint32_t length = 0;
  std::uint64_t digest = 0;
};

struct Seal {
  // What the seal is bound to: the state of a frame whose chunks it describes.
  std::uint64_t header_length = 0;
  std::uint64_t nbytes = 0;
  std::uint64_t cbytes = 0;
  std::uint64_t chunk_count = 0;
  std::uint64_t index_digest = 0;
  SealedPart root;
  // Not bound: other programs change header and trailer without touching a chunk.
  std::uint64_t header_digest = 0;
  std::uint64_t trailer_digest = 0;
};

std::vector<std::uint8_t> encode_seal(const Seal& seal);
/// Returns nullopt if `bytes`, kSealLength of them, are no seal that this release knows.
std::optional<Seal> parse_seal(codec::ByteView bytes);

/// A page has the digests of some chunks: `first` and those that follow it.
struct SealPage {
  std::int64_t first = 0;
  SealedPart part;
};

std::vector<std::uint8_t> encode_root(std::span<const SealPage> pages);
/// Returns the pages in the order of their chunks.
codec::Result<std::vector<SealPage>> parse_root(codec::ByteView bytes);

/// The digests of consecutive chunks, by their numbers in a page. Memory: 16 bytes for each chunk, 8 for each digest.
class PageDigests {
 public:
  std::size_t chunk_count() const { return chunks_.size(); }
  /// Returns the digests of a chunk; none if it has none. REQUIRES: number < chunk_count().
  std::span<const std::uint64_t> at(std::size_t number) const;
  /// Sets the digests of a chunk. Those that it had stay in memory.
  void set(std::size_t number, std::span<const std::uint64_t> digests);
  /// Forgets the chunks from `count` on.
  void cut(std::size_t count);
  bool has_any() const;

 private:
  struct Range {
    std::size_t begin = 0;
    std::size_t length = 0;
  };
  std::vector<Range> chunks_;
  std::vector<std::uint64_t> values_;
};
std::vector<std::uint8_t> encode_page(const PageDigests& chunks);

/// A parsed page: a number of chunks n, n + 1 indices into what follows, and the digests of chunk i from index i to
/// index i + 1. One vector, so that caches hold it.
using ParsedPage = std::vector<std::int64_t>;
codec::Result<ParsedPage> parse_page(codec::ByteView bytes);
/// Returns the digests of the chunk that is `number`-th in the page; none if the page has none.
std::span<const std::int64_t> digests_in(const ParsedPage& page, std::int64_t number);

/// Returns the digest of a page's bytes.
std::uint64_t page_digest(std::int64_t first, codec::ByteView bytes);

}  // namespace cframefs::frame
