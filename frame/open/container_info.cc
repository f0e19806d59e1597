#include "frame/open/container_info.h"

#include <cmath>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "codec/format/filter_registry.h"
#include "codec/stream/codec_table.h"
#include "frame/base/utf8_sanitize.h"
#include "frame/cframe/frame_container.h"

namespace cframefs::frame {

std::string filters_name(const FrameParameters& parameters) {
  std::string names;
  for (std::size_t slot = 0; slot < parameters.filters.size(); ++slot) {
    if (parameters.filters[slot] == 0) continue;
    if (!names.empty()) names += '+';
    names += codec::filter_name(parameters.filters[slot]);
    const std::uint8_t meta = parameters.filters_meta[slot];
    if (meta != 0) names += '(' + std::to_string(static_cast<std::int8_t>(meta)) + ')';
  }
  return names.empty() ? "none" : names;
}

nlohmann::json summary_json(const Container& container) {
  const FrameParameters& parameters = container.parameters();
  nlohmann::json summary;
  summary["format"] = kind_name(parameters.kind);
  summary["codec"] = codec::codec_name(parameters.compcode);
  summary["clevel"] = container.records_level() ? nlohmann::json(parameters.clevel) : nlohmann::json();
  summary["filters"] = filters_name(parameters);
  summary["typesize"] = parameters.typesize;
  summary["chunksize"] = parameters.chunksize;
  summary["blocksize"] = parameters.blocksize;
  summary["nbytes"] = parameters.nbytes;
  summary["cbytes"] = parameters.cbytes;
  summary["ratio"] = nullptr;  // undefined if nothing is stored
  if (parameters.cbytes > 0) {
    const double ratio = static_cast<double>(parameters.nbytes) / static_cast<double>(parameters.cbytes);
    summary["ratio"] = std::round(ratio * 1000) / 1000;
  }
  summary["chunks"] = container.chunk_count();
  const FrameContainer* const frame = container.as_frame();
  summary["sealed"] = frame != nullptr && frame->seal() != nullptr;
  summary["metalayers"] = nlohmann::json::array();
  for (const MetalayerPlace& layer : container.metalayer_places())
    summary["metalayers"].push_back(replace_invalid_utf8(layer.name));
  summary["vlmetalayers"] = nlohmann::json::array();
  for (const std::string& name : container.vlmetalayer_names())
    summary["vlmetalayers"].push_back(replace_invalid_utf8(name));
  return summary;
}

std::string info_json(const Container& container) {
  return summary_json(container).dump();
}

}  // namespace cframefs::frame
