#include "frame/remote/objects/disk_block.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>

#include "frame/base/xxh3.h"

namespace cframefs::frame {
namespace {

using codec::store_le;

constexpr std::string_view kBlockMagic("cfblock\0", 8);
constexpr std::uint32_t kBlockForm = 2;
constexpr std::size_t kDigestsDigestAt = 64;
constexpr std::size_t kDigestAt = 72;
constexpr std::size_t kDigestsAt = 80;
constexpr std::size_t kDigestBytes = 8;
constexpr std::size_t kNameLength = 32;

/// Writes what stands before the digests. `digests`: their bytes. REQUIRES: `header` has kDigestsAt bytes at least.
void write_fixed_part(codec::ByteSpan header, const DiskBlockKey& key, std::size_t length, codec::ByteView digests) {
  std::copy(kBlockMagic.begin(), kBlockMagic.end(), header.begin());
  store_le(&header[8], kBlockForm);
  store_le(&header[12], static_cast<std::uint32_t>(length));
  std::copy(key.state.begin(), key.state.end(), header.begin() + 16);
  store_le(&header[48], key.state_length);
  store_le(&header[56], key.block);
  store_le(&header[kDigestsDigestAt], xxh3(digests));
  store_le(&header[kDigestAt], xxh3(header.first(kDigestAt)));
}

}  // namespace

DiskBlockKey DiskBlockKey::of(const std::string& state, std::uint64_t block) {
  // A reader asks for the same state many times.
  thread_local std::string last_state;
  thread_local Sha256 last_digest = sha256_of(last_state);
  if (state != last_state) {
    last_digest = sha256_of(state);
    last_state = state;
  }
  return {last_digest, state.size(), block};
}

DiskBlockPlace place_of(const DiskBlockKey& key) {
  std::array<std::uint8_t, sizeof key.state + sizeof key.block> named{};
  std::copy(key.state.begin(), key.state.end(), named.begin());
  store_le(&named[sizeof key.state], key.block);
  return {xxh3(named), xxh3(named, 1)};
}

std::string DiskBlockPlace::name() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

std::string directory_name(unsigned directory) {
  return fmt::format("{:02x}", directory);
}

bool is_block_name(const std::string& name) {
  return name.size() == kNameLength && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::size_t disk_header_length(std::size_t length) {
  return kDigestsAt + kDigestBytes * ((length + kDiskPieceBytes - 1) / kDiskPieceBytes);
}

std::vector<std::uint8_t> header_of(const DiskBlockKey& key, codec::ByteView body) {
  std::vector<std::uint8_t> header(disk_header_length(body.size()));
  for (std::size_t at = 0, digest = kDigestsAt; at < body.size(); at += kDiskPieceBytes, digest += kDigestBytes)
    store_le(&header[digest], xxh3(body.subspan(at, std::min(kDiskPieceBytes, body.size() - at))));
  write_fixed_part(header, key, body.size(), codec::ByteView(header).subspan(kDigestsAt));
  return header;
}

std::optional<DiskBlockHeader> parse_header(codec::ByteView first, std::uint64_t file_length, const DiskBlockKey& key) {
  if (first.size() <= kDigestsAt) return std::nullopt;
  DiskBlockHeader parsed;
  parsed.length = codec::load_le<std::uint32_t>(&first[12]);
  const std::size_t header_length = disk_header_length(parsed.length);
  if (parsed.length == 0 || header_length > std::min(first.size(), kMostDiskHeader) ||
      file_length != header_length + parsed.length)
    return std::nullopt;
  const codec::ByteView digests = first.subspan(kDigestsAt, header_length - kDigestsAt);
  // Compared as a whole, so that no byte is left out.
  std::array<std::uint8_t, kDigestsAt> expected{};
  write_fixed_part(expected, key, parsed.length, digests);
  if (!std::equal(expected.begin(), expected.end(), first.begin())) return std::nullopt;
  for (std::size_t piece = 0; piece < digests.size() / kDigestBytes; ++piece)
    parsed.digests.at(piece) = codec::load_le<std::uint64_t>(&digests[piece * kDigestBytes]);
  return parsed;
}

}  // namespace cframefs::frame
