// The header of a Bloscpack file, and the section of metadata behind it.
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

inline constexpr std::size_t kBloscpackHeader = 32;  // of version 1: 16

/// Whether these first bytes (4 are enough) are those of a Bloscpack file of whatever version.
bool has_bloscpack_magic(ByteView bytes);

struct BloscpackHeader {
  int version = 0;
  DigestKind digest = DigestKind::none;  // of the chunks
  std::uint8_t typesize = 0;             // 0: not recorded
  bool has_metadata = false;
  std::int64_t slots = 0;       // of the section of offsets; 0: there is none
  std::int32_t chunksize = -1;  // of every chunk but the last; -1: not known
  std::int32_t last = -1;       // of the last chunk; -1: not known
  std::int64_t count = -1;      // of chunks; -1: as many as there are
  std::uint64_t length = 0;     // of the header

  /// How many plain bytes there are, if the header tells; with them the size of every chunk is known.
  std::optional<std::uint64_t> nbytes() const;
  /// REQUIRES: nbytes().
  std::int32_t size_of(std::int64_t chunk) const { return chunk + 1 == count ? last : chunksize; }
};

/// `bytes`: the first 32, or fewer if the file is shorter. `size`: of the file, which bounds what can be in it.
Result<BloscpackHeader> parse_bloscpack_header(ByteView bytes, std::uint64_t size);

struct BloscpackMetadata {
  DigestKind digest = DigestKind::none;
  bool deflated = false;
  std::uint64_t plain_size = 0;
  std::uint64_t stored_size = 0;
  std::uint64_t at = 0;          // of the stored bytes
  std::uint64_t digest_at = 0;   // behind the room that is kept for more
  std::uint64_t end = 0;         // of the section
  std::optional<Error> trouble;  // why the text cannot be read, though the section has its place
};

/// The head of the section of metadata that begins at `at`. corruption: what follows it cannot be found.
Result<BloscpackMetadata> read_metadata_head(const ByteSource& source, std::uint64_t at);

/// The text, held against its digest.
Result<std::vector<std::uint8_t>> read_metadata(const ByteSource& source, const BloscpackMetadata& metadata);

}  // namespace cframefs::frame
