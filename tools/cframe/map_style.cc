#include "tools/cframe/map_style.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/core.h>

#include "tools/cframe/cframe.h"
#include "tools/lib/sizes.h"

namespace cframefs::tools {
namespace {

constexpr std::array<Style, kSpaceKinds> kSpaceStyles = {
    Style{'h', 135, {136, 86, 167}, "header"},
    Style{'#', 32, {44, 127, 184}, "chunks"},
    Style{'.', 208, {255, 127, 0}, "dead: in use by nothing"},
    Style{'i', 176, {201, 148, 199}, "index, trailer, metalayers"},
    Style{'!', 196, {227, 26, 28}, "damaged chunks"},
};

constexpr std::array<Style, kChunkKinds> kChunkStyles = {
    Style{'#', 32, {44, 127, 184}, "compressed or stored"},
    Style{'z', 250, {217, 217, 217}, "zeros"},
    Style{'n', 217, {251, 154, 153}, "NaN"},
    Style{'u', 240, {150, 150, 150}, "uninitialised"},
    Style{'r', 222, {253, 191, 111}, "one repeated value"},
    Style{'!', 196, {227, 26, 28}, "damaged"},
};

constexpr std::array<double, kRatioClasses - 1> kRatioBounds = {0.1, 0.25, 0.5, 0.9};
constexpr std::array<Style, kRatioClasses> kRatioStyles = {
    Style{'a', 151, {199, 233, 180}, "below 10 % of the uncompressed size"},
    Style{'b', 79, {127, 205, 187}, "below 25 %"},
    Style{'c', 38, {65, 182, 196}, "below 50 %"},
    Style{'d', 32, {44, 127, 184}, "below 90 %"},
    Style{'e', 27, {37, 52, 148}, "90 % and more"},
};

constexpr std::array<Style, kMostCodecs> kCodecStyles = {
    Style{'1', 66, {106, 140, 175}, ""},  Style{'2', 143, {178, 171, 87}, ""}, Style{'3', 132, {170, 92, 138}, ""},
    Style{'4', 72, {80, 160, 120}, ""},   Style{'5', 137, {180, 132, 90}, ""}, Style{'6', 104, {135, 130, 205}, ""},
    Style{'7', 109, {120, 175, 180}, ""}, Style{'8', 102, {130, 130, 130}, ""}};

std::size_t ratio_class(double stored, double plain) {
  const double share = plain > 0 ? stored / plain : 1;
  const auto above = std::upper_bound(kRatioBounds.begin(), kRatioBounds.end(), share);
  return static_cast<std::size_t>(above - kRatioBounds.begin());
}

template <class Numbers>
std::size_t largest(const Numbers& numbers) {
  return static_cast<std::size_t>(std::max_element(numbers.begin(), numbers.end()) - numbers.begin());
}

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "0.0 %";
}

}  // namespace

const Style& style_of(SpaceKind kind) {
  return kSpaceStyles[static_cast<std::size_t>(kind)];
}
const Style& style_of(ChunkKind kind) {
  return kChunkStyles[static_cast<std::size_t>(kind)];
}
const Style& ratio_style(std::size_t ratio_class) {
  return kRatioStyles[ratio_class];
}
const Style& codec_style(std::size_t codec) {
  return kCodecStyles[codec];
}

const Style& style_of(const SpaceCell& cell) {
  if (cell.bytes[static_cast<std::size_t>(SpaceKind::damaged)] > 0) return style_of(SpaceKind::damaged);
  const auto kind = static_cast<SpaceKind>(largest(cell.bytes));
  if (kind != SpaceKind::live) return style_of(kind);
  return ratio_style(ratio_class(static_cast<double>(cell.bytes[static_cast<std::size_t>(kind)]), cell.plain));
}

const Style& style_of(const ChunkCell& cell) {
  if (cell.counts[static_cast<std::size_t>(ChunkKind::damaged)] > 0) return style_of(ChunkKind::damaged);
  const auto kind = static_cast<ChunkKind>(largest(cell.counts));
  if (kind != ChunkKind::stored) return style_of(kind);
  return ratio_style(ratio_class(static_cast<double>(cell.stored), static_cast<double>(cell.plain)));
}

