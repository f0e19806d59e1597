// The directory of a zip file: which members there are and where they lie. Nothing is inflated.
//
// Zip64 is understood. Every offset and length is checked against the file. Thread safety: functions and plain values.
// Errors: corruption; io passes through.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frame/byte_source.h"

namespace cframefs::frame {

struct ZipMember {
  std::string name;
  std::uint64_t size = 0;    // plain
  std::uint64_t header = 0;  // where its local header begins
  bool stored = false;       // its bytes lie in the file as they are: neither compressed nor encrypted
};

/// All members; none if the file is no zip file at all.
Result<std::optional<std::vector<ZipMember>>> read_zip_directory(const ByteSource& source);

/// Where the bytes of a stored member begin, which only its local header knows.
Result<FileOffset> zip_member_begin(const ByteSource& source, const ZipMember& member);

}  // namespace cframefs::frame
