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
  auto pages = committed.seal()->pages();
  if (!pages) return Failure(pages.error());
  committed_ = committed.seal();
  in_place_ = in_place;
  section_begin_ = committed.parameters().header_length;
  section_end_ = section_begin_ + committed.parameters().cbytes;
  kept_ = std::move(*pages);
  if (in_place) killed_ += committed_->seal().root.length;
  return {};
}

void SealWriter::put(ChunkNumber chunk, const codec::EncodedChunk& encoded) {
  if (encoded.special != codec::SpecialValue::none) return drop(chunk.value, chunk.value + 1);
  const auto decoder = codec::ChunkDecoder::parse(encoded.bytes);
  put(chunk, decoder ? digests_of(chunk, *decoder, encoded.bytes) : digest_of_whole(chunk, encoded.bytes));
}

void SealWriter::put(ChunkNumber chunk, std::vector<std::uint64_t> digests) {
  const std::int64_t first = chunk.value - chunk.value % chunks_per_page_;
  PageDigests& page = changed_[first];
  const auto number = static_cast<std::size_t>(chunk.value - first);
  if (page.size() <= number) page.resize(number + 1);
  page[number] = std::move(digests);
}

/// Returns the digests of a committed page; none if it is damaged.
Result<PageDigests> SealWriter::committed_page(std::size_t number) const {
  const auto page = committed_->page(number, kept_[number]);
  if (!page) return Failure(page.error());
  PageDigests digests;
  const std::int64_t count = (*page)->empty() ? 0 : (*page)->front();
  for (std::int64_t chunk = 0; chunk < count; ++chunk) {
    auto& values = digests.emplace_back();
    for (const std::int64_t value : digests_in(**page, chunk))
      values.push_back(static_cast<std::uint64_t>(value));
  }
  return digests;
}

Result<void> SealWriter::append_page(BufferedAppender& out, std::int64_t first, const PageDigests& digests) {
  const bool is_empty = std::all_of(digests.begin(), digests.end(), [](const auto& chunk) { return chunk.empty(); });
  if (is_empty) return {};
  const std::vector<std::uint8_t> bytes = encode_page(digests);
  pages_.push_back({first, {out.position(), static_cast<std::uint32_t>(bytes.size()), page_digest(first, bytes)}});
  return out.append(bytes);
}

/// Adds the digests of a committed page to the changed pages. Another program may have divided the chunks differently.
Result<void> SealWriter::merge_page(std::size_t number) {
  auto digests = committed_page(number);
  if (!digests) return Failure(digests.error());
  for (std::size_t i = 0; i < digests->size(); ++i) {
    const std::int64_t chunk = kept_[number].first + static_cast<std::int64_t>(i);
    if ((*digests)[i].empty() || dropped_.contains(chunk)) continue;
    const std::int64_t first = chunk - chunk % chunks_per_page_;
    PageDigests& next = changed_[first];
    const auto place = static_cast<std::size_t>(chunk - first);
    if (next.size() <= place) next.resize(place + 1);
    if (next[place].empty()) next[place] = std::move((*digests)[i]);
  }
  return {};
}

Result<void> SealWriter::write_pages(BufferedAppender& out, std::int64_t chunk_count) {
  for (std::size_t number = 0; number < kept_.size(); ++number) {
    const SealPage& page = kept_[number];
    const auto dropped = dropped_.next(page.first);
    const bool changes = changed_.contains(page.first) || (dropped && dropped->begin < page.first + chunks_per_page_) ||
                         page.first >= chunk_count;
    const bool stays = !changes && in_place_ && page.first % chunks_per_page_ == 0 &&
                       page.part.place >= section_begin_ && page.part.place + page.part.length <= section_end_;
    if (stays) {
      pages_.push_back(page);
      continue;
    }
    if (in_place_) killed_ += page.part.length;
    if (page.first >= chunk_count) continue;
    if (auto merged = merge_page(number); !merged) return merged;
  }
  for (auto& [first, digests] : changed_) {
    if (first >= chunk_count) break;
    if (static_cast<std::int64_t>(digests.size()) > chunk_count - first)
      digests.resize(static_cast<std::size_t>(chunk_count - first));
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
    const auto reader = ChunkReader::open(frame, ChunkNumber{chunk});
    if (!reader) return reader.error().kind == codec::ErrorKind::io ? Failure(reader.error()) : Result<void>();
    auto digests = (*reader)->compute_digests(ChunkNumber{chunk});
    if (!digests) return Failure(digests.error());
    seal.put(ChunkNumber{chunk}, std::move(*digests));
    return hashed((*reader)->stored_bytes()) ? Result<void>() : codec::io_error(EINTR, "hash");
  });
}

}  // namespace cframefs::frame
