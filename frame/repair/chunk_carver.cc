#include "frame/repair/chunk_carver.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

#include "codec/chunk_decoder.h"
#include "frame/cframe/frame_layout.h"
#include "frame/container/chunk_prefix.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::load_be;
using codec::load_le;

constexpr std::size_t kHeader = codec::kExtendedHeaderLength;
constexpr std::size_t kSearchWindow = std::size_t{1} << 20;
/// The format versions of chunks in frames (chunk.md section 1.1).
constexpr std::uint8_t kFirstVersion = 3;
constexpr std::uint8_t kLastVersion = 6;
constexpr std::uint8_t kExtended = 0x05;
constexpr std::size_t kEntry = sizeof(std::int64_t);
/// The most uncompressed bytes of a chunk for each stored byte, so that a few stray bytes cannot claim gigabytes.
constexpr std::uint64_t kMaxFoundExpansion = 1 << 16;
/// A block is decoded in memory. It may have this many bytes, or this many times the stored bytes of its chunk.
constexpr std::uint64_t kFreeFoundBlock = std::uint64_t{32} << 20;
constexpr std::uint64_t kMaxBlockExpansion = 64;
/// Bytes that may be read and decoded for candidates that are not chunks: this many, plus this many for each stored
/// byte of the file.
constexpr std::uint64_t kFreeWaste = std::uint64_t{256} << 20;
constexpr std::uint64_t kWastePerByte = 8;
/// The most entries of an index if no header tells the number of chunks.
constexpr std::uint64_t kFreeEntries = std::uint64_t{1} << 20;

class ChunkCarver {
  /// Decides whether the uncompressed bytes of a chunk are an index of chunks found before.
  class IndexCheck {
   public:
    IndexCheck(const ChunkCarver& finder, bool possible)
        : finder_(finder), possible_(possible && !finder.found_.chunks.empty()) {
      const std::uint64_t known =
          finder.search_.most_chunks > 0 ? static_cast<std::uint64_t>(finder.search_.most_chunks) : kFreeEntries;
      most_ = std::min(known, kFreeEntries + finder.source_.size());
    }

    /// Adds the next uncompressed bytes of the chunk.
    void add_bytes(ByteView plain) {
      if (plain.size() % kEntry != 0) possible_ = false;
      for (std::size_t at = 0; possible_ && at < plain.size(); at += kEntry)
        possible_ = add_entry(load_le<std::int64_t>(&plain[at]));
      if (!possible_) entries_ = {};
    }
    /// Returns true if the chunk is an index. REQUIRES: all bytes of the chunk were added.
    bool is_index() {
      if (!possible_ || least_ < 0) return false;
      if (finder_.search_.begin_known) return true;
      // Entries count from the end of the header. If this offset is unknown, the smallest entry is assumed to be that
      // of the first chunk found.
      const auto first = static_cast<std::int64_t>(finder_.found_.chunks.front().offset - finder_.search_.begin);
      for (std::int64_t& entry : entries_) {
        if (entry >= 0) entry += first - least_;
        if (entry >= 0 && !finder_.offsets_.contains(entry)) return false;
      }
      return true;
    }
    std::vector<std::int64_t> release_entries() { return std::move(entries_); }

   private:
    bool add_entry(std::int64_t entry) {
      if (entries_.size() == most_) return false;
      const bool special =
          entry == layout::kZerosEntry || entry == layout::kNanEntry || entry == layout::kUninitialisedEntry;
      if (!special) {
        if (entry < 0 || entry > static_cast<std::int64_t>(finder_.source_.size())) return false;
        if (finder_.search_.begin_known && !finder_.offsets_.contains(entry)) return false;
        least_ = least_ < 0 ? entry : std::min(least_, entry);
      }
      entries_.push_back(entry);
      return true;
    }

    const ChunkCarver& finder_;
    bool possible_;
    std::uint64_t most_ = 0;
    std::int64_t least_ = -1;
    std::vector<std::int64_t> entries_;
  };

 public:
  ChunkCarver(const ByteSource& source, const ChunkSearch& search)
      : source_(source), search_(search), waste_left_(kFreeWaste + kWastePerByte * source.stored()) {}

  Result<FoundChunks> run() {
    std::uint64_t at = search_.begin;
    while (source_.size() >= kHeader && at <= source_.size() - kHeader) {
      if (!is_in_window(at)) {
        // No chunk begins in a hole of the file.
        if (const std::uint64_t hole = source_.zeros(FileOffset{at}); hole > 0) {
          at += hole;
          continue;
        }
        if (auto there = load(at); !there) return Failure(there.error());
      }
      const auto skip = static_cast<std::size_t>(at - begin_);
      std::size_t next = skip;
      while (next + kHeader <= window_.size() && !plausible(&window_[next]))
        next += 1 + zeros_behind(next);
      at = begin_ + next;
      if (next + kHeader > window_.size()) continue;
      cost_ = 0;
      const auto length = examine(at);
      if (!length) return Failure(length.error());
      at += std::max<std::uint64_t>(*length, 1);
      if (*length > 0) continue;
      if (cost_ > waste_left_) {
        found_.given_up_at = at;
        break;
      }
      waste_left_ -= cost_;
    }
    return std::move(found_);
  }

 private:
  /// Returns true if the window holds the bytes of a header at `at`.
  bool is_in_window(std::uint64_t at) const { return at >= begin_ && at + kHeader <= begin_ + window_.size(); }

