#include "frame/cframe/fixed_metalayers.h"

#include <algorithm>
#include <utility>

#include "frame/base/parse_budget.h"
#include "frame/cframe/frame_header.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::load_be;
using namespace layout;

/// Contents up to this many bytes are read when the frame is opened, because they tell the kind of the frame.
constexpr std::uint64_t kShort = std::uint64_t{64} << 10;

/// Fills in `place`. Returns nullptr, or the fault that makes the metalayer unreadable. `left`: bytes of the header
/// that no content has claimed yet. Overlapping contents could otherwise claim more memory than the header has bytes.
Result<const char*> place_layer(RangeBuffer& windows, const MapEntry& entry, std::uint64_t header_length,
                                std::uint64_t& left, MetalayerPlace& place) {
  if (entry.offset < 0) return "lies before the header";
  const auto at = static_cast<std::uint64_t>(entry.offset);
  if (at > header_length || header_length - at < kContentPrefix) return "lies past the header";
  const auto prefix = windows.get(FileOffset{at}, kContentPrefix);
  if (!prefix) return Failure(prefix.error());
  if ((*prefix)[0] != kBin32) return "has no content where its offset points";
  place.offset = FileOffset{at + kContentPrefix};
  place.length = load_be<std::uint32_t>(&(*prefix)[1]);
  if (place.length > header_length - place.offset.value) return "reaches past the header";
  if (place.length > left) return "overlaps another";
  left -= place.length;
  if (place.length > kShort) return nullptr;
  const auto content = windows.get(place.offset, static_cast<std::size_t>(place.length));
  if (!content) return Failure(content.error());
  place.content.emplace(content->begin(), content->end());
  return nullptr;
}

}  // namespace

Result<MetalayerSection> read_metalayers(RangeBuffer& windows, std::uint64_t header_length, std::size_t map_at) {
  MetalayerSection section;
  if (header_length < map_at) {
    section.damage = Error{ErrorKind::corruption, 0,
                           "frame header of " + std::to_string(header_length) + " bytes has no metalayer section"};
    return section;
  }
  constexpr std::uint64_t kLongestMap = kMapEntriesAt + kMaxMetalayers * kMaxMapEntry + 3;
  const auto map_length = static_cast<std::size_t>(std::min(header_length - map_at, kLongestMap));
  const auto bytes = windows.get(FileOffset{map_at}, map_length);
  if (!bytes) return Failure(bytes.error());
  MetalayerMap map = parse_map(*bytes, kMaxMetalayers);
  section.damage = std::move(map.damage);
  std::uint64_t left = header_length;
  for (MapEntry& entry : map.entries) {
    MetalayerPlace place;
    const auto fault = place_layer(windows, entry, header_length, left, place);
    if (!fault) return Failure(fault.error());
    if (*fault == nullptr) {
      place.name = std::move(entry.name);
      section.layers.push_back(std::move(place));
      continue;
    }
    if (!section.damage) {
      section.damage = Error{ErrorKind::corruption, 0, "metalayer '" + entry.name + "' " + *fault};
    }
    section.lost.push_back(std::move(entry.name));
  }
  return section;
}

Result<std::vector<std::uint8_t>> read_metalayer(const ByteSource& source, const MetalayerPlace& place) {
  if (place.content) return *place.content;
  ParseBudget budget = ParseBudget::asked(source.stored());
  if (auto fits = budget.take_memory(place.length, "metalayer '" + place.name + "'"); !fits) {
    return Failure(fits.error());
  }
  std::vector<std::uint8_t> content(static_cast<std::size_t>(place.length));
  if (auto done = source.read(place.offset, content); !done) return Failure(done.error());
  return content;
}

}  // namespace cframefs::frame
