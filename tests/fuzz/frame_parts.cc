#include "tests/fuzz/frame_parts.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include "codec/chunk_decoder.h"
#include "frame/base/xxh3.h"
#include "frame/cframe/frame_layout.h"
#include "frame/cframe/index_encoder.h"
#include "frame/cframe/seal_layout.h"
#include "frame/container/chunk_digests.h"
#include "frame/container/chunk_reader.h"

namespace cframefs::test {
namespace {

using codec::ByteView;
using codec::load_be;
using codec::store_be;
namespace layout = frame::layout;

std::int64_t special_value(codec::SpecialValue special) {
  switch (special) {
    case codec::SpecialValue::nan:
      return layout::kNanEntry;
    case codec::SpecialValue::uninitialised:
      return layout::kUninitialisedEntry;
    default:
      return layout::kZerosEntry;
  }
}

Bytes index_of(const FrameParts& parts, const std::vector<std::int64_t>& offsets) {
  std::vector<std::int64_t> entries;
  for (const FrameEntry& entry : parts.entries) {
    // Unsigned, because a hostile sum may leave the range.
    const auto added = static_cast<std::uint64_t>(entry.value);
    const std::uint64_t offset = entry.chunk ? static_cast<std::uint64_t>(offsets[*entry.chunk]) : 0;
    entries.push_back(static_cast<std::int64_t>(offset + added));
  }
  if (parts.index_form == IndexForm::plain) return plain_index(entries);
  frame::IndexEncoder encoder;
  encoder.append_all(entries);
  return encoder.finish();
}

std::vector<std::uint64_t> digests_of_entry(std::int64_t number, const Bytes& chunk) {
  const auto decoder = codec::ChunkDecoder::parse(chunk);
  if (!decoder) return frame::digest_of_whole(frame::ChunkNumber{number}, chunk);
  // A chunk whose header claims more bytes than there are.
  if (static_cast<std::uint64_t>(decoder->header().cbytes) != chunk.size())
    return frame::digest_of_whole(frame::ChunkNumber{number}, chunk);
  return frame::digests_of(frame::ChunkNumber{number}, *decoder, chunk);
}

/// Pages and root, for a seal that follows.
class SealMaker {
 public:
  explicit SealMaker(const FrameParts& parts) : parts_(parts) {}

  /// Appends the pages and the root to `to`.
  void append_root(Bytes& to) {
    std::vector<frame::SealPage> pages;
    for (std::size_t first = 0; first < parts_.entries.size(); first += parts_.chunks_per_page) {
      Bytes page = page_from(first);
      for (const Poke& change : parts_.pages)
        poke(page, change);
      const auto number = static_cast<std::int64_t>(first);
      pages.push_back({number, {to.size(), static_cast<std::uint32_t>(page.size()), frame::page_digest(number, page)}});
      codec::append(to, page);
    }
    Bytes root = frame::encode_root(pages);
    for (const Poke& change : parts_.root)
      poke(root, change);
    root_ = {to.size(), static_cast<std::uint32_t>(root.size()), frame::xxh3(root)};
    codec::append(to, root);
  }

  /// The seal of a frame with this header, index and trailer.
  Bytes seal(ByteView header, ByteView index, ByteView trailer) const {
    frame::Seal seal;
    seal.header_length = header.size();
    seal.nbytes = load_be<std::uint64_t>(&header[layout::kNbytesAt]);
    seal.cbytes = load_be<std::uint64_t>(&header[layout::kCbytesAt]);
    seal.chunk_count = parts_.entries.size();
    seal.index_digest = frame::xxh3(index);
    seal.root = root_;
    seal.header_digest = frame::xxh3(header);
    seal.trailer_digest = frame::xxh3(trailer);
    Bytes bytes = frame::encode_seal(seal);
    const std::size_t end = bytes.size() - sizeof(std::uint64_t);
    for (const Poke& change : parts_.seal)
      poke(codec::ByteSpan(bytes).first(end), change);
    codec::store_le(&bytes[end], frame::xxh3(ByteView(bytes).first(end)));
    return bytes;
  }

 private:
  Bytes page_from(std::size_t first) const {
    frame::PageDigests digests;
    const std::size_t end = std::min(parts_.entries.size(), first + parts_.chunks_per_page);
    for (std::size_t i = first; i < end; ++i) {
      const FrameEntry& entry = parts_.entries[i];
      std::vector<std::uint64_t> values;
      if (entry.chunk) values = digests_of_entry(static_cast<std::int64_t>(i), parts_.chunks[*entry.chunk]);
      digests.set(i - first, values);
    }
    return frame::encode_page(digests);
  }

