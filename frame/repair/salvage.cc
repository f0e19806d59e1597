#include "frame/repair/salvage.h"

#include <algorithm>
#include <array>
#include <utility>

#include "codec/format/chunk_header.h"
#include "frame/cframe/cframe.h"
#include "frame/cframe/frame_encoding.h"
#include "frame/cframe/index_encoder.h"
#include "frame/repair/chunk_carver.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

using Bytes = std::vector<std::uint8_t>;

/// Bytes [0, end) of `body` with the first bytes replaced by `head`, followed by `tail`.
class ConcatSource final : public ByteSource {
 public:
  ConcatSource(Bytes head, std::shared_ptr<const ByteSource> body, std::uint64_t end, Bytes tail)
      : head_(std::move(head)), body_(std::move(body)), end_(end), tail_(std::move(tail)) {}

  std::uint64_t size() const override { return end_ + tail_.size(); }
  FileOffset base_offset() const override { return body_->base_offset(); }
  std::uint64_t zeros(FileOffset at) const override {
    return at.value >= head_.size() && at.value < end_ ? std::min(body_->zeros(at), end_ - at.value) : 0;
  }

  Result<void> read(FileOffset at, ByteSpan into) const override {
    if (at.value > size() || into.size() > size() - at.value) return corrupt("read past the end of the salvaged frame");
    const std::uint64_t from_body = at.value < end_ ? std::min<std::uint64_t>(into.size(), end_ - at.value) : 0;
    if (auto done = body_->read(at, into.first(from_body)); from_body > 0 && !done) return done;
    for (std::size_t i = 0; i < into.size() && at.value + i < head_.size(); ++i)
      into[i] = head_[static_cast<std::size_t>(at.value) + i];
    for (std::size_t i = from_body; i < into.size(); ++i)
      into[i] = tail_[static_cast<std::size_t>(at.value + i - end_)];
    return {};
  }

 private:
  const Bytes head_;
  const std::shared_ptr<const ByteSource> body_;
  const std::uint64_t end_;
  const Bytes tail_;
};

/// Index entries, and the header fields that belong to them.
struct Restored {
  std::vector<std::int64_t> entries;
  std::uint64_t nbytes = 0;
  std::int32_t chunksize = 0;
};

class Salvager {
 public:
  Salvager(std::shared_ptr<const ByteSource> source, std::shared_ptr<IndexCache> cache)
      : source_(std::move(source)), cache_(std::move(cache)) {}

  Result<Salvage> run() {
    auto opened = open_cframe(source_, cache_);
    if (opened) return Salvage{std::move(*opened), {}};
    if (opened.error().kind == ErrorKind::io || opened.error().kind == ErrorKind::unsupported) {
      return Failure(opened.error());
    }
    losses_.push_back(opened.error().reason);
    if (auto read = read_header(); !read) return Failure(read.error());
    if (header_ && header_->chunk_count < 0)
      return codec::unsupported("a damaged frame with chunks of different sizes");
    if (auto container = without_trailer()) return finish(std::move(*container));
    return by_search();
  }

 private:
  Salvage finish(std::shared_ptr<const FrameContainer> container) {
    return Salvage{std::move(container), std::move(losses_)};
  }

  /// Sets header_ and head_ if the header is intact.
  Result<void> read_header() {
    Bytes fixed(static_cast<std::size_t>(std::min<std::uint64_t>(layout::kFixedHeaderLength, source_->size())));
    if (auto done = source_->read(FileOffset{0}, fixed); !done) return done;
    auto parsed = parse_fixed_header(fixed);
    if (!parsed || parsed->frame_type != layout::kContiguous) return {};
    if (parsed->parameters.header_length > source_->size()) return {};
    head_.resize(static_cast<std::size_t>(parsed->parameters.header_length));
    header_ = *parsed;
    return source_->read(FileOffset{0}, head_);
  }

  /// Opens the frame with an empty trailer if header and index are intact.
  Result<std::shared_ptr<const FrameContainer>> without_trailer() {
    if (!header_ || header_->parameters.nbytes == 0) return corrupt("no index");
    const FrameParameters& parameters = header_->parameters;
    const std::uint64_t size = source_->size();
    if (parameters.cbytes > size - parameters.header_length) return corrupt("no index");
    const std::uint64_t index_at = parameters.header_length + parameters.cbytes;
    Bytes first(codec::kExtendedHeaderLength);
    if (size - index_at < first.size()) return corrupt("no index");
    if (auto done = source_->read(FileOffset{index_at}, first); !done) return Failure(done.error());
    const auto index = codec::parse_chunk_header(first);
    if (!index) return Failure(index.error());
    const auto length = static_cast<std::uint64_t>(index->cbytes);
    if (length > size - index_at) return corrupt("no index");
    Restored restored;
    restored.nbytes = parameters.nbytes;
    restored.chunksize = parameters.chunksize;
    auto container = open_restored(restored, index_at, index_at + length, {});
    if (!container) return container;
    const auto runs = (*container)->runs(ChunkNumber{0}, ChunkNumber{(*container)->chunk_count()});
    for (ChunkRun run;;) {
      const auto more = runs->next(run);
      if (!more) return Failure(more.error());
      if (!*more) break;
      if (run.damage != nullptr) return Failure(*run.damage);
    }
    losses_.emplace_back("the variable-length metalayers are lost");
    return container;
  }

