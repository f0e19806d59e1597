// The views of `cframe map`: text for a terminal or a pipe, JSON, and a picture.
//
// Thread safety: functions only.
#pragma once

#include <cstddef>
#include <string>

#include "tools/cframe/map_style.h"

namespace cframefs::tools {

/// Returns the map as lines of at most `columns` characters; with `colors`, cells are coloured, otherwise letters.
std::string map_text(const MapText& text, const FrameMap& map, std::size_t columns, bool colors);

/// Returns the map as one line of JSON; the cells are letters, as in the text. Damage is in `map`.
std::string map_json(const std::string& name, const frame::Container& container, const FrameMap& map);

/// The number of cells in a row of a picture.
inline constexpr std::size_t kPictureColumns = 120;
Picture map_picture(const MapText& text, const FrameMap& map);

}  // namespace cframefs::tools
