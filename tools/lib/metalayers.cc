#include "tools/lib/metalayers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "frame/base/utf8_sanitize.h"
#include "frame/cframe/b2nd_meta.h"
#include "frame/store/msgpack.h"

namespace cframefs::tools {

using codec::ByteView;
using nlohmann::json;

namespace {

/// Replaces binary strings, which JSON lacks, by text or hexadecimal digits.
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

/// Returns true if the first byte of a msgpack value is that of a string of characters or bytes, whose decoding takes
/// no more memory than the content.
bool is_string_type(std::uint8_t first) {
  return (first >= 0xa0 && first <= 0xbf) || (first >= 0xc4 && first <= 0xc6) || (first >= 0xd9 && first <= 0xdb);
}

/// Checks that the value is one value in msgpack.
codec::Result<void> check_msgpack(ByteView value) {
  frame::ParseBudget budget = frame::ParseBudget::asked(value.size());
  const auto parsed = frame::parse_msgpack(value, budget);
  if (!parsed) return codec::Failure(parsed.error());
  if (!*parsed) return codec::invalid("the value is not one value in msgpack");
  return {};
}

}  // namespace

json omitted_json(std::uint64_t length) {
  return {{"bytes", length}, {"encoding", "omitted"}};
}

json metalayer_json(ByteView content, frame::ParseBudget& budget) {
  if (content.size() > kMaxShownContent) return omitted_json(content.size());
  json shown = {{"bytes", content.size()}};
  auto value = frame::parse_msgpack(content, budget);
  // 4 bytes for each byte: two digits, and their copy for printing.
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

codec::Result<std::vector<std::uint8_t>> meta_content(MetaType type, std::vector<std::uint8_t> value) {
  switch (type) {
    case MetaType::text: {
      const std::string text(value.begin(), value.end());
      if (!frame::is_utf8(text))
        return codec::invalid("the value is not UTF-8 text: --type bytes or raw stores any bytes");
      return json::to_msgpack(text);
    }
    case MetaType::json: {
      const json parsed = json::parse(value.begin(), value.end(), nullptr, false);
      if (parsed.is_discarded()) return codec::invalid("the value is not JSON");
      return json::to_msgpack(parsed);
    }
    case MetaType::bytes:
      return json::to_msgpack(json::binary(std::move(value)));
    case MetaType::msgpack:
      if (auto checked = check_msgpack(value); !checked) return codec::Failure(checked.error());
      return value;
    case MetaType::raw:
      return value;
  }
  return value;
}

codec::Result<std::string> meta_text(ByteView content) {
  const bool is_one_value = !content.empty() && is_string_type(content.front());
  if (content.size() > kMaxShownContent && !is_one_value) {
    return codec::invalid("a metalayer of " + std::to_string(content.size()) +
                          " bytes is too long to decode; --raw writes it");
  }
  frame::ParseBudget budget = frame::ParseBudget::asked(content.size());
  auto parsed = frame::parse_msgpack(content, budget);
  if (!parsed) return codec::Failure(parsed.error());
  if (!*parsed) return std::string(content.begin(), content.end());
  json& value = **parsed;
  if (value.is_binary() && !std::as_const(value).get_binary().has_subtype()) {
    const auto& bytes = std::as_const(value).get_binary();
    return std::string(bytes.begin(), bytes.end());
  }
  if (value.is_string()) return value.get<std::string>() + "\n";
  replace_binary(value);
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::optional<json> array_json(ByteView content) {
  const auto layer = frame::parse_array_layer(content);
  if (!layer) return std::nullopt;
  json array = {{"shape", layer->shape}, {"chunkshape", layer->chunkshape}, {"blockshape", layer->blockshape}};
  if (layer->dtype) array["dtype"] = *layer->dtype;
  return array;
}

}  // namespace cframefs::tools
