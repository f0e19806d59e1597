// The suffixes that say that a file, or the directory of a sparse frame, is a container. The only table of them.
//
// Thread safety: constants and functions only.
#pragma once

#include <array>
#include <string_view>

namespace cframefs::frame {

inline constexpr std::string_view kArraySuffix = ".b2nd";
inline constexpr std::string_view kPackSuffix = ".blp";
/// What save_array() and save_tensor() of python-blosc2 make in its documentation; boot loaders have such files, too.
inline constexpr std::string_view kSavedSuffix = ".bl2";
inline constexpr std::array<std::string_view, 9> kContainerSuffixes = {
    ".b2", ".b2b", ".b2f", kSavedSuffix, kPackSuffix, kArraySuffix, ".blosc", ".cdata", ".b2frame"};

/// Of the stores of python-blosc2, which are no containers but hold some.
inline constexpr std::string_view kZipStoreSuffix = ".b2z";
inline constexpr std::string_view kEmbedStoreSuffix = ".b2e";
inline constexpr std::string_view kDirectoryStoreSuffix = ".b2d";

/// The suffix of a name that has more than a suffix; empty if it is none of these.
constexpr std::string_view container_suffix(std::string_view name) {
  for (const std::string_view suffix : kContainerSuffixes) {
    if (name.size() > suffix.size() && name.ends_with(suffix)) return suffix;
  }
  return {};
}

/// Whether other programs give their files this suffix, too: only its content tells whether a file is a container.
constexpr bool is_shared_suffix(std::string_view suffix) {
  return suffix == kSavedSuffix;
}

/// Whether a file of this name is a frame of today. One of 0 bytes is an empty frame: what a power cut leaves of a
/// frame that was made just before.
constexpr bool is_frame_name(std::string_view name) {
  const std::string_view suffix = container_suffix(name);
  return suffix == ".b2frame" || suffix == ".b2f" || suffix == ".b2" || suffix == kSavedSuffix;
}

}  // namespace cframefs::frame
