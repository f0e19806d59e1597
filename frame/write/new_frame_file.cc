#include "frame/write/new_frame_file.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "frame/base/xxh3.h"
#include "frame/cframe/frame_layout.h"
#include "frame/cframe/trailer.h"
#include "frame/write/compaction.h"

namespace cframefs::frame {
namespace {

/// A stored chunk is copied in pieces of this many bytes.
constexpr std::uint64_t kPieceOfChunk = std::uint64_t{1} << 20;

// Returns the image of an empty frame without its trailer.
std::vector<std::uint8_t> header_of(const NewFrame& frame) {
  std::vector<std::uint8_t> image = empty_frame(frame);
  image.resize(static_cast<std::size_t>(codec::load_be<std::int32_t>(&image[layout::kHeaderLengthAt])));
  return image;
}

}  // namespace

NewFrameFile::NewFrameFile(WriteTarget& target, const NewFrame& frame)
    : target_(target),
      chunksize_(frame.chunksize),
      header_(header_of(frame)),
      out_(target, FileOffset{header_.size()}),
      seal_(frame.has_seal ? std::make_unique<SealWriter>(frame.chunksize) : nullptr) {}

Result<void> NewFrameFile::append(const codec::EncodedChunk& chunk) {
  const bool stored = chunk.special == codec::SpecialValue::none;
  const std::int64_t entry =
      stored ? static_cast<std::int64_t>(out_.position() - header_.size()) : special_entry_of(chunk.special);
  if (auto added = append_run(entry, chunk.nbytes, 1); !added) return added;
  if (seal_) seal_->put(ChunkNumber{index_.count() - 1}, chunk);
  return out_.append(chunk.bytes);
}

Result<void> NewFrameFile::append_stored(const ChunkReader& chunk) {
  const auto entry = static_cast<std::int64_t>(out_.position() - header_.size());
  if (auto added = append_run(entry, chunk.decoder().header().nbytes, 1); !added) return added;
  if (seal_) {
    const ChunkNumber number{index_.count() - 1};
    auto digests = chunk.compute_digests(number);
    if (!digests) return codec::Failure(digests.error());
    seal_->put(number, *digests);
  }
  const std::uint64_t cbytes = chunk.stored_bytes();
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(std::min(cbytes, kPieceOfChunk)));
  for (std::uint64_t done = 0; done < cbytes;) {
    const auto part = codec::ByteSpan(bytes).first(std::min<std::uint64_t>(bytes.size(), cbytes - done));
    if (auto read = chunk.read_stored(done, part); !read) return read;
    if (auto put = out_.append(part); !put) return put;
    done += part.size();
  }
  return {};
}

Result<void> NewFrameFile::append_run(std::int64_t entry, std::int32_t nbytes, std::int64_t count) {
  if (try_append_run(entry, nbytes, count)) return {};
  if (count > IndexEncoder::kMaxEntries - index_.count()) {
    return codec::invalid(fmt::format("more than {} chunks: choose a larger chunk size", IndexEncoder::kMaxEntries));
  }
  return codec::invalid(
      fmt::format("a chunk of {} bytes after {} bytes, in a frame with chunks of {}", nbytes, nbytes_, chunksize_));
}

bool NewFrameFile::try_append_run(std::int64_t entry, std::int32_t nbytes, std::int64_t count) {
  const bool fits = nbytes == chunksize_ || (nbytes > 0 && nbytes < chunksize_ && count == 1);
  if (!fits || ends_short_ || count > IndexEncoder::kMaxEntries - index_.count()) return false;
  ends_short_ = nbytes != chunksize_;
  nbytes_ += static_cast<std::uint64_t>(nbytes) * static_cast<std::uint64_t>(count);
  index_.append_run(entry, count);
  last_entry_ = entry;
  return true;
}

Result<void> NewFrameFile::take_chunks(const FrameContainer& from) {
  nbytes_ = from.parameters().nbytes;
  if (seal_) {
    if (auto put = put_stored_digests(from, *seal_); !put) return put;
  }
  return copy_all_chunks(from, header_.size(), out_, index_);
}

Result<void> NewFrameFile::finish(const std::vector<Metalayer>& vlmetalayers) {
  std::vector<MetalayerLength> lengths;
  std::vector<std::vector<std::uint8_t>> stored;
  for (const Metalayer& layer : vlmetalayers) {
    if (layer.content.size() > kMaxVlmetalayer) {
      return codec::invalid(fmt::format("variable-length metalayer '{}' has {} bytes, at most {} are supported",
                                        layer.name, layer.content.size(), kMaxVlmetalayer));
    }
    stored.push_back(metalayer_chunk(layer.content));
    lengths.push_back({layer.name, stored.back().size()});
  }
  return finish(lengths, [&stored](std::size_t number) { return std::move(stored[number]); });
}

Result<void> NewFrameFile::finish(const std::vector<MetalayerLength>& vlmetalayers, const ContentOf& content) {
  std::vector<std::uint64_t> lengths;
  lengths.reserve(vlmetalayers.size());
  for (const MetalayerLength& layer : vlmetalayers)
    lengths.push_back(layer.length);
  if (auto fits = check_metalayer_room(lengths); !fits) return fits;
  HeaderUpdate fields;
  fields.nbytes = nbytes_;
  if (nbytes_ == 0) seal_.reset();
  const std::int64_t chunks = index_.count();
  fields.cbytes = out_.position() - header_.size();
  fields.chunksize = chunksize_;
  fields.has_vlmetalayers = !vlmetalayers.empty();
  std::uint64_t index_digest = 0;
  if (nbytes_ > 0) {
    const std::vector<std::uint8_t> index = index_.finish();
    index_digest = xxh3(index);
    if (auto put = out_.append(index); !put) return put;
  }
  if (seal_) {
    if (auto put = seal_->write_pages(out_, chunks); !put) return put;
  }
  const FileOffset seal_at{out_.position()};
  if (seal_) {
    if (auto skipped = out_.skip(kSealLength); !skipped) return skipped;
  }
  RunningXxh3 trailer_digest;
  if (auto put = put_trailer(vlmetalayers, content, trailer_digest); !put) return put;
  fields.frame_length = out_.position();
  if (auto flushed = out_.flush(); !flushed) return flushed;
  encode_update(fields, header_);
  if (seal_) {
    const SealedState state{header_, nbytes_, fields.cbytes, chunks, index_digest};
    const auto seal = encode_seal(seal_->seal(state, trailer_digest.value()));
    if (auto put = target_.write(seal, seal_at); !put) return put;
  }
  return target_.write(header_, FileOffset{0});
}

Result<void> NewFrameFile::put_trailer(const std::vector<MetalayerLength>& vlmetalayers, const ContentOf& content,
                                       RunningXxh3& digest) {
  const std::uint64_t begin = out_.position();
  const auto append = [&](ByteView bytes) {
    digest.add(bytes);
    return out_.append(bytes);
  };
  if (auto put = append(trailer_begin(vlmetalayers)); !put) return put;
  for (std::size_t number = 0; number < vlmetalayers.size(); ++number) {
    const MetalayerLength& layer = vlmetalayers[number];
    const auto stored = content(number);
    if (!stored) return codec::Failure(stored.error());
    if (stored->size() != layer.length) {
      return codec::stale(fmt::format("variable-length metalayer '{}' changed its length from {} to {} bytes",
                                      layer.name, layer.length, stored->size()));
    }
    if (auto put = append(content_prefix(layer.length)); !put) return put;
    if (auto put = append(*stored); !put) return put;
  }
  return append(trailer_end(out_.position() - begin));
}

}  // namespace cframefs::frame
