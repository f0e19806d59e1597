#include "frame/compat/bloscpack.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "codec/base/mutex.h"
#include "frame/compat/bare_chunk.h"
#include "frame/compat/bloscpack_header.h"
#include "frame/compat/chunk_scan.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

const char* const kMetadata = "metadata";

/// Bytes per read while the digest of a chunk is computed.
constexpr std::size_t kPiece = std::size_t{64} << 10;

/// Allowed excess of cbytes over twice nbytes. An incompressible chunk takes nbytes plus a header. A chunk with far
/// greater cbytes is corrupt, and its digest would be computed over whatever follows, which may be a hole of any
/// length.
constexpr std::uint64_t kMaxOverhead = std::uint64_t{64} << 10;

class DigestVerifier final : public ChunkVerifier {
 public:
  DigestVerifier(DigestKind kind, std::int64_t count)
      : kind_(kind), good_((static_cast<std::size_t>(count) + kBits - 1) / kBits) {}

  Result<void> verify(ChunkNumber chunk, const ChunkLocation& location, std::uint64_t cbytes) const override {
    const auto number = static_cast<std::size_t>(chunk.value);
    std::atomic<std::uint64_t>& word = good_[number / kBits];
    const std::uint64_t bit = std::uint64_t{1} << (number % kBits);
    if ((word.load(std::memory_order_relaxed) & bit) != 0) return {};
    const std::uint64_t max_cbytes = 2 * static_cast<std::uint64_t>(location.nbytes) + kMaxOverhead;
    if (cbytes > max_cbytes) {
      return corrupt(fmt::format("cbytes {} of a chunk with nbytes {}, at most {} are allowed", cbytes, location.nbytes,
                                 max_cbytes));
    }
    const auto same = matches(location, cbytes);
    if (!same) return Failure(same.error());
    if (!*same) return corrupt(std::string(digest_name(kind_)) + " of the chunk does not match");
    word.fetch_or(bit, std::memory_order_relaxed);
    return {};
  }

 private:
  static constexpr std::size_t kBits = 64;

  Result<bool> matches(const ChunkLocation& location, std::uint64_t cbytes) const {
    Digest digest(kind_);
    std::vector<std::uint8_t> piece(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, cbytes)));
    for (std::uint64_t done = 0; done < cbytes;) {
      const auto bytes =
          ByteSpan(piece).first(static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), cbytes - done)));
      if (auto read = location.source->read(FileOffset{location.offset.value + done}, bytes); !read) {
        return Failure(read.error());
      }
      digest.add(bytes);
      done += bytes.size();
    }
    const auto computed = digest.finish();
    if (!computed) return Failure(computed.error());
    std::vector<std::uint8_t> kept(computed->size());
    if (auto read = location.source->read(FileOffset{location.offset.value + cbytes}, kept); !read) {
      return Failure(read.error());
    }
    return kept == *computed;
  }

  const DigestKind kind_;
  mutable std::vector<std::atomic<std::uint64_t>> good_;  // one bit per chunk: verified
};

class Bloscpack final : public Container {
 public:
  Bloscpack(std::shared_ptr<const ByteSource> source, const BloscpackHeader& header)
      : source_(std::move(source)), header_(header) {}

  Result<void> open();

  const FrameParameters& parameters() const override { return parameters_; }
  bool records_level() const override { return false; }
  std::int64_t chunk_count() const override { return count_; }
  Result<ChunkLocation> locate_chunk(ChunkNumber chunk) const override;
  Result<ChunkSpan> chunk_at(FlatOffset at) const override;
  Result<ChunkNumber> next_chunk(ChunkNumber from, bool hole) const override {
    const ChunkNumber end{count_};
    return hole ? end : std::min(from, end);
  }
  const codec::DecodeParams& environment() const override { return environment_; }
  std::vector<std::string> vlmetalayer_names() const override {
    if (!metadata_) return {};
    return {kMetadata};
  }
  Result<std::uint64_t> vlmetalayer_length(const std::string& name) const override;
  Result<std::vector<std::uint8_t>> vlmetalayer(const std::string& name) const override;

 private:
  using Chunks = std::shared_ptr<const ChunkOffsets>;

  Result<Chunks> chunks() const;
  Result<Chunks> find_chunks() const;
  Result<void> describe_first();
  Result<void> check_sizes() const;
  std::uint64_t gap() const { return digest_size(header_.digest); }

