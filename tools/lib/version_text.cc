#include "tools/lib/version_text.h"

#include "codec/library_versions.h"
#include "frame/base/library_versions.h"
#include "tools/version.h"

namespace cframefs::tools {

std::string version_text(std::string_view program, const std::vector<codec::LibraryVersion>& first) {
  std::string text = std::string(program) + " " + kVersion + "\n";
  for (const auto& libraries : {first, codec::library_versions(), frame::library_versions()}) {
    for (const auto& [name, version] : libraries)
      text += name + " " + version + "\n";
  }
  return text;
}

}  // namespace cframefs::tools
