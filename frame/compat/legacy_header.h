// The header and trailer of frames of the betas of C-Blosc2 2.0.
//
// They have the magic of current frames and are distinguished by the number of fields in the first byte. Three forms
// were released:
//   beta1   no trailer, header of at least 64 bytes (2.0.0-beta.1)
//   beta2   header of at least 92 bytes, trailer version 0 (beta.2)
//   beta3   as beta2, but trailer version 1 (beta.3, beta.4, beta.5)
//
// Thread safety: functions and plain values. Units: bytes. Errors: corruption; unsupported for forms that no release
// wrote.
#pragma once

#include <cstdint>

#include "frame/cframe/frame_header.h"
#include "frame/io/range_buffer.h"

namespace cframefs::frame {

enum class LegacyForm : std::uint8_t { beta1, beta2, beta3 };

/// Returns true if `bytes` begin a frame of a beta, or of an unreleased version between two betas. REQUIRES:
/// has_frame_magic(bytes).
bool is_legacy_header(ByteView bytes);

struct LegacyHeader {
  FrameHeader frame;  // chunk_count -1 unless empty: chunks may be shorter than the chunk size anywhere
  LegacyForm form = LegacyForm::beta1;  // until the trailer is read, beta2 may also mean beta3
  std::int32_t chunksize = 0;           // upper bound of all chunks; 0: not recorded
  std::size_t metalayers_at = 0;        // offset of the metalayer section; 0: none

  bool has_metalayers() const;
};

/// Parses a header. `bytes`: the first 87 bytes, or fewer if the file is shorter.
Result<LegacyHeader> parse_legacy_header(ByteView bytes);

/// Checks that a frame of these lengths fits into `available` bytes.
Result<void> check_extent(const LegacyHeader& header, std::uint64_t available);

struct LegacyTrailer {
  LegacyForm form = LegacyForm::beta1;
  std::uint64_t begin = 0;          // offset in the frame; frame_length if there is no trailer
  std::uint64_t usermeta_at = 0;    // offset of the chunk that holds usermeta
  std::uint64_t usermeta_size = 0;  // bytes of that chunk; 0: no usermeta
};

/// Reads the trailer, which is located from the end of the frame. `windows`: reads the frame's source.
Result<LegacyTrailer> read_legacy_trailer(RangeBuffer& windows, const LegacyHeader& header);

}  // namespace cframefs::frame
