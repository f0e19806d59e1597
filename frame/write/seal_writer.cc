#include "frame/write/seal_writer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "frame/base/xxh3.h"
#include "frame/cframe/stored_entries.h"
#include "frame/container/chunk_reader.h"

namespace cframefs::frame {
namespace {

using codec::Failure;

// A page has the digests of as many chunks as hold this many bytes.
constexpr std::int64_t kPagePlain = std::int64_t{512} << 20;
constexpr std::int64_t kMostPerPage = 512;
constexpr std::int64_t kPerPageOfAnySize = 64;

std::int64_t chunks_per_page(std::int32_t chunksize) {
  if (chunksize <= 0) return kPerPageOfAnySize;
  return std::clamp<std::int64_t>(kPagePlain / chunksize, 1, kMostPerPage);
}

}  // namespace

SealWriter::SealWriter(std::int32_t chunksize) : chunks_per_page_(chunks_per_page(chunksize)) {}

Result<void> SealWriter::keep(const FrameContainer& committed, bool in_place) {
  const auto pages = committed.seal()->pages();
  if (!pages) return Failure(pages.error());
  committed_ = committed.seal();
  in_place_ = in_place;
  section_end_ = committed.parameters().header_length + committed.parameters().cbytes;
  if (*pages) kept_ = **pages;
  if (in_place && is_in_section(committed_->seal().root)) killed_ += committed_->seal().root.length;
  return {};
}

void SealWriter::put(ChunkNumber chunk, const codec::EncodedChunk& encoded) {
  if (encoded.special != codec::SpecialValue::none) return drop(chunk.value, chunk.value + 1);
  const auto decoder = codec::ChunkDecoder::parse(encoded.bytes);
  put(chunk, decoder ? digests_of(chunk, *decoder, encoded.bytes) : digest_of_whole(chunk, encoded.bytes));
}

void SealWriter::put(ChunkNumber chunk, std::span<const std::uint64_t> digests) {
  const std::int64_t first = chunk.value - chunk.value % chunks_per_page_;
  changed_[first].set(static_cast<std::size_t>(chunk.value - first), digests);
}

Result<void> SealWriter::append_page(BufferedAppender& out, std::int64_t first, const PageDigests& digests) {
  if (!digests.has_any()) return {};
  const std::vector<std::uint8_t> bytes = encode_page(digests);
  pages_.push_back({first, {out.position(), static_cast<std::uint32_t>(bytes.size()), page_digest(first, bytes)}});
  return out.append(bytes);
}

/// Adds the digests of a committed page to the changed pages; none if the page is damaged. Another program may have
/// divided the chunks differently.
Result<void> SealWriter::merge_page(std::size_t number) {
  const auto page = committed_->page(number, kept_[number]);
  if (!page) return Failure(page.error());
  const std::int64_t count = (*page)->empty() ? 0 : (*page)->front();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t chunk = kept_[number].first + i;
    const auto stored = digests_in(**page, i);
    if (stored.empty() || dropped_.contains(chunk)) continue;
    const std::int64_t first = chunk - chunk % chunks_per_page_;
    PageDigests& next = changed_[first];
    const auto place = static_cast<std::size_t>(chunk - first);
    if (place < next.chunk_count() && !next.at(place).empty()) continue;
    next.set(place, std::vector<std::uint64_t>(stored.begin(), stored.end()));
  }
  return {};
}

Result<void> SealWriter::write_pages(BufferedAppender& out, std::int64_t chunk_count) {
  for (std::size_t number = 0; number < kept_.size(); ++number) {
    const SealPage& page = kept_[number];
    // Digests of single chunks that are not stored any more stay in a page until it is written again.
    const auto dropped = dropped_.next(page.first);
    const bool is_gone =
        page.first >= chunk_count || (dropped && dropped->begin <= page.first &&
                                      dropped->end >= std::min(page.first + chunks_per_page_, chunk_count));
    const bool stays = !is_gone && !changed_.contains(page.first) && in_place_ && page.first % chunks_per_page_ == 0;
    if (stays) {
      pages_.push_back(page);
      if (!is_in_section(page.part)) kept_behind_ += page.part.length;
      continue;
    }
    if (in_place_ && is_in_section(page.part)) killed_ += page.part.length;
    if (is_gone && !changed_.contains(page.first)) continue;
    if (auto merged = merge_page(number); !merged) return merged;
  }
  for (auto& [first, digests] : changed_) {
    if (first >= chunk_count) break;
    digests.cut(static_cast<std::size_t>(chunk_count - first));
    if (auto put = append_page(out, first, digests); !put) return put;
  }
  std::sort(pages_.begin(), pages_.end(), [](const SealPage& a, const SealPage& b) { return a.first < b.first; });
  const std::vector<std::uint8_t> root = encode_root(pages_);
  root_ = {out.position(), static_cast<std::uint32_t>(root.size()), xxh3(root)};
  return out.append(root);
}

Seal SealWriter::seal(const SealedState& state, std::uint64_t trailer_digest) const {
  return {.header_length = state.header.size(),
          .nbytes = state.nbytes,
          .cbytes = state.cbytes,
          .chunk_count = static_cast<std::uint64_t>(state.chunk_count),
          .index_digest = state.index_digest,
          .root = root_,
          .header_digest = xxh3(state.header),
          .trailer_digest = trailer_digest};
}

Result<void> put_stored_digests(const FrameContainer& frame, SealWriter& seal,
                                const std::function<bool(std::uint64_t bytes)>& hashed) {
  return for_each_stored(frame, 0, frame.chunk_count(), [&](std::int64_t chunk, std::int64_t) -> Result<void> {
    const auto known = frame.digests(ChunkNumber{chunk});
    if (!known) return Failure(known.error());
    const auto reader = ChunkReader::open(frame, ChunkNumber{chunk});
    if (!reader) return reader.error().kind == codec::ErrorKind::io ? Failure(reader.error()) : Result<void>();
    const auto stored = known->values();
    const auto digests = known->any() ? Result<std::vector<std::uint64_t>>({stored.begin(), stored.end()})
                                      : (*reader)->compute_digests(ChunkNumber{chunk});
    if (!digests) return Failure(digests.error());
    seal.put(ChunkNumber{chunk}, *digests);
    return hashed((*reader)->stored_bytes()) ? Result<void>() : codec::io_error(EINTR, "hash");
  });
}

}  // namespace cframefs::frame
