// Parses the directory of a zip file, Zip64 included. The bytes of members: zip_member.h.
//
// Every offset and length is checked against the file.
//
// Thread safety: functions and plain values. Errors: corruption; io passes through.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "frame/io/byte_source.h"

namespace cframefs::frame {

/// Compression methods of members. Members with other methods cannot be read.
enum class ZipMethod : std::uint16_t { stored = 0, deflated = 8 };

struct ZipMember {
  std::string name;
  std::uint64_t size = 0;      // uncompressed bytes
  std::uint64_t stored = 0;    // bytes in the zip file
  std::uint64_t header = 0;    // offset of the local header
  std::uint32_t checksum = 0;  // CRC-32 of the uncompressed bytes
  ZipMethod method = ZipMethod::stored;
  bool encrypted = false;
};

/// Calls `visit` for each member in the order of the directory. Stops at the first error. Returns false if the file is
/// not a zip file. Only a piece of the directory is in memory. The argument of `visit` is valid only during the call.
Result<bool> visit_zip_directory(const ByteSource& source, const std::function<Result<void>(ZipMember& member)>& visit);

/// Returns the last member of this name, or nullopt if there is none or the file is not a zip file.
Result<std::optional<ZipMember>> find_zip_member(const ByteSource& source, std::string_view name);

/// Reads a member's local header and returns the offset of its bytes. unsupported: encrypted, or another method.
Result<FileOffset> zip_member_begin(const ByteSource& source, const ZipMember& member);

}  // namespace cframefs::frame
