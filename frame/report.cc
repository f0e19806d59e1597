#include "frame/report.h"

#include <cmath>
#include <string_view>

#include <nlohmann/json.hpp>

#include "codec/names.h"

namespace cframefs::frame {

namespace {

/// Length of the UTF-8 character that `text` begins with, 0 if it begins with none.
std::size_t character_length(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies past the last code point.
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f)) return 0;
  if ((lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f)) return 0;
  return length;
}

/// Names are bytes; JSON wants text. What is not UTF-8 shows as the replacement character.
std::string as_text(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t length = character_length(bytes);
    text += length == 0 ? "\xef\xbf\xbd" : bytes.substr(0, length);
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
}

}  // namespace

std::string filters_name(const FrameParameters& parameters) {
  std::string names;
  for (std::size_t slot = 0; slot < parameters.filters.size(); ++slot) {
    if (parameters.filters[slot] == 0) continue;
    if (!names.empty()) names += '+';
    names += codec::filter_name(parameters.filters[slot]);
    const int meta = static_cast<std::int8_t>(parameters.filters_meta[slot]);
    if (meta != 0) names += '(' + std::to_string(meta) + ')';
  }
  return names.empty() ? "none" : names;
}

nlohmann::json summary_json(const Container& container) {
  const FrameParameters& parameters = container.parameters();
  nlohmann::json json;
  json["format"] = parameters.kind;
  json["codec"] = codec::codec_name(parameters.compcode);
  // These formats do not record it.
  const bool has_level = parameters.kind != "bloscpack" && parameters.kind != "chunk";
  json["clevel"] = has_level ? nlohmann::json(parameters.clevel) : nlohmann::json();
  json["filters"] = filters_name(parameters);
  json["typesize"] = parameters.typesize;
  json["chunksize"] = parameters.chunksize;
  json["blocksize"] = parameters.blocksize;
  json["nbytes"] = parameters.nbytes;
  json["cbytes"] = parameters.cbytes;
  json["ratio"] = nullptr;  // of nothing stored there is none
  if (parameters.cbytes > 0) {
    const double ratio = static_cast<double>(parameters.nbytes) / static_cast<double>(parameters.cbytes);
    json["ratio"] = std::round(ratio * 1000) / 1000;
  }
  json["chunks"] = container.chunk_count();
  json["metalayers"] = nlohmann::json::array();
  for (const Metalayer& layer : container.metalayers())
    json["metalayers"].push_back(as_text(layer.name));
  json["vlmetalayers"] = nlohmann::json::array();
  for (const std::string& name : container.vlmetalayer_names())
    json["vlmetalayers"].push_back(as_text(name));
  return json;
}

}  // namespace cframefs::frame