  const FrameParts& parts_;
  frame::SealedPart root_;
};

}  // namespace

void poke(codec::ByteSpan bytes, const Poke& change) {
  if (bytes.empty()) return;
  const std::size_t place = change.place % bytes.size();
  const std::size_t length = std::min(sizeof(std::uint64_t), bytes.size() - place);
  std::array<std::uint8_t, sizeof(std::uint64_t)> word{};
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(place), length, word.begin());
  codec::store_le(word.data(), codec::load_le<std::uint64_t>(word.data()) + change.value);
  std::copy_n(word.begin(), length, bytes.begin() + static_cast<std::ptrdiff_t>(place));
}

std::optional<FrameParts> take_apart(ByteView frame, const frame::Container& container, std::int64_t most_chunks) {
  const std::int64_t count = container.chunk_count();
  const auto length = load_be<std::uint64_t>(&frame[layout::kFrameLengthAt]);
  if (count < 1 || count > most_chunks || length > frame.size()) return std::nullopt;
  FrameParts parts;
  const auto header = static_cast<std::size_t>(load_be<std::int32_t>(&frame[layout::kHeaderLengthAt]));
  codec::append(parts.header, frame.first(header));
  const auto trailer = load_be<std::uint32_t>(&frame[length - layout::kTrailerEnd + 1]);
  codec::append(parts.trailer, frame.subspan(length - trailer, trailer));
  std::map<std::int64_t, std::size_t> numbers;  // of chunks, by their offsets
  for (std::int64_t i = 0; i < count; ++i) {
    const auto location = container.locate_chunk(frame::ChunkNumber{i});
    if (!location) return std::nullopt;
    if (location->special != codec::SpecialValue::none) {
      parts.entries.push_back({std::nullopt, special_value(location->special)});
      continue;
    }
    const auto offset = static_cast<std::int64_t>(location->offset.value);
    const auto [at, is_new] = numbers.emplace(offset, parts.chunks.size());
    if (is_new) {
      const auto reader = frame::ChunkReader::open(container, frame::ChunkNumber{i});
      if (!reader) return std::nullopt;
      Bytes bytes((*reader)->stored_bytes());
      if (!(*reader)->read_stored(0, bytes)) return std::nullopt;
      parts.order.push_back(parts.chunks.size());
      parts.chunks.push_back(std::move(bytes));
      parts.gaps.emplace_back();
    }
    parts.entries.push_back({at->second, 0});
  }
  return parts;
}

AssembledFrame put_together(const FrameParts& parts) {
  AssembledFrame frame;
  frame.bytes = parts.header;
  frame.chunks.resize(parts.chunks.size());
  std::vector<std::int64_t> offsets(parts.chunks.size());
  for (const std::size_t number : parts.order) {
    codec::append(frame.bytes, parts.gaps[number]);
    const std::size_t begin = frame.bytes.size();
    offsets[number] = static_cast<std::int64_t>(begin - parts.header.size());
    codec::append(frame.bytes, parts.chunks[number]);
    frame.chunks[number] = {begin, frame.bytes.size()};
  }
  SealMaker maker(parts);
  if (parts.seal_form == SealForm::appended) maker.append_root(frame.bytes);
  const std::uint64_t cbytes = frame.bytes.size() - parts.header.size();
  const Bytes index = index_of(parts, offsets);
  frame.index = {frame.bytes.size(), frame.bytes.size() + index.size()};
  codec::append(frame.bytes, index);
  if (parts.seal_form == SealForm::whole) maker.append_root(frame.bytes);
  const std::size_t seal = parts.seal_form == SealForm::none ? 0 : frame::kSealLength;
  frame.trailer.begin = frame.bytes.size() + seal;
  frame.trailer.end = frame.trailer.begin + parts.trailer.size();
  store_be(&frame.bytes[layout::kFrameLengthAt], std::uint64_t{frame.trailer.end});
  store_be(&frame.bytes[layout::kCbytesAt], cbytes);
  const ByteView header = ByteView(frame.bytes).first(parts.header.size());
  if (seal != 0) codec::append(frame.bytes, maker.seal(header, index, parts.trailer));
  codec::append(frame.bytes, parts.trailer);
  return frame;
}

}  // namespace cframefs::test
