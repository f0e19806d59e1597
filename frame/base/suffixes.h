// The suffixes of containers: files, and directories of sparse frames. The only table of these suffixes.
//
// Thread safety: constants and functions only.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace cframefs::frame {

inline constexpr std::string_view kArraySuffix = ".b2nd";
inline constexpr std::string_view kPackSuffix = ".blp";
/// Used for save_array() and save_tensor() in the documentation of python-blosc2. Boot loaders use the suffix, too.
inline constexpr std::string_view kSavedSuffix = ".bl2";
inline constexpr std::array<std::string_view, 9> kContainerSuffixes = {
    ".b2", ".b2b", ".b2f", kSavedSuffix, kPackSuffix, kArraySuffix, ".blosc", ".cdata", ".b2frame"};

/// Suffixes of the stores of python-blosc2, which are not containers but hold some.
inline constexpr std::string_view kZipStoreSuffix = ".b2z";
inline constexpr std::string_view kEmbedStoreSuffix = ".b2e";
inline constexpr std::string_view kDirectoryStoreSuffix = ".b2d";

/// Returns the container suffix of a name. Empty if the name has none, or is only a suffix.
constexpr std::string_view container_suffix(std::string_view name) {
  // Each suffix has one dot, at its beginning.
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return {};
  for (const std::string_view suffix : kContainerSuffixes) {
    if (name.substr(dot) == suffix) return suffix;
  }
  return {};
}

/// Returns true if other file formats use this suffix, too: only the content shows whether a file is a container.
constexpr bool is_shared_suffix(std::string_view suffix) {
  return suffix == kSavedSuffix;
}

/// Returns true if a file of this name is a frame in the current format. A file of 0 bytes with such a name is an empty
/// frame: a power cut just after the creation of a frame leaves one.
constexpr bool is_frame_name(std::string_view name) {
  const std::string_view suffix = container_suffix(name);
  return suffix == ".b2frame" || suffix == ".b2f" || suffix == ".b2" || suffix == kSavedSuffix;
}

}  // namespace cframefs::frame
