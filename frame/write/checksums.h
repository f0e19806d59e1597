// Whether a writer seals frames (frame/doc/seal.md).
#pragma once

#include <cstdint>

namespace cframefs::frame {

enum class Checksums : std::uint8_t {
  on,    // new and rewritten frames get a seal; a frame that has one keeps it
  keep,  // a frame that has a seal keeps it
  off,   // no commit writes a seal
};

}  // namespace cframefs::frame
