// The views of `cframe map`: text for a terminal or a pipe, and a picture.
//
// Thread safety: functions only.
#pragma once

#include <cstddef>
#include <string>

#include "tools/cframe/map_style.h"

namespace cframefs::tools {

/// Returns the map as lines of at most `columns` characters; with `colors`, cells are coloured, otherwise letters.
std::string map_text(const MapText& text, const FrameMap& map, std::size_t columns, bool colors);

/// The number of cells in a row of a picture.
inline constexpr std::size_t kPictureColumns = 120;
Picture map_picture(const MapText& text, const FrameMap& map);

}  // namespace cframefs::tools
