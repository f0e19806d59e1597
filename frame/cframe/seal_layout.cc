#include "frame/cframe/seal_layout.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/core.h>

#include "codec/base/page_memory.h"
#include "frame/base/xxh3.h"

namespace cframefs::frame {
namespace {

using codec::ByteView;
using codec::load_le;
using codec::store_le;

constexpr std::array<std::uint8_t, 8> kMagic = {'b', '2', 's', 'e', 'a', 'l', 0, 1};
constexpr std::uint32_t kXxh3 = 1;

// Offsets in the seal.
constexpr std::size_t kAlgorithmAt = 8;
constexpr std::size_t kLengthAt = 12;
constexpr std::size_t kHeaderLengthAt = 16;
constexpr std::size_t kNbytesAt = 24;
constexpr std::size_t kCbytesAt = 32;
constexpr std::size_t kChunkCountAt = 40;
constexpr std::size_t kIndexDigestAt = 48;
constexpr std::size_t kRootPlaceAt = 56;
constexpr std::size_t kRootLengthAt = 64;  // u32, then 4 bytes of zero
constexpr std::size_t kRootDigestAt = 72;
constexpr std::size_t kHeaderDigestAt = 80;
constexpr std::size_t kTrailerDigestAt = 88;
constexpr std::size_t kSealDigestAt = 96;

// An entry of the root: u64 first chunk, u64 place, u32 length, 4 bytes of zero, u64 digest.
constexpr std::size_t kRootEntry = 32;

constexpr std::size_t kDigest = 8;
constexpr std::size_t kCount = 4;

template <std::integral T>
void append_le(std::vector<std::uint8_t>& to, T value) {
  std::array<std::uint8_t, sizeof(T)> bytes{};
  store_le(bytes.data(), value);
  codec::append(to, bytes);
}

}  // namespace

std::vector<std::uint8_t> encode_seal(const Seal& seal) {
  std::vector<std::uint8_t> bytes(kSealLength);
  std::copy(kMagic.begin(), kMagic.end(), bytes.begin());
  store_le(&bytes[kAlgorithmAt], kXxh3);
  store_le(&bytes[kLengthAt], static_cast<std::uint32_t>(kSealLength));
  store_le(&bytes[kHeaderLengthAt], seal.header_length);
  store_le(&bytes[kNbytesAt], seal.nbytes);
  store_le(&bytes[kCbytesAt], seal.cbytes);
  store_le(&bytes[kChunkCountAt], seal.chunk_count);
  store_le(&bytes[kIndexDigestAt], seal.index_digest);
  store_le(&bytes[kRootPlaceAt], seal.root.place);
  store_le(&bytes[kRootLengthAt], seal.root.length);
  store_le(&bytes[kRootDigestAt], seal.root.digest);
  store_le(&bytes[kHeaderDigestAt], seal.header_digest);
  store_le(&bytes[kTrailerDigestAt], seal.trailer_digest);
  store_le(&bytes[kSealDigestAt], xxh3(ByteView(bytes).first(kSealDigestAt)));
  return bytes;
}

std::optional<Seal> parse_seal(ByteView bytes) {
  if (bytes.size() != kSealLength || !std::equal(kMagic.begin(), kMagic.end(), bytes.begin())) return std::nullopt;
  if (load_le<std::uint32_t>(&bytes[kAlgorithmAt]) != kXxh3) return std::nullopt;
  if (load_le<std::uint32_t>(&bytes[kLengthAt]) != kSealLength) return std::nullopt;
  if (load_le<std::uint64_t>(&bytes[kSealDigestAt]) != xxh3(bytes.first(kSealDigestAt))) return std::nullopt;
  Seal seal;
  seal.header_length = load_le<std::uint64_t>(&bytes[kHeaderLengthAt]);
  seal.nbytes = load_le<std::uint64_t>(&bytes[kNbytesAt]);
  seal.cbytes = load_le<std::uint64_t>(&bytes[kCbytesAt]);
  seal.chunk_count = load_le<std::uint64_t>(&bytes[kChunkCountAt]);
  seal.index_digest = load_le<std::uint64_t>(&bytes[kIndexDigestAt]);
  seal.root = {load_le<std::uint64_t>(&bytes[kRootPlaceAt]), load_le<std::uint32_t>(&bytes[kRootLengthAt]),
               load_le<std::uint64_t>(&bytes[kRootDigestAt])};
  seal.header_digest = load_le<std::uint64_t>(&bytes[kHeaderDigestAt]);
  seal.trailer_digest = load_le<std::uint64_t>(&bytes[kTrailerDigestAt]);
  return seal;
}

std::vector<std::uint8_t> encode_root(std::span<const SealPage> pages) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(kRootEntry * pages.size());
  for (const SealPage& page : pages) {
    append_le(bytes, static_cast<std::uint64_t>(page.first));
    append_le(bytes, page.part.place);
    append_le(bytes, page.part.length);
    append_le(bytes, std::uint32_t{0});
    append_le(bytes, page.part.digest);
  }
  return bytes;
}

