// A library that a layer uses, for the option -V of the programs.
//
// Thread safety: plain data.
#pragma once

#include <string>

namespace cframefs::codec {

struct LibraryVersion {
  std::string name;
  std::string version;
};

}  // namespace cframefs::codec
