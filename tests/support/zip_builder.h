// Zip files made by hand, member by member: an oracle that shares no code with the reader.
//
// Thread safety: one thread per object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/frame_builder.h"

namespace cframefs::test {

struct ZipEntry {
  std::string name;
  Bytes content;
  std::uint16_t method = 0;     // 8: is deflated, unless `stored` says what is there instead
  std::uint16_t flags = 0;      // 1: encrypted
  std::size_t local_extra = 0;  // bytes of extra field in the local header alone
  bool zip64 = false;           // sizes and place in the directory's extra field
  // What the headers say instead of the truth, and the bytes of the file that are there instead of the content.
  std::optional<std::uint64_t> size = {};
  std::optional<std::uint32_t> checksum = {};
  std::optional<Bytes> stored = {};
};

/// As zlib deflates it, without any header.
Bytes deflated(const Bytes& plain, int level = 6);

/// `zip64`: the end of the directory in its long form, too.
Bytes zip_file(const std::vector<ZipEntry>& entries, bool zip64 = false, const std::string& comment = {});

/// An embed frame holding `frames` one after the other, with its map. `kind`: b2embed, b2tree or b2dict.
Bytes embed_frame(const std::vector<std::pair<std::string, Bytes>>& frames, const std::string& kind = "b2embed");

}  // namespace cframefs::test