const Style& codec_style_of(const ChunkCell& cell) {
  if (cell.counts[static_cast<std::size_t>(ChunkKind::damaged)] > 0) return style_of(ChunkKind::damaged);
  const auto kind = static_cast<ChunkKind>(largest(cell.counts));
  return kind == ChunkKind::stored ? codec_style(largest(cell.codecs)) : style_of(kind);
}

MapText text_of(const std::string& name, const frame::Container& container, const FrameMap& map) {
  const frame::FrameParameters& parameters = container.parameters();
  MapText text;
  text.title = fmt::format("{}: {} in {}", name, human_size(parameters.nbytes), human_size(map.length));
  if (map.length > 0)
    text.title +=
        fmt::format(", ratio {:.2f}", static_cast<double>(parameters.nbytes) / static_cast<double>(map.length));
  text.file =
      fmt::format("The {}: {} bytes, a cell for {}", parameters.kind == frame::ContainerKind::sframe ? "files" : "file",
                  map.length, human_size(std::max<std::uint64_t>(map.length / map.space.size(), 1)));
  const std::int64_t chunks = container.chunk_count();
  const auto cells = static_cast<std::int64_t>(map.order.size());
  text.order = fmt::format("The content: {} chunks in their order", chunks);
  if (chunks > cells)
    text.order += fmt::format(", a cell for {:.1f}", static_cast<double>(chunks) / static_cast<double>(cells));
  if (const auto gain = compact_gain(container, map)) {
    text.gain = fmt::format("compact would gain {}{} bytes ({})", map.is_exact ? "" : "about ", *gain,
                            percent(static_cast<double>(*gain), static_cast<double>(map.length)));
  }
  if (!map.is_exact)
    text.warnings.push_back(fmt::format("sizes are estimates from {} of {} chunks", kMostHeaders, chunks));
  return text;
}

std::vector<LegendLine> legend_of(const FrameMap& map) {
  std::vector<LegendLine> lines;
  for (std::size_t i = 0; i < kSpaceKinds; ++i) {
    if (map.bytes[i] == 0) continue;
    const Style& style = style_of(static_cast<SpaceKind>(i));
    const std::string amount = fmt::format("{} bytes, {}", map.bytes[i],
                                           percent(static_cast<double>(map.bytes[i]), static_cast<double>(map.length)));
    if (static_cast<SpaceKind>(i) != SpaceKind::live) {
      lines.push_back({&style, style.words, amount});
      continue;
    }
    lines.push_back({nullptr, style.words, amount});
    for (std::size_t c = 0; c < kRatioClasses; ++c)
      lines.push_back({&ratio_style(c), ratio_style(c).words, ""});
  }
  const std::int64_t chunks = std::accumulate(map.counts.begin(), map.counts.end(), std::int64_t{0});
  for (std::size_t i = 1; i < kChunkKinds; ++i) {
    if (map.counts[i] == 0) continue;
    const Style& style = style_of(static_cast<ChunkKind>(i));
    lines.push_back({&style, std::string("chunks: ") + style.words,
                     fmt::format("{} of {}, {}", map.counts[i], chunks,
                                 percent(static_cast<double>(map.counts[i]), static_cast<double>(chunks)))});
  }
  for (std::size_t i = 0; i < map.codecs.size(); ++i) {
    const CodecTotal& codec = map.codecs[i];
    const double ratio =
        static_cast<double>(codec.plain) / static_cast<double>(std::max<std::uint64_t>(codec.stored, 1));
    lines.push_back({map.codecs.size() > 1 ? &codec_style(i) : nullptr, "codec: " + codec.name,
                     fmt::format("{} chunks, {} in {}, ratio {:.2f}", codec.chunks, human_size(codec.plain),
                                 human_size(codec.stored), ratio)});
  }
  return lines;
}

}  // namespace cframefs::tools
