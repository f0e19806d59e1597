#include "tools/cframe/map_views.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "tools/cframe/cframe.h"

namespace cframefs::tools {
namespace {

using Cells = std::vector<const Style*>;

template <class Cell>
Cells styles_of(const std::vector<Cell>& cells, const Style& (*style)(const Cell&)) {
  Cells styles;
  styles.reserve(cells.size());
  for (const Cell& cell : cells)
    styles.push_back(&style(cell));
  return styles;
}

std::string letters_of(const Cells& cells) {
  std::string letters;
  for (const Style* style : cells)
    letters += style->letter;
  return letters;
}

struct Panel {
  std::string title;
  Cells cells;
};

std::vector<Panel> panels_of(const MapText& text, const FrameMap& map) {
  std::vector<Panel> panels;
  panels.push_back({text.file, styles_of<SpaceCell>(map.space, style_of)});
  panels.push_back({text.order, styles_of<ChunkCell>(map.order, style_of)});
  if (map.codecs.size() > 1)
    panels.push_back({"The codecs of these chunks", styles_of<ChunkCell>(map.order, codec_style_of)});
  return panels;
}

// ---- text --------------------------------------------------------------------------------------------------------

std::string cell_text(const Style& style, std::size_t count, bool colors) {
  const std::string cells(count, colors ? ' ' : style.letter);
  return colors ? fmt::format("\x1b[48;5;{}m{}\x1b[0m", style.ansi, cells) : cells;
}

/// Returns the cells in rows; neighbours of one style share one change of colour.
std::string rows_text(const Cells& cells, std::size_t columns, bool colors) {
  std::string text;
  for (std::size_t begin = 0; begin < cells.size(); begin += columns) {
    const std::size_t end = std::min(begin + columns, cells.size());
    for (std::size_t at = begin; at < end;) {
      std::size_t run = at;
      while (run < end && cells[run] == cells[at])
        ++run;
      text += cell_text(*cells[at], run - at, colors);
      at = run;
    }
    text += "\n";
  }
  return text;
}

// ---- picture -----------------------------------------------------------------------------------------------------

constexpr Color kWhite = {255, 255, 255};
constexpr Color kBlack = {32, 32, 32};
constexpr Color kGrey = {96, 96, 96};
constexpr Color kRed = {190, 20, 20};

constexpr int kMargin = 24;
constexpr int kCellWidth = 9;
constexpr int kMinCellHeight = 14;
constexpr int kGap = 1;
constexpr int kPictureWidth = 2 * kMargin + static_cast<int>(kPictureColumns) * kCellWidth;
constexpr int kTitleSize = 2;
constexpr int kTextSize = 2;
constexpr int kTextHeight = Picture::kLine * kTextSize + 2;
constexpr int kSwatch = 14;

/// Cells of a short panel are wider, so that each row is full.
int columns_of(const Cells& cells) {
  return static_cast<int>(std::clamp<std::size_t>(cells.size(), 1, kPictureColumns));
}

int rows_of(const Cells& cells) {
  const auto columns = static_cast<std::size_t>(columns_of(cells));
  return static_cast<int>((cells.size() + columns - 1) / columns);
}

int cell_height(const Cells& cells) {
  return rows_of(cells) < 3 ? 2 * kMinCellHeight : kMinCellHeight;
}

int panel_height(const Panel& panel) {
  return kTextHeight + 4 + rows_of(panel.cells) * cell_height(panel.cells) + 16;
}

void draw_panel(Picture& picture, const Panel& panel, int y) {
  picture.text(kMargin, y, kTextSize, kBlack, panel.title);
  y += kTextHeight + 4;
  const int columns = columns_of(panel.cells);
  const int width = static_cast<int>(kPictureColumns) * kCellWidth;
  const int height = cell_height(panel.cells);
  for (std::size_t i = 0; i < panel.cells.size(); ++i) {
    const int column = static_cast<int>(i) % columns;
    const int row = static_cast<int>(i) / columns;
    const int left = column * width / columns;
    const int right = (column + 1) * width / columns;
    picture.rectangle(kMargin + left, y + row * height, right - left - kGap, height - kGap, panel.cells[i]->color);
  }
}

/// Draws a legend line; returns the place of the next.
int draw_legend(Picture& picture, const LegendLine& line, int y) {
  constexpr int kWords = kMargin + kSwatch + 12;
  constexpr int kAmount = kMargin + 42 * Picture::kAdvance * kTextSize;
  if (line.style != nullptr) picture.rectangle(kMargin, y, kSwatch, kSwatch, line.style->color);
  picture.text(kWords, y, kTextSize, kBlack, line.words);
  picture.text(kAmount, y, kTextSize, kGrey, line.amount);
  return y + kTextHeight;
}

}  // namespace

std::string map_text(const MapText& text, const FrameMap& map, std::size_t columns, bool colors) {
  std::string out = printable(text.title) + "\n";
  for (const Panel& panel : panels_of(text, map))
    out += "\n" + panel.title + "\n" + rows_text(panel.cells, columns, colors);
  out += "\n";
  for (const LegendLine& line : legend_of(map)) {
    const std::string swatch =
        line.style == nullptr ? "  " : cell_text(*line.style, colors ? 2 : 1, colors) + (colors ? "" : " ");
    out += line.amount.empty() ? fmt::format("  {} {}\n", swatch, line.words)
                               : fmt::format("  {} {:<38} {}\n", swatch, line.words, line.amount);
  }
  for (const std::string& warning : text.warnings)
    out += printable(warning) + "\n";
  return out + (text.gain.empty() ? "" : text.gain + "\n");
}

std::string map_json(const std::string& name, const frame::Container& container, const FrameMap& map) {
  nlohmann::json codecs = nlohmann::json::array();
  for (const CodecTotal& codec : map.codecs)
    codecs.push_back(
        {{"name", codec.name}, {"chunks", codec.chunks}, {"plain", codec.plain}, {"stored", codec.stored}});
  const nlohmann::json bytes = {{"header", map.bytes_of(SpaceKind::header)},
                                {"chunks", map.bytes_of(SpaceKind::live)},
                                {"dead", map.bytes_of(SpaceKind::dead)},
                                {"index", map.bytes_of(SpaceKind::index)},
                                {"damaged", map.bytes_of(SpaceKind::damaged)}};
  const nlohmann::json chunks = {
      {"stored", map.count_of(ChunkKind::stored)},     {"zeros", map.count_of(ChunkKind::zeros)},
      {"nan", map.count_of(ChunkKind::nan)},           {"uninitialised", map.count_of(ChunkKind::uninitialised)},
      {"repeated", map.count_of(ChunkKind::repeated)}, {"damaged", map.count_of(ChunkKind::damaged)}};
  nlohmann::json shown = {{"path", name},
                          {"plain", container.parameters().nbytes},
                          {"stored", map.length},
                          {"estimated", !map.is_exact},
                          {"bytes", bytes},
                          {"chunks", chunks},
                          {"codecs", codecs},
                          {"space", letters_of(styles_of<SpaceCell>(map.space, style_of))},
                          {"order", letters_of(styles_of<ChunkCell>(map.order, style_of))},
                          {"compact_gain", nullptr},
                          {"damage", nullptr}};
  if (const auto gain = compact_gain(container, map)) shown["compact_gain"] = *gain;
  if (map.first_damage) shown["damage"] = codec::describe(*map.first_damage);
  return shown.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Picture map_picture(const MapText& text, const FrameMap& map) {
  const std::vector<Panel> panels = panels_of(text, map);
  const std::vector<LegendLine> legend = legend_of(map);
  const auto lines = static_cast<int>(legend.size() + text.warnings.size() + (text.gain.empty() ? 0 : 1));
  int height = 2 * kMargin + kTextHeight + 8 + lines * kTextHeight;
  for (const Panel& panel : panels)
    height += panel_height(panel);
  Picture picture(kPictureWidth, height, kWhite);
  int y = kMargin;
  picture.text(kMargin, y, kTitleSize, kBlack, text.title);
  y += kTextHeight + 8;
  for (const Panel& panel : panels) {
    draw_panel(picture, panel, y);
    y += panel_height(panel);
  }
  for (const LegendLine& line : legend)
    y = draw_legend(picture, line, y);
  const auto room = static_cast<std::size_t>((kPictureWidth - 2 * kMargin) / (Picture::kAdvance * kTextSize));
  for (const std::string& warning : text.warnings) {
    picture.text(kMargin, y, kTextSize, kRed, warning.substr(0, room));
    y += kTextHeight;
  }
  if (!text.gain.empty()) picture.text(kMargin, y, kTextSize, kBlack, text.gain);
  return picture;
}

}  // namespace cframefs::tools
