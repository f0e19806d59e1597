#include "frame/compat/bloscpack_header.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include <fmt/core.h>
#include <libdeflate.h>

#include "codec/format/chunk_header.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;
using codec::load_le;
using codec::unsupported;

constexpr std::array<std::uint8_t, 4> kPackMagic = {'b', 'l', 'p', 'k'};

// Offsets of the header fields. Version 1 has only the magic, the version and the number of chunks at byte 8.
constexpr std::size_t kVersionAt = 4;    // u8
constexpr std::size_t kOptionsAt = 5;    // u8
constexpr std::size_t kDigestAt = 6;     // u8
constexpr std::size_t kTypesizeAt = 7;   // u8
constexpr std::size_t kChunksizeAt = 8;  // i32
constexpr std::size_t kLastAt = 12;      // i32
constexpr std::size_t kCountAt = 16;     // i64
constexpr std::size_t kSpareAt = 24;     // i64, unused slots for offsets; since version 3
constexpr std::size_t kVersion1Length = 16;
constexpr std::size_t kVersion1CountAt = 8;
constexpr std::uint8_t kOffsetsOption = 0x01;
constexpr std::uint8_t kMetadataOption = 0x02;  // since version 3
constexpr std::int32_t kMaxBloscpackChunk = 2147483631;

// Offsets of the fields in the head of the metadata.
constexpr std::size_t kMetaHead = 32;
constexpr std::array<std::uint8_t, 8> kJson = {'J', 'S', 'O', 'N', 0, 0, 0, 0};
constexpr std::size_t kMetaOptionsAt = 8;      // u8
constexpr std::size_t kMetaDigestAt = 9;       // u8
constexpr std::size_t kMetaCodecAt = 10;       // u8
constexpr std::size_t kMetaPlainSizeAt = 12;   // u32
constexpr std::size_t kMetaRoomAt = 16;        // u32
constexpr std::size_t kMetaStoredSizeAt = 20;  // u32
constexpr std::uint8_t kMetaZlib = 1;          // 0: none

/// Greatest uncompressed length per byte of a zlib stream.
constexpr std::uint64_t kMaxInflation = 1032;
/// Bytes that deflation may add.
constexpr std::uint64_t kFreeMetadata = std::uint64_t{64} << 10;
/// Greatest length of metadata; a description of data is never longer.
constexpr std::uint64_t kMaxMetadata = std::uint64_t{16} << 20;

std::string number(std::int64_t value) {
  return std::to_string(value);
}

Result<BloscpackHeader> parse_version1(ByteView bytes) {
  BloscpackHeader header;
  header.version = 1;
  header.length = kVersion1Length;
  if (bytes[5] != 0 || bytes[6] != 0 || bytes[7] != 0) return corrupt("reserved bytes 5 to 7 of the header are not 0");
  header.count = load_le<std::int64_t>(&bytes[kVersion1CountAt]);
  return header;
}

Result<void> check_sizes(const BloscpackHeader& header) {
  for (const std::int32_t size : {header.chunksize, header.last}) {
    if (size < -1 || size > kMaxBloscpackChunk)
      return corrupt("chunk size " + number(size) + " of the header is not in -1 to " + number(kMaxBloscpackChunk));
  }
  // Version 2 added the remainder to the last chunk.
  if (header.version >= 3 && header.chunksize >= 0 && header.last > header.chunksize) {
    return corrupt("last chunk of " + number(header.last) + " bytes exceeds the chunk size " +
                   number(header.chunksize));
  }
  return {};
}