  const std::shared_ptr<const ByteSource> source_;
  const BloscpackHeader header_;
  std::optional<BloscpackMetadata> metadata_;
  std::uint64_t offsets_at_ = 0;
  std::uint64_t chunks_at_ = 0;
  bool sizes_known_ = false;  // from the header; else open() sets chunks_, which has them
  std::int64_t count_ = 0;
  FrameParameters parameters_;
  std::shared_ptr<const ChunkVerifier> verifier_;  // null: there are no digests
  const codec::DecodeParams environment_;
  mutable codec::Mutex mutex_;
  mutable Chunks chunks_ GUARDED_BY(mutex_);  // null until first used
};

Result<void> Bloscpack::open() {
  offsets_at_ = header_.length;
  if (header_.has_metadata) {
    auto metadata = read_metadata_head(*source_, header_.length);
    if (!metadata) return Failure(metadata.error());
    metadata_ = std::move(*metadata);
    offsets_at_ = metadata_->end;
  }
  const std::uint64_t slots = static_cast<std::uint64_t>(header_.slots) * sizeof(std::int64_t);
  if (slots > source_->size() - offsets_at_)
    return corrupt(fmt::format("the file ends inside its section of {} offsets", header_.slots));
  chunks_at_ = offsets_at_ + slots;

  parameters_.kind = ContainerKind::bloscpack;
  parameters_.frame_version = header_.version;
  parameters_.header_length = chunks_at_;
  parameters_.frame_length = source_->size();
  parameters_.cbytes = source_->size() - chunks_at_;
  count_ = header_.count;
  const auto nbytes = header_.nbytes();
  sizes_known_ = nbytes.has_value();
  if (sizes_known_) {
    if (auto fine = check_sizes(); !fine) return fine;
    parameters_.nbytes = *nbytes;
  } else {
    const auto walked = chunks();
    if (!walked) return Failure(walked.error());
    if ((*walked)->damage) return Failure(*(*walked)->damage);
    count_ = static_cast<std::int64_t>((*walked)->begins.size());
    if (count_ == 0) return corrupt("the file has no chunks");
    parameters_.nbytes = (*walked)->plain.back();
  }
  parameters_.variable_chunks = !sizes_known_ || header_.chunksize == 0 || header_.last > header_.chunksize;
  parameters_.chunksize = parameters_.variable_chunks ? 0 : header_.chunksize;
  if (header_.digest != DigestKind::none) verifier_ = std::make_shared<const DigestVerifier>(header_.digest, count_);
  return describe_first();
}

/// Takes codec and filters from the first chunk: the file's header does not record them.
Result<void> Bloscpack::describe_first() {
  std::array<std::uint8_t, codec::kExtendedHeaderLength> bytes{};
  const auto first = ByteSpan(bytes).first(
      static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), source_->size() - chunks_at_)));
  if (auto done = source_->read(FileOffset{chunks_at_}, first); !done) return done;
  if (const auto header = codec::parse_chunk_header(first)) describe_chunk(*header, parameters_);
  if (header_.typesize != 0) parameters_.typesize = header_.typesize;
  return {};
}

/// Cross-checks the chunk sizes of the header, which no digest covers, with the first two chunks. If both chunks
/// disagree, the header is corrupt; if only one does, that chunk is corrupt and is reported when it is read.
Result<void> Bloscpack::check_sizes() const {
  const auto walked = walk_chunks(*source_, chunks_at_, gap(), std::min<std::int64_t>(count_, 2));
  if (!walked) return Failure(walked.error());
  const auto found = static_cast<std::int64_t>(walked->begins.size());
  for (std::int64_t chunk = 0; chunk < found; ++chunk) {
    const auto number = static_cast<std::size_t>(chunk);
    const auto plain = static_cast<std::int64_t>(walked->plain[number + 1] - walked->plain[number]);
    const bool tells = count_ == 1 || chunk + 1 < count_;
    if (tells && plain == header_.size_of(chunk)) return {};
  }
  if (found == 0) return {};
  return corrupt(
      fmt::format("the header records chunks of {} bytes, the first has {}", header_.size_of(0), walked->plain[1]));
}

Result<Bloscpack::Chunks> Bloscpack::chunks() const {
  // Hold the lock during the walk, so that other threads wait for its result instead of walking, too.
  const codec::MutexLock lock(mutex_);
  if (!chunks_) {
    auto found = find_chunks();
    if (!found) return found;
    chunks_ = std::move(*found);
  }
  return chunks_;
}

