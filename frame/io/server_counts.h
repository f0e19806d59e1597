// What a file tree has asked servers for since it was opened.
//
// Thread safety: values. Units: bytes.
#pragma once

#include <cstdint>

namespace cframefs::frame {

struct ServerCounts {
  std::uint64_t requests = 0;  // that were sent
  std::uint64_t retries = 0;   // of these, later attempts
  std::uint64_t hedges = 0;    // and second requests because the answer did not begin
  std::uint64_t bytes = 0;     // of the bodies of answers
};

}  // namespace cframefs::frame