Result<BloscpackHeader> parse_later_version(ByteView bytes) {
  if (bytes.size() < kBloscpackHeader) return corrupt("the file ends inside its header");
  BloscpackHeader header;
  header.version = bytes[kVersionAt];
  header.length = kBloscpackHeader;
  const std::uint8_t options = bytes[kOptionsAt];
  const std::uint8_t known = header.version >= 3 ? kOffsetsOption | kMetadataOption : kOffsetsOption;
  if ((options & ~known) != 0) return corrupt("unknown option bits " + number(options) + " in the header");
  header.has_metadata = (options & kMetadataOption) != 0;
  const auto digest = digest_kind(bytes[kDigestAt]);
  if (!digest) return corrupt("unknown checksum " + number(bytes[kDigestAt]) + ", allowed are 0 to 8");
  header.digest = *digest;
  header.typesize = bytes[kTypesizeAt];
  header.chunksize = load_le<std::int32_t>(&bytes[kChunksizeAt]);
  header.last = load_le<std::int32_t>(&bytes[kLastAt]);
  if (auto fine = check_sizes(header); !fine) return Failure(fine.error());
  header.count = load_le<std::int64_t>(&bytes[kCountAt]);
  const std::int64_t spare = header.version >= 3 ? load_le<std::int64_t>(&bytes[kSpareAt]) : 0;
  if (spare < 0) return corrupt("negative number " + number(spare) + " of spare offsets");
  if ((options & kOffsetsOption) == 0 || header.count < 0) return header;
  if (spare > INT64_MAX - header.count)
    return corrupt(number(header.count) + " plus " + number(spare) + " offsets exceed 2^63 - 1");
  header.slots = header.count + spare;
  return header;
}

/// Checks that the counts of the header fit into the file.
Result<void> check_extent(const BloscpackHeader& header, std::uint64_t size) {
  if (header.count < -1 || header.count == 0) return corrupt("the header records " + number(header.count) + " chunks");
  const std::uint64_t left = size - header.length;
  const auto slots = static_cast<std::uint64_t>(header.slots);
  if (slots > left / sizeof(std::int64_t)) {
    return corrupt(fmt::format("{} offsets do not fit into a file of {} bytes", number(header.slots), size));
  }
  const std::uint64_t rest = left - slots * sizeof(std::int64_t);
  const std::uint64_t least = codec::kMinHeaderLength + digest_size(header.digest);
  if (header.count > 0 && static_cast<std::uint64_t>(header.count) > rest / least) {
    return corrupt(fmt::format("{} chunks do not fit into a file of {} bytes", number(header.count), size));
  }
  if (header.count > 1 && header.chunksize > 0 && header.count > INT64_MAX / header.chunksize) {
    return corrupt(number(header.count) + " chunks of " + number(header.chunksize) + " bytes exceed 2^63 - 1 bytes");
  }
  return {};
}

}  // namespace

bool has_bloscpack_magic(ByteView bytes) {
  return bytes.size() >= kPackMagic.size() && std::equal(kPackMagic.begin(), kPackMagic.end(), bytes.begin());
}

std::optional<std::uint64_t> BloscpackHeader::nbytes() const {
  if (count < 1 || last < 0 || chunksize < 0) return std::nullopt;
  // Some releases wrote chunk size 0 for a single chunk of any size; with more chunks 0 has no meaning.
  if (count > 1 && chunksize == 0) return std::nullopt;
  return static_cast<std::uint64_t>(chunksize) * static_cast<std::uint64_t>(count - 1) +
         static_cast<std::uint64_t>(last);
}

Result<BloscpackHeader> parse_bloscpack_header(ByteView bytes, std::uint64_t size) {
  if (!has_bloscpack_magic(bytes)) return corrupt("not a Bloscpack file: the magic is missing");
  if (bytes.size() < kVersion1Length) return corrupt("the file ends inside its header");
  const std::uint8_t version = bytes[kVersionAt];
  if (version < 1 || version > 3) return unsupported("Bloscpack format version " + number(version));
  auto header = version == 1 ? parse_version1(bytes) : parse_later_version(bytes);
  if (!header) return header;
  if (auto fits = check_extent(*header, size); !fits) return Failure(fits.error());
  return header;
}

