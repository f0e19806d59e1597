#include "frame/chunk_search.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "codec/chunk_decoder.h"
#include "frame/frame_layout.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::load_be;
using codec::load_le;

constexpr std::size_t kHeader = codec::kExtendedHeaderLength;
constexpr std::size_t kSearchWindow = std::size_t{1} << 20;
/// Chunks in frames are of these versions (chunk.md section 1.1).
constexpr std::uint8_t kFirstVersion = 3;
constexpr std::uint8_t kLastVersion = 6;
constexpr std::uint8_t kExtended = 0x05;
constexpr std::size_t kEntry = sizeof(std::int64_t);
/// So many times what it takes in the file a chunk may hold: a few stray bytes must not make gigabytes be decoded.
constexpr std::uint64_t kMaxExpansion = 1 << 16;

class Finder {
 public:
  Finder(const ByteSource& source, const ChunkSearch& search) : source_(source), search_(search) {}

  Result<FoundChunks> run() {
    std::uint64_t at = search_.begin;
    while (source_.size() >= kHeader && at <= source_.size() - kHeader) {
      if (auto there = fill(at); !there) return Failure(there.error());
      const std::size_t skip = static_cast<std::size_t>(at - begin_);
      std::size_t next = skip;
      while (next + kHeader <= window_.size() && !plausible(&window_[next]))
        ++next;
      at = begin_ + next;
      if (next + kHeader > window_.size()) continue;
      const auto length = take(at);
      if (!length) return Failure(length.error());
      at += std::max<std::uint64_t>(*length, 1);
    }
    return std::move(found_);
  }

 private:
  /// Makes the window hold a header's length from `at`.
  Result<void> fill(std::uint64_t at) {
    if (at >= begin_ && at + kHeader <= begin_ + window_.size()) return {};
    window_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kSearchWindow, source_.size() - at)));
    begin_ = at;
    return source_.read(FileOffset{at}, window_);
  }

  /// The cheap part of the question whether a chunk begins here.
  bool plausible(const std::uint8_t* header) const {
    if (header[0] < kFirstVersion || header[0] > kLastVersion) return false;
    if ((header[2] & kExtended) != kExtended || header[3] == 0) return false;
    return load_le<std::int32_t>(header + 4) > 0 && load_le<std::int32_t>(header + 8) > 0 &&
           load_le<std::int32_t>(header + 12) >= static_cast<std::int32_t>(kHeader);
  }

  /// Length of the chunk at `at`, which is kept if it is one of the frame's; 0 if there is none.
  Result<std::uint64_t> take(std::uint64_t at) {
    std::array<std::uint8_t, kHeader> first{};
    if (auto done = source_.read(FileOffset{at}, first); !done) return Failure(done.error());
    const auto header = codec::parse_chunk_header(first);
    if (!header) return std::uint64_t{0};
    const auto cbytes = static_cast<std::uint64_t>(header->cbytes);
    const auto nbytes = static_cast<std::uint64_t>(header->nbytes);
    if (cbytes > source_.size() - at || nbytes / kMaxExpansion > cbytes) return std::uint64_t{0};
    const bool as_data = could_be_data(*header);
    const bool as_index = header->typesize == kEntry && header->nbytes % kEntry == 0;
    if (!as_data && !as_index) return std::uint64_t{0};
    const auto whole = decode(at, cbytes);
    if (!whole) return Failure(whole.error());
    if (!*whole) return std::uint64_t{0};
    if (is_metalayer(at, cbytes)) return cbytes;
    if (as_index && take_index()) return cbytes;
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

  /// Decodes the chunk into plain_. False: it does not decode.
  Result<bool> decode(std::uint64_t at, std::uint64_t cbytes) {
    stored_.resize(static_cast<std::size_t>(cbytes));
    if (auto done = source_.read(FileOffset{at}, stored_); !done) return Failure(done.error());
    const auto decoder = codec::ChunkDecoder::parse(stored_, {.frame_typesize = search_.typesize});
    if (!decoder) return false;
    plain_.resize(decoder->nbytes());
    return codec::decode_range(context_, *decoder, stored_, 0, plain_).has_value();
  }

  /// Contents of metalayers have their marker and length in front.
  bool is_metalayer(std::uint64_t at, std::uint64_t cbytes) const {
    std::array<std::uint8_t, layout::kContentPrefix> prefix{};
    if (at < prefix.size() || !source_.read(FileOffset{at - prefix.size()}, prefix)) return false;
    return prefix[0] == layout::kBin32 && load_be<std::uint32_t>(&prefix[1]) == cbytes;
  }

  /// Whether plain_ is an index of chunks that were found; then it is kept.
  bool take_index() {
    std::vector<std::int64_t> entries(plain_.size() / kEntry);
    std::int64_t least = -1;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      entries[i] = load_le<std::int64_t>(&plain_[i * kEntry]);
      if (entries[i] >= 0) least = least < 0 ? entries[i] : std::min(least, entries[i]);
    }
    if (least < 0 || found_.chunks.empty()) return false;
    // Entries count from the end of the header. If nobody knows where that was, the first chunk found is the first.
    const auto begin = static_cast<std::int64_t>(search_.begin);
    const auto first = static_cast<std::int64_t>(found_.chunks.front().offset);
    const std::int64_t shift = search_.begin_known ? 0 : first - begin - least;
    for (std::int64_t& entry : entries) {
      const bool special =
          entry == layout::kZerosEntry || entry == layout::kNanEntry || entry == layout::kUninitialisedEntry;
      if (special) continue;
      if (entry < 0 || entry > static_cast<std::int64_t>(source_.size()) || !offsets_.contains(entry + shift))
        return false;
      entry += shift;
    }
    found_.index_entries = std::move(entries);
    return true;
  }

  const ByteSource& source_;
  ChunkSearch search_;
  FoundChunks found_;
  std::unordered_set<std::int64_t> offsets_;
  std::uint64_t begin_ = 0;
  std::vector<std::uint8_t> window_;
  std::vector<std::uint8_t> stored_;
  std::vector<std::uint8_t> plain_;
  codec::DecodeContext context_;
};

}  // namespace

Result<FoundChunks> find_chunks(const ByteSource& source, const ChunkSearch& search) {
  return Finder(source, search).run();
}

}  // namespace cframefs::frame
