// The header of a Bloscpack file, and the metadata section after it.
//
// A file is: header | metadata? | offsets? | chunk, digest | chunk, digest | ... All integers are little endian.
// Format: bloscpack.md. Versions 1 to 3.
//
// Thread safety: functions and plain values. Units: bytes. Errors: corruption; unsupported for other versions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frame/compat/digest.h"
#include "frame/io/byte_source.h"

namespace cframefs::frame {

inline constexpr std::size_t kBloscpackHeader = 32;  // bytes; version 1: 16

/// Returns true if the file begins with the magic of Bloscpack, of any version. `bytes`: the first 4 bytes or more.
bool has_bloscpack_magic(ByteView bytes);

struct BloscpackHeader {
  int version = 0;
  DigestKind digest = DigestKind::none;  // of the chunks
  std::uint8_t typesize = 0;             // 0: not recorded
  bool has_metadata = false;
  std::int64_t slots = 0;       // entries of the offsets section; 0: no section
  std::int32_t chunksize = -1;  // uncompressed, of every chunk but the last; -1: not known
  std::int32_t last = -1;       // uncompressed, of the last chunk; -1: not known
  std::int64_t count = -1;      // number of chunks; -1: up to the end of the file
  std::uint64_t length = 0;     // bytes of the header

  /// Returns the uncompressed size of the file; nullopt if the header does not record it. With it, the size of every
  /// chunk is known.
  std::optional<std::uint64_t> nbytes() const;
  /// Returns the uncompressed size of a chunk. REQUIRES: nbytes() has a value.
  std::int32_t size_of(std::int64_t chunk) const { return chunk + 1 == count ? last : chunksize; }
};

/// Parses a header. `bytes`: the first 32 bytes, or fewer if the file is shorter. `size`: size of the file, which
/// bounds the counts of the header.
Result<BloscpackHeader> parse_bloscpack_header(ByteView bytes, std::uint64_t size);

struct BloscpackMetadata {
  DigestKind digest = DigestKind::none;
  bool deflated = false;
  std::uint64_t plain_size = 0;
  std::uint64_t stored_size = 0;
  std::uint64_t at = 0;          // offset of the stored bytes
  std::uint64_t digest_at = 0;   // offset of the digest, after the preallocated room
  std::uint64_t end = 0;         // end of the section
  std::optional<Error> trouble;  // why the text cannot be read, although the section is located
};

/// Parses the head of the metadata section at `at`. corruption: the end of the section, and thus the chunks, cannot be
/// located.
Result<BloscpackMetadata> read_metadata_head(const ByteSource& source, std::uint64_t at);

/// Reads the metadata text and verifies its digest.
Result<std::vector<std::uint8_t>> read_metadata(const ByteSource& source, const BloscpackMetadata& metadata);

}  // namespace cframefs::frame