Result<Bloscpack::Chunks> Bloscpack::find_chunks() const {
  if (sizes_known_ && header_.slots > 0) {
    auto listed = read_offsets(*source_, offsets_at_, count_, chunks_at_, gap());
    if (!listed) return Failure(listed.error());
    if (*listed) {
      // The first chunk follows the offsets. Otherwise the header's count of offsets, and thus of chunks, is wrong.
      if ((*listed)->begins.front() != chunks_at_) {
        return corrupt(
            fmt::format("the offset of the first chunk is {}, expected {}", (*listed)->begins.front(), chunks_at_));
      }
      return std::make_shared<const ChunkOffsets>(std::move(**listed));
    }
  }
  auto walked = walk_chunks(*source_, chunks_at_, gap(), header_.count);
  if (!walked) return Failure(walked.error());
  // Only files with offsets can be appended to, and only appending leaves bytes after the last chunk.
  if (header_.slots == 0 && !walked->damage && walked->end < source_->size()) {
    const auto more = walk_chunks(*source_, walked->end, gap(), 1);
    if (!more) return Failure(more.error());
    if (!more->damage) return corrupt(fmt::format("the file has more chunks than the {} of its header", count_));
  }
  return std::make_shared<const ChunkOffsets>(std::move(*walked));
}

Result<ChunkLocation> Bloscpack::locate_chunk(ChunkNumber chunk) const {
  if (chunk.value < 0 || chunk.value >= count_) {
    return codec::invalid(fmt::format("there is no chunk {}", chunk.value));
  }
  const auto found = chunks();
  if (!found) return Failure(found.error());
  const ChunkOffsets& all = **found;
  const auto number = static_cast<std::size_t>(chunk.value);
  if (number >= all.begins.size()) return Failure(*all.damage);
  ChunkLocation location;
  location.source = source_;
  location.offset = FileOffset{all.begins[number]};
  location.limit = (number + 1 < all.begins.size() ? all.begins[number + 1] : all.end) - all.begins[number] - gap();
  location.nbytes = sizes_known_ ? header_.size_of(chunk.value)
                                 : static_cast<std::int32_t>(all.plain[number + 1] - all.plain[number]);
  location.verifier = verifier_;
  return location;
}

Result<ChunkSpan> Bloscpack::chunk_at(FlatOffset at) const {
  if (at.value >= parameters_.nbytes) return codec::invalid("offset past the end of the data");
  if (sizes_known_) {
    std::uint64_t chunk = 0;
    const auto chunksize = static_cast<std::uint64_t>(header_.chunksize);
    if (count_ > 1) chunk = std::min(at.value / chunksize, static_cast<std::uint64_t>(count_ - 1));
    const auto number = static_cast<std::int64_t>(chunk);
    return ChunkSpan{ChunkNumber{number}, FlatOffset{chunk * chunksize},
                     static_cast<std::uint32_t>(header_.size_of(number))};
  }
  const auto found = chunks();
  if (!found) return Failure(found.error());
  const std::vector<std::uint64_t>& plain = (*found)->plain;
  const auto next = std::upper_bound(plain.begin(), plain.end(), at.value);
  const std::uint64_t begin = *(next - 1);
  return ChunkSpan{ChunkNumber{(next - plain.begin()) - 1}, FlatOffset{begin},
                   static_cast<std::uint32_t>(*next - begin)};
}

Result<std::uint64_t> Bloscpack::vlmetalayer_length(const std::string& name) const {
  if (!metadata_ || name != kMetadata) {
    return codec::invalid("there is no variable-length metalayer '" + name + "'");
  }
  if (metadata_->trouble) return Failure(*metadata_->trouble);
  return metadata_->plain_size;
}

Result<std::vector<std::uint8_t>> Bloscpack::vlmetalayer(const std::string& name) const {
  if (!metadata_ || name != kMetadata) {
    return codec::invalid("there is no variable-length metalayer '" + name + "'");
  }
  auto text = read_metadata(*source_, *metadata_);
  if (!text && !text.error().file_offset) text.error().file_offset = source_->base_offset().value + metadata_->at;
  return text;
}

}  // namespace

Result<std::shared_ptr<const Container>> open_bloscpack(std::shared_ptr<const ByteSource> source) {
  std::array<std::uint8_t, kBloscpackHeader> bytes{};
  const auto first =
      ByteSpan(bytes).first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), source->size())));
  if (auto done = source->read(FileOffset{0}, first); !done) return Failure(done.error());
  const auto header = parse_bloscpack_header(first, source->size());
  if (!header) {
    Error error = header.error();
    if (!error.file_offset) error.file_offset = source->base_offset().value;
    return Failure(std::move(error));
  }
  auto file = std::make_shared<Bloscpack>(std::move(source), *header);
  if (auto opened = file->open(); !opened) return Failure(opened.error());
  return file;
}

}  // namespace cframefs::frame
