#include "tools/metalayers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "frame/array_layer.h"
#include "frame/msgpack.h"
#include "frame/text.h"

namespace cframefs::tools {

using codec::ByteView;
using nlohmann::json;

namespace {

/// JSON has no binary strings: they become text or hexadecimal digits.
void replace_binary(json& value) {
  if (value.is_binary()) {
    const auto bytes = std::as_const(value).get_binary();
    const ByteView view(bytes);
    value = frame::is_plain_text(view) ? std::string(view.begin(), view.end()) : "hex:" + frame::hex(view);
  } else if (value.is_structured()) {
    for (auto& inner : value)
      replace_binary(inner);
  }
}

}  // namespace

json omitted_json(std::uint64_t length) {
  return {{"bytes", length}, {"encoding", "omitted"}};
}

json metalayer_json(ByteView content, frame::ParseBudget& budget) {
  if (content.size() > kMostShownContent) return omitted_json(content.size());
  json shown = {{"bytes", content.size()}};
  auto value = frame::parse_msgpack(content, budget);
  // As digits, and once more where it is printed.
  const bool fits = value && (*value || budget.take_memory(4 * content.size(), "metalayer"));
  if (!fits) return omitted_json(content.size());
  if (*value) {
    replace_binary(**value);
    shown["encoding"] = "msgpack";
    shown["value"] = std::move(**value);
  } else if (frame::is_plain_text(content)) {
    shown["encoding"] = "text";
    shown["value"] = std::string(content.begin(), content.end());
  } else {
    shown["encoding"] = "hex";
    shown["value"] = frame::hex(content);
  }
  return shown;
}

std::optional<json> array_json(ByteView content) {
  const auto layer = frame::parse_array_layer(content);
  if (!layer) return std::nullopt;
  json array = {{"shape", layer->shape}, {"chunkshape", layer->chunkshape}, {"blockshape", layer->blockshape}};
  if (layer->dtype) array["dtype"] = *layer->dtype;
  return array;
}

}  // namespace cframefs::tools