  /// Opens the frame with an empty trailer and the index chunk in `tail`, or the one at `index_at` if `tail` is empty.
  Result<std::shared_ptr<const FrameContainer>> open_restored(const Restored& restored, std::uint64_t index_at,
                                                              std::uint64_t end, Bytes tail) {
    const Bytes trailer = trailer_image({});
    tail.insert(tail.end(), trailer.begin(), trailer.end());
    HeaderUpdate fields;
    fields.frame_length = end + tail.size();
    fields.nbytes = restored.nbytes;
    fields.cbytes = index_at - head_.size();
    fields.chunksize = restored.chunksize;
    Bytes head = head_;
    encode_update(fields, head);
    return open_cframe(std::make_shared<const ConcatSource>(std::move(head), source_, end, std::move(tail)), cache_);
  }

  Result<Salvage> by_search() {
    ChunkSearch search;
    search.begin_known = header_.has_value();
    search.begin = header_ ? head_.size() : layout::kMinHeaderLength;
    if (header_) {
      search.typesize = header_->parameters.typesize;
      search.most_nbytes = header_->parameters.chunksize;
      search.most_chunks = header_->chunk_count;
    }
    const auto found = find_chunks(*source_, search);
    if (!found) return Failure(found.error());
    if (found->given_up_at) {
      losses_.emplace_back("the search was given up at byte " + std::to_string(*found->given_up_at) +
                           ": too many bytes look like chunks but do not decode");
    }
    if (found->chunks.empty()) return corrupt("no chunk was found" + (found->given_up_at ? "; " + losses_.back() : ""));
    const bool header_was_read = header_.has_value();
    const std::int64_t promised = header_was_read ? header_->chunk_count : 0;
    if (!header_) make_up_header(found->chunks.front());
    const Restored restored = found->index_entries ? in_order_of_index(*found) : in_order_of_file(found->chunks);
    losses_.emplace_back(found->index_entries
                             ? "the chunks are those of the last index found, which may be of an older state"
                             : "no index was found: the chunks are in the order of the file");
    if (restored.entries.empty()) return corrupt("no chunk was found");
    IndexEncoder index;
    for (const std::int64_t entry : restored.entries)
      index.append(entry);
    auto container = open_restored(restored, source_->size(), source_->size(), index.finish());
    if (!container) return Failure(container.error());
    auto salvage = finish(std::move(*container));
    salvage.missing_chunks.reset();
    if (header_was_read)
      salvage.missing_chunks = std::max<std::int64_t>(0, promised - salvage.container->chunk_count());
    return salvage;
  }

  /// Makes a header with the default codec and filters of C-Blosc2 for new chunks. Existing chunks record their own.
  void make_up_header(const FoundChunk& first) {
    NewFrame frame;
    frame.encode.typesize = first.typesize;
    frame.chunksize = first.nbytes;
    head_ = empty_frame(frame);
    head_.resize(layout::kMinHeaderLength);
    losses_.emplace_back("the header and its metalayers are lost");
  }

  std::int32_t chunksize(const std::vector<FoundChunk>& chunks) const {
    if (header_ && header_->parameters.chunksize > 0) return header_->parameters.chunksize;
    std::int32_t most = 0;
    for (const FoundChunk& chunk : chunks)
      most = std::max(most, chunk.nbytes);
    return most;
  }

  Restored in_order_of_index(const FoundChunks& found) const {
    Restored restored;
    restored.entries = *found.index_entries;
    restored.chunksize = chunksize(found.chunks);
    std::int32_t last = restored.chunksize;
    for (const FoundChunk& chunk : found.chunks) {
      if (static_cast<std::int64_t>(chunk.offset - head_.size()) == restored.entries.back()) last = chunk.nbytes;
    }
    restored.nbytes = (restored.entries.size() - 1) * static_cast<std::uint64_t>(restored.chunksize) +
                      static_cast<std::uint64_t>(last);
    return restored;
  }

  /// Takes all chunks of full size, and a short chunk only if it is the last one.
  Restored in_order_of_file(const std::vector<FoundChunk>& chunks) const {
    Restored restored;
    restored.chunksize = chunksize(chunks);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (chunks[i].nbytes != restored.chunksize && i + 1 < chunks.size()) continue;
      restored.entries.push_back(static_cast<std::int64_t>(chunks[i].offset - head_.size()));
      restored.nbytes += static_cast<std::uint64_t>(chunks[i].nbytes);
    }
    return restored;
  }

  const std::shared_ptr<const ByteSource> source_;
  const std::shared_ptr<IndexCache> cache_;
  std::vector<std::string> losses_;
  std::optional<FrameHeader> header_;
  Bytes head_;  // the complete header, from the file or made by make_up_header()
};

}  // namespace

Result<Salvage> open_damaged(std::shared_ptr<const ByteSource> source, std::shared_ptr<IndexCache> cache) {
  return Salvager(std::move(source), std::move(cache)).run();
}

}  // namespace cframefs::frame
