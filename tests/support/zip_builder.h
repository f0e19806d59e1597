// Zip files made by hand, member by member: an oracle that shares no code with the reader.
//
// Thread safety: one thread per object.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/frame_builder.h"

namespace cframefs::test {

struct ZipEntry {
  std::string name;
  Bytes content;
  std::uint16_t method = 0;     // 8 claims to be deflated
  std::uint16_t flags = 0;      // 1: encrypted
  std::size_t local_extra = 0;  // bytes of extra field in the local header alone
  bool zip64 = false;           // sizes and place in the directory's extra field
};

/// `zip64`: the end of the directory in its long form, too.
Bytes zip_file(const std::vector<ZipEntry>& entries, bool zip64 = false, const std::string& comment = {});

/// An embed frame holding `frames` one after the other, with its map. `kind`: b2embed, b2tree or b2dict.
Bytes embed_frame(const std::vector<std::pair<std::string, Bytes>>& frames, const std::string& kind = "b2embed");

}  // namespace cframefs::test
