#include "frame/cframe/frame_seal.h"

#include <algorithm>
#include <utility>

#include "codec/base/scratch.h"
#include "frame/base/xxh3.h"

namespace cframefs::frame {
namespace {

using codec::ErrorKind;
using codec::Failure;

/// The longest root and page that are read. 2^28 chunks have a root of 16 MiB, 512 MiB of data a page of at most 4 MiB.
/// A parsed page of any content fits into the IndexCache, so no reader parses it for each chunk.
constexpr std::uint64_t kMaxRoot = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxPage = std::uint64_t{6} << 20;

/// Returns true if [place, place + length) lies inside the frame, in front of its trailer.
bool is_inside(const SealedPart& part, const SealedFrame& frame) {
  return part.place >= frame.header_length && part.place <= frame.trailer.begin &&
         part.length <= frame.trailer.begin - part.place;
}

/// Damage of the seal itself is no error: what it covers is not verified.
bool is_damage(const codec::Error& error) {
  return error.kind == ErrorKind::corruption;
}

}  // namespace

Result<std::unique_ptr<const FrameSeal>> FrameSeal::find(std::shared_ptr<const ByteSource> source, RangeBuffer& windows,
                                                         const SealedFrame& frame, std::shared_ptr<IndexCache> cache) {
  using Found = std::unique_ptr<const FrameSeal>;
  if (frame.trailer.begin < frame.index.end + kSealLength) return Found();
  const auto bytes = windows.get(FileOffset{frame.trailer.begin - kSealLength}, kSealLength);
  if (!bytes) return Failure(bytes.error());
  const auto seal = parse_seal(*bytes);
  if (!seal) return Found();
  if (seal->header_length != frame.header_length || seal->nbytes != frame.nbytes || seal->cbytes != frame.cbytes ||
      seal->chunk_count != static_cast<std::uint64_t>(frame.chunk_count) || !is_inside(seal->root, frame)) {
    return Found();
  }
  return std::make_unique<const FrameSeal>(std::move(source), frame, *seal, std::move(cache));
}

FrameSeal::FrameSeal(std::shared_ptr<const ByteSource> source, const SealedFrame& frame, const Seal& seal,
                     std::shared_ptr<IndexCache> cache)
    : source_(std::move(source)), frame_(frame), seal_(seal), cache_(std::move(cache)), owner_(cache_->new_owner()) {}

Result<FrameSeal::Pages> FrameSeal::pages() const {
  // The lock is held while index and root are read, so that other threads wait instead of reading them, too.
  const codec::MutexLock lock(mutex_);
  if (state_ != State::unchecked) return pages_;
  auto pages = read_pages();
  if (!pages && !is_damage(pages.error())) return Failure(pages.error());
  if (pages) pages_ = std::make_shared<const std::vector<SealPage>>(std::move(*pages));
  state_ = pages ? State::bound : State::broken;
  return pages_;
}

/// Reads the root, if index and root are those that were sealed; otherwise returns corruption.
Result<std::vector<SealPage>> FrameSeal::read_pages() const {
  // What a hostile seal makes the program read is stored, and not a hole.
  const std::uint64_t stored = source_->stored();
  if (frame_.index.size() > stored || seal_.root.length > std::min(stored, kMaxRoot))
    return codec::corrupt("index or root is longer than what is stored");
  const auto index = digest_of_range(*source_, FileOffset{frame_.index.begin}, frame_.index.size(), 0);
  if (!index) return Failure(index.error());
  if (*index != seal_.index_digest) return codec::corrupt("the index is not the one that was sealed");
  std::vector<std::uint8_t> root(seal_.root.length);
  if (auto read = source_->read(FileOffset{seal_.root.place}, root); !read) return Failure(read.error());
  if (xxh3(root) != seal_.root.digest) return codec::corrupt("the root is not the one that was sealed");
  return parse_root(root);
}

Result<bool> FrameSeal::holds() const {
  const auto pages = this->pages();
  if (!pages) return Failure(pages.error());
  return *pages != nullptr;
}

Result<ChunkDigests> FrameSeal::digests(ChunkNumber chunk) const {
  const auto bound = pages();
  if (!bound) return Failure(bound.error());
  if (!*bound) return ChunkDigests();
  const std::vector<SealPage>& pages = **bound;
  const auto after = std::upper_bound(pages.begin(), pages.end(), chunk.value,
                                      [](std::int64_t number, const SealPage& page) { return number < page.first; });
  if (after == pages.begin()) return ChunkDigests();
  const auto known = std::prev(after);
  auto page = this->page(static_cast<std::size_t>(known - pages.begin()), *known);
  if (!page) return Failure(page.error());
  const auto values = digests_in(**page, chunk.value - known->first);
  if (values.empty()) return ChunkDigests();
  return ChunkDigests(chunk, values, std::move(*page));
}

Result<IndexCache::Block> FrameSeal::page(std::size_t number, const SealPage& page) const {
  return cache_->get(owner_, static_cast<std::uint32_t>(number), [&] { return load_page(page); });
}

Result<IndexCache::Block> FrameSeal::load_page(const SealPage& page) const {
  const auto nothing = std::make_shared<const ParsedPage>();
  if (!is_inside(page.part, frame_) || page.part.length > std::min(kMaxPage, source_->stored())) return nothing;
  codec::Scratch scratch;  // not zeroed
  const codec::ByteSpan bytes = scratch.get(page.part.length).first(page.part.length);
  if (auto read = source_->read(FileOffset{page.part.place}, bytes); !read) {
    if (is_damage(read.error())) return nothing;
    return Failure(read.error());
  }
  if (page_digest(page.first, bytes) != page.part.digest) return nothing;
  auto parsed = parse_page(bytes);
  if (!parsed) return nothing;
  return std::make_shared<const ParsedPage>(std::move(*parsed));
}

Result<std::vector<codec::ByteRange>> FrameSeal::ranges() const {
  const auto pages = this->pages();
  if (!pages) return Failure(pages.error());
  std::vector<codec::ByteRange> ranges;
  if (!*pages) return ranges;
  const auto add = [&](const SealedPart& part) {
    if (is_inside(part, frame_)) ranges.push_back({part.place, part.place + part.length});
  };
  for (const SealPage& page : **pages)
    add(page.part);
  add(seal_.root);
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return ranges;
}

Result<std::vector<std::int64_t>> FrameSeal::damaged_pages() const {
  const auto pages = this->pages();
  if (!pages) return Failure(pages.error());
  std::vector<std::int64_t> damaged;
  if (!*pages) return damaged;
  for (const SealPage& page : **pages) {
    const auto loaded = load_page(page);
    if (!loaded) return Failure(loaded.error());
    if ((*loaded)->empty()) damaged.push_back(page.first);
  }
  return damaged;
}

Result<bool> FrameSeal::has_sealed_metadata() const {
  const auto header = digest_of_range(*source_, FileOffset{0}, frame_.header_length, 0);
  if (!header) return Failure(header.error());
  const auto trailer = digest_of_range(*source_, FileOffset{frame_.trailer.begin}, frame_.trailer.size(), 0);
  if (!trailer) return Failure(trailer.error());
  return *header == seal_.header_digest && *trailer == seal_.trailer_digest;
}

}  // namespace cframefs::frame