  Result<void> load(std::uint64_t at) {
    window_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kSearchWindow, source_.size() - at)));
    begin_ = at;
    return source_.read(FileOffset{at}, window_);
  }

  /// Returns how many bytes after byte `at` of the window are zeros, in steps of 4096, to skip zeros quickly.
  std::size_t zeros_behind(std::size_t at) const {
    constexpr std::size_t kStep = 4096;
    if (window_[at] != 0) return 0;
    std::size_t zeros = 0;
    while (at + zeros + 1 + kStep <= window_.size() &&
           std::memcmp(&window_[at + zeros], &window_[at + zeros + 1], kStep) == 0)
      zeros += kStep;
    return zeros;
  }

  /// Returns false if the header cannot be that of a chunk. A cheap check before examine().
  static bool plausible(const std::uint8_t* header) {
    if (header[0] < kFirstVersion || header[0] > kLastVersion) return false;
    if ((header[2] & kExtended) != kExtended || header[3] == 0) return false;
    return load_le<std::int32_t>(header + 4) > 0 && load_le<std::int32_t>(header + 8) > 0 &&
           load_le<std::int32_t>(header + 12) >= static_cast<std::int32_t>(kHeader);
  }

  /// Returns the stored length of the chunk at `at`, or 0 if no chunk begins there. Adds the chunk to found_ if it
  /// belongs to the frame.
  Result<std::uint64_t> examine(std::uint64_t at) {
    std::array<std::uint8_t, kHeader> first{};
    if (auto done = source_.read(FileOffset{at}, first); !done) return Failure(done.error());
    const auto header = codec::parse_chunk_header(first);
    if (!header) return std::uint64_t{0};
    const auto cbytes = static_cast<std::uint64_t>(header->cbytes);
    const auto nbytes = static_cast<std::uint64_t>(header->nbytes);
    if (cbytes > source_.size() - at || nbytes / kMaxFoundExpansion > cbytes) return std::uint64_t{0};
    const bool as_data = could_be_data(*header);
    const bool as_index = header->typesize == kEntry && header->nbytes % kEntry == 0;
    if (!as_data && !as_index) return std::uint64_t{0};
    IndexCheck index(*this, as_index);
    const auto whole = decode(at, *header, index, first);
    if (!whole) return Failure(whole.error());
    if (!*whole) return std::uint64_t{0};
    if (is_metalayer(at, cbytes)) return cbytes;
    if (index.is_index()) {
      found_.index_entries = index.release_entries();
      return cbytes;
    }
    if (!as_data) return std::uint64_t{0};
    if (search_.typesize == 0) search_.typesize = header->typesize;
    found_.chunks.push_back({at, cbytes, header->nbytes, header->typesize});
    offsets_.insert(static_cast<std::int64_t>(at - search_.begin));
    return cbytes;
  }

  bool could_be_data(const codec::ChunkHeader& header) const {
    const std::int32_t typesize = search_.typesize > 255 ? 1 : search_.typesize;
    if (typesize != 0 && header.typesize != typesize) return false;
    return search_.most_nbytes <= 0 || header.nbytes <= search_.most_nbytes;
  }

  /// Decodes the chunk block by block and adds the blocks to `index`. Returns false if the chunk does not decode.
  Result<bool> decode(std::uint64_t at, const codec::ChunkHeader& header, IndexCheck& index, ByteView head) {
    const auto decoder = parse_chunk(source_, FileOffset{at}, header, head, {.frame_typesize = search_.typesize});
    cost_ += codec::ChunkDecoder::tables_size(header);
    if (!decoder) return decoder.error().kind == ErrorKind::io ? Result<bool>(Failure(decoder.error())) : false;
    const std::uint64_t most =
        std::max(kFreeFoundBlock, kMaxBlockExpansion * static_cast<std::uint64_t>(header.cbytes));
    std::size_t done = 0;
    for (std::uint32_t block = 0; block < decoder->block_count(); ++block) {
      const codec::ByteRange stored = decoder->stored_range(block);
      const auto size = static_cast<std::size_t>(decoder->block_range(block).size());
      if (size > most) return false;
      cost_ += stored.size() + size;
      stored_.resize(static_cast<std::size_t>(stored.size()));
      if (auto read = source_.read(FileOffset{at + stored.begin}, stored_); !read) return Failure(read.error());
      codec::UninitializedBytes& plain = block == 0 ? first_ : plain_;
      plain.resize(size);
      if (!decoder->decode_block(context_, block, stored_, plain, first_)) return false;
      index.add_bytes(plain);
      done += size;
    }
    return done == decoder->nbytes();
  }

  /// Returns true if the chunk is the content of a metalayer: the marker and the length of a content precede it.
  bool is_metalayer(std::uint64_t at, std::uint64_t cbytes) const {
    std::array<std::uint8_t, layout::kContentPrefix> prefix{};
    if (at < prefix.size() || !source_.read(FileOffset{at - prefix.size()}, prefix)) return false;
    return prefix[0] == layout::kBin32 && load_be<std::uint32_t>(&prefix[1]) == cbytes;
  }

  const ByteSource& source_;
  ChunkSearch search_;
  FoundChunks found_;
  std::unordered_set<std::int64_t> offsets_;
  std::uint64_t begin_ = 0;
  std::vector<std::uint8_t> window_;
  codec::UninitializedBytes stored_;
  codec::UninitializedBytes first_;  // uncompressed block 0, which other blocks may refer to
  codec::UninitializedBytes plain_;  // another uncompressed block
  std::uint64_t waste_left_;         // bytes that may still be read and decoded for candidates that are not chunks
  std::uint64_t cost_ = 0;           // bytes read and decoded for the current candidate
  codec::DecodeContext context_;
};

}  // namespace

Result<FoundChunks> find_chunks(const ByteSource& source, const ChunkSearch& search) {
  return ChunkCarver(source, search).run();
}

}  // namespace cframefs::frame