Result<BloscpackMetadata> read_metadata_head(const ByteSource& source, std::uint64_t at) {
  if (at > source.size() || source.size() - at < kMetaHead)
    return corrupt(fmt::format("the file of {} bytes ends inside its metadata", source.size()));
  std::array<std::uint8_t, kMetaHead> head{};
  if (auto done = source.read(FileOffset{at}, head); !done) return Failure(done.error());
  const auto digest = digest_kind(head[kMetaDigestAt]);
  if (!digest)
    return corrupt("unknown checksum " + number(head[kMetaDigestAt]) + " of the metadata, allowed are 0 to 8");
  BloscpackMetadata metadata;
  metadata.digest = *digest;
  metadata.plain_size = load_le<std::uint32_t>(&head[kMetaPlainSizeAt]);
  metadata.stored_size = load_le<std::uint32_t>(&head[kMetaStoredSizeAt]);
  metadata.at = at + kMetaHead;
  const std::uint64_t room = load_le<std::uint32_t>(&head[kMetaRoomAt]);
  const std::uint64_t left = source.size() - metadata.at;
  if (metadata.stored_size > room || room > left || digest_size(*digest) > left - room) {
    return corrupt(
        fmt::format("metadata of {} bytes in room for {} do not fit into the file", metadata.stored_size, room));
  }
  metadata.digest_at = metadata.at + room;
  metadata.end = metadata.digest_at + digest_size(*digest);

  // The section is located, so the following errors do not prevent reading the chunks.
  const auto cannot = [&metadata](std::string why) { metadata.trouble = unsupported(std::move(why)).value(); };
  if (!std::equal(kJson.begin(), kJson.end(), head.begin())) cannot("the metadata are not JSON");
  if (head[kMetaOptionsAt] != 0) cannot("unknown options " + number(head[kMetaOptionsAt]) + " of the metadata");
  if (head[kMetaCodecAt] > kMetaZlib) cannot("unknown codec " + number(head[kMetaCodecAt]) + " of the metadata");
  if (std::max(metadata.stored_size, metadata.plain_size) > kMaxMetadata) cannot("the metadata claim more than 16 MiB");
  if (metadata.stored_size > 2 * metadata.plain_size + kFreeMetadata) {
    cannot(fmt::format("metadata of {} bytes are stored in {}", metadata.plain_size, metadata.stored_size));
  }
  metadata.deflated = head[kMetaCodecAt] == kMetaZlib;
  return metadata;
}

Result<std::vector<std::uint8_t>> read_metadata(const ByteSource& source, const BloscpackMetadata& metadata) {
  if (metadata.trouble) return Failure(*metadata.trouble);
  std::vector<std::uint8_t> stored(static_cast<std::size_t>(metadata.stored_size));
  if (auto done = source.read(FileOffset{metadata.at}, stored); !done) return Failure(done.error());
  Digest digest(metadata.digest);
  digest.add(stored);
  const auto computed = digest.finish();
  if (!computed) return Failure(computed.error());
  std::vector<std::uint8_t> kept(computed->size());
  if (auto done = source.read(FileOffset{metadata.digest_at}, kept); !done) return Failure(done.error());
  if (kept != *computed) return corrupt(std::string(digest_name(metadata.digest)) + " of the metadata does not match");

  if (!metadata.deflated) {
    if (metadata.plain_size != metadata.stored_size) {
      return corrupt(
          fmt::format("uncompressed metadata of {} bytes are stored in {}", metadata.plain_size, metadata.stored_size));
    }
    return stored;
  }
  if (metadata.plain_size > kMaxInflation * metadata.stored_size) {
    return corrupt(
        fmt::format("deflated metadata of {} bytes cannot hold {}", metadata.stored_size, metadata.plain_size));
  }
  std::vector<std::uint8_t> plain(static_cast<std::size_t>(metadata.plain_size));
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> inflater(
      libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  if (!inflater) return codec::io_error(ENOMEM, "zlib");
  const auto result =
      libdeflate_zlib_decompress(inflater.get(), stored.data(), stored.size(), plain.data(), plain.size(), nullptr);
  if (result != LIBDEFLATE_SUCCESS)
    return corrupt(fmt::format("the metadata do not inflate to {} bytes", metadata.plain_size));
  return plain;
}

}  // namespace cframefs::frame
