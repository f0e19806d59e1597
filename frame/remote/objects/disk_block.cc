#include "frame/remote/objects/disk_block.h"

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

#include "frame/base/xxh3.h"

namespace cframefs::frame {
namespace {

using codec::store_le;

constexpr std::string_view kBlockMagic("cfblock\0", 8);
constexpr std::uint32_t kBlockForm = 1;
constexpr std::size_t kDigestAt = 72;
constexpr std::size_t kNameLength = 32;

}  // namespace

DiskBlockKey DiskBlockKey::of(const std::string& state, std::uint64_t block) {
  return {sha256_of(state), state.size(), block};
}

DiskBlockPlace place_of(const DiskBlockKey& key) {
  std::array<std::uint8_t, sizeof key.state + sizeof key.block> named{};
  std::copy(key.state.begin(), key.state.end(), named.begin());
  store_le(&named[sizeof key.state], key.block);
  const std::uint64_t high = xxh3(named);
  return {static_cast<unsigned>(high >> 56U), fmt::format("{:016x}{:016x}", high, xxh3(named, 1))};
}

std::string directory_name(unsigned directory) {
  return fmt::format("{:02x}", directory);
}

bool is_block_name(const std::string& name) {
  return name.size() == kNameLength && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

DiskBlockHeader header_of(const DiskBlockKey& key, codec::ByteView body) {
  DiskBlockHeader header{};
  std::copy(kBlockMagic.begin(), kBlockMagic.end(), header.begin());
  store_le(&header[8], kBlockForm);
  store_le(&header[12], static_cast<std::uint32_t>(body.size()));
  std::copy(key.state.begin(), key.state.end(), header.begin() + 16);
  store_le(&header[48], key.state_length);
  store_le(&header[56], key.block);
  store_le(&header[64], xxh3(body));
  store_le(&header[kDigestAt], xxh3(codec::ByteView(header).first(kDigestAt)));
  return header;
}

bool holds_block(const DiskBlockHeader& header, const DiskBlockKey& key, codec::ByteView body) {
  return header == header_of(key, body);
}

}  // namespace cframefs::frame
