// The directory of a zip file: which members there are and where they lie. Their bytes: zip_member.h.
//
// Zip64 is understood. Every offset and length is checked against the file. Thread safety: functions and plain values.
// Errors: corruption; io passes through.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "frame/io/byte_source.h"

namespace cframefs::frame {

/// How the bytes of a member were compressed. Others than these cannot be read.
enum class ZipMethod : std::uint16_t { stored = 0, deflated = 8 };

struct ZipMember {
  std::string name;
  std::uint64_t size = 0;      // plain
  std::uint64_t stored = 0;    // in the zip file
  std::uint64_t header = 0;    // where its local header begins
  std::uint32_t checksum = 0;  // CRC-32 of the plain bytes
  ZipMethod method = ZipMethod::stored;
  bool encrypted = false;
};

/// Calls `visit` for each member in the order of the directory, of which a piece is in memory at a time; its first
/// error ends the walk. False: the file is no zip file at all. The member that it gets is another one after the call.
Result<bool> visit_zip_directory(const ByteSource& source, const std::function<Result<void>(ZipMember& member)>& visit);

/// The last member of this name; none if there is none, or if the file is no zip file.
Result<std::optional<ZipMember>> find_zip_member(const ByteSource& source, std::string_view name);

/// Where the bytes of a member begin, which only its local header knows. unsupported: they cannot be read.
Result<FileOffset> zip_member_begin(const ByteSource& source, const ZipMember& member);

}  // namespace cframefs::frame
