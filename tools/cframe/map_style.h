// How `cframe map` shows what a cell of a map holds: a letter, a colour of a terminal, a colour of a picture, and
// words.
//
// Damage and dead bytes must not vanish in a cell of many chunks: a cell with damage shows it, whatever else it holds.
// Thread safety: functions only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/lib/picture.h"
#include "tools/stream/frame_map.h"

namespace cframefs::tools {

struct Style {
  char letter = '?';
  int ansi = 0;  // of the 256 colours of a terminal
  Color color;
  const char* words = "";
};

/// The share of the uncompressed size that a chunk takes: below 10, 25, 50, 90 %, and more.
inline constexpr std::size_t kRatioClasses = 5;

const Style& style_of(SpaceKind kind);
const Style& style_of(ChunkKind kind);
const Style& ratio_style(std::size_t ratio_class);
/// `codec`: index in FrameMap::codecs.
const Style& codec_style(std::size_t codec);

/// Returns how cells show.
const Style& style_of(const SpaceCell& cell);
const Style& style_of(const ChunkCell& cell);
/// Returns the codec of most chunks; special chunks and damage show as in style_of().
const Style& codec_style_of(const ChunkCell& cell);

/// Lines of text below and above a map.
struct MapText {
  std::string title;                  // "x.b2frame: 12 chunks, 1.5 MiB in 400 KiB, ratio 3.84"
  std::string file;                   // "The file from begin to end: ..."
  std::string order;                  // "The chunks in their order: ..."
  std::string gain;                   // "compact would gain ...", or empty
  std::vector<std::string> warnings;  // estimates, damage
};
MapText text_of(const std::string& name, const frame::Container& container, const FrameMap& map);

/// An entry of the legend.
struct LegendLine {
  const Style* style = nullptr;
  std::string words;
  std::string amount;
};
/// Returns what the file holds, then the kinds of chunks, then the codecs; nothing that does not occur.
std::vector<LegendLine> legend_of(const FrameMap& map);

}  // namespace cframefs::tools