codec::Result<std::vector<SealPage>> parse_root(ByteView bytes) {
  if (bytes.size() % kRootEntry != 0)
    return codec::corrupt(
        fmt::format("the root of the seal has {} bytes, must be a multiple of {}", bytes.size(), kRootEntry));
  std::vector<SealPage> pages;
  pages.reserve(bytes.size() / kRootEntry);
  for (std::size_t at = 0; at < bytes.size(); at += kRootEntry) {
    SealPage page;
    page.first = load_le<std::int64_t>(&bytes[at]);
    page.part = {load_le<std::uint64_t>(&bytes[at + 8]), load_le<std::uint32_t>(&bytes[at + 16]),
                 load_le<std::uint64_t>(&bytes[at + 24])};
    if (page.first < 0 || (!pages.empty() && page.first <= pages.back().first))
      return codec::corrupt(fmt::format("the page of chunk {} is out of order", page.first));
    pages.push_back(page);
  }
  return pages;
}

std::span<const std::uint64_t> PageDigests::at(std::size_t number) const {
  return std::span(values_).subspan(chunks_[number].begin, chunks_[number].length);
}

void PageDigests::set(std::size_t number, std::span<const std::uint64_t> digests) {
  if (chunks_.size() <= number) chunks_.resize(number + 1);
  chunks_[number] = {values_.size(), digests.size()};
  values_.insert(values_.end(), digests.begin(), digests.end());
}

void PageDigests::cut(std::size_t count) {
  if (count < chunks_.size()) chunks_.resize(count);
}

bool PageDigests::has_any() const {
  return std::any_of(chunks_.begin(), chunks_.end(), [](const Range& range) { return range.length > 0; });
}

std::vector<std::uint8_t> encode_page(const PageDigests& chunks) {
  std::vector<std::uint8_t> bytes;
  append_le(bytes, static_cast<std::uint32_t>(chunks.chunk_count()));
  for (std::size_t chunk = 0; chunk < chunks.chunk_count(); ++chunk)
    append_le(bytes, static_cast<std::uint32_t>(chunks.at(chunk).size()));
  for (std::size_t chunk = 0; chunk < chunks.chunk_count(); ++chunk) {
    for (const std::uint64_t digest : chunks.at(chunk))
      append_le(bytes, digest);
  }
  return bytes;
}

codec::Result<ParsedPage> parse_page(ByteView bytes) {
  const auto wrong = [&] {
    return codec::corrupt(fmt::format("a page of digests of {} bytes does not hold what its counts say", bytes.size()));
  };
  if (bytes.size() < kCount) return wrong();
  const std::uint64_t chunks = load_le<std::uint32_t>(bytes.data());
  const std::uint64_t begin = kCount + kCount * chunks;
  if (begin > bytes.size() || (bytes.size() - begin) % kDigest != 0) return wrong();
  const std::uint64_t digests = (bytes.size() - begin) / kDigest;
  ParsedPage page;
  const auto numbers = static_cast<std::size_t>(2 + chunks + digests);
  page.reserve(numbers);
  codec::fault_in(page.data(), numbers * sizeof(ParsedPage::value_type));
  page.push_back(static_cast<std::int64_t>(chunks));
  std::uint64_t seen = 0;
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
    page.push_back(static_cast<std::int64_t>(2 + chunks + seen));
    seen += load_le<std::uint32_t>(&bytes[kCount + kCount * chunk]);
  }
  if (seen != digests) return wrong();
  page.push_back(static_cast<std::int64_t>(2 + chunks + seen));
  for (std::uint64_t digest = 0; digest < digests; ++digest)
    page.push_back(load_le<std::int64_t>(&bytes[begin + kDigest * digest]));
  return page;
}

std::span<const std::int64_t> digests_in(const ParsedPage& page, std::int64_t number) {
  if (page.empty() || number < 0 || number >= page.front()) return {};
  const auto begin = static_cast<std::size_t>(page[static_cast<std::size_t>(number) + 1]);
  const auto end = static_cast<std::size_t>(page[static_cast<std::size_t>(number) + 2]);
  return std::span(page).subspan(begin, end - begin);
}

std::uint64_t page_digest(std::int64_t first, ByteView bytes) {
  return xxh3(bytes, static_cast<std::uint64_t>(first));
}

}  // namespace cframefs::frame
