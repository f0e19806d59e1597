#include "tools/lib/version_text.h"

#include <fmt/core.h>

#include "codec/library_versions.h"
#include "frame/base/library_versions.h"
#include "tools/version.h"

namespace cframefs::tools {

std::string version_text(std::string_view program, const std::vector<codec::LibraryVersion>& first) {
  std::string text = fmt::format("{} {}\n", program, kVersion);
  for (const auto& libraries : {first, codec::library_versions(), frame::library_versions()}) {
    for (const auto& [name, version] : libraries)
      text += fmt::format("{} {}\n", name, version);
  }
  return text;
}

}  // namespace cframefs::tools
