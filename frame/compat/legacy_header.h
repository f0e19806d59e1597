// The header and trailer of the frames that the betas of C-Blosc2 2.0 wrote.
//
// They look like current ones at first sight, magic included, and are told from them by the number of fields in the
// first byte. Three forms were released:
//   beta1   no trailer, and a header of 64 bytes and more (2.0.0-beta.1)
//   beta2   header of 92 bytes and more, trailer version 0 (beta.2)
//   beta3   the same, trailer version 1 (beta.3, beta.4, beta.5)
//
// Thread safety: functions and plain values. Units: bytes. Errors: corruption; unsupported for what no release wrote.
#pragma once

#include <cstdint>

#include "frame/cframe/frame_header.h"
#include "frame/io/range_buffer.h"

namespace cframefs::frame {

enum class LegacyForm : std::uint8_t { beta1, beta2, beta3 };

/// Whether bytes with a frame's magic (has_frame_magic()) are those of such a frame, or of one of a snapshot in
/// between.
bool is_legacy_header(ByteView bytes);

struct LegacyHeader {
  FrameHeader frame;  // chunk_count -1 unless empty: chunks may be shorter than the chunk size anywhere
  LegacyForm form = LegacyForm::beta1;  // beta2 stands for beta3 as well until the trailer has been read
  std::int32_t chunksize = 0;           // that no chunk exceeds; 0: not recorded
  std::size_t metalayers_at = 0;        // 0: there is no section of them

  bool has_metalayers() const;
};

/// `bytes`: the first 87, or fewer if the file is shorter.
Result<LegacyHeader> parse_legacy_header(ByteView bytes);

/// Checks that a frame of these lengths fits into `available` bytes.
Result<void> check_extent(const LegacyHeader& header, std::uint64_t available);

struct LegacyTrailer {
  LegacyForm form = LegacyForm::beta1;
  std::uint64_t begin = 0;          // from the start of the frame; frame_length where there is none
  std::uint64_t usermeta_at = 0;    // of the chunk that holds it
  std::uint64_t usermeta_size = 0;  // 0: there is none
};

/// Finds the trailer from the end of the frame. `windows` are of the frame's source.
Result<LegacyTrailer> read_legacy_trailer(RangeBuffer& windows, const LegacyHeader& header);

}  // namespace cframefs::frame
