#include "tools/metalayers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "frame/array_layer.h"
#include "tools/text.h"

namespace cframefs::tools {

using codec::ByteView;
using nlohmann::json;

namespace {

constexpr std::size_t kMostDecoded = std::size_t{1} << 20;
constexpr int kMostNesting = 32;

/// Builds nothing: watches how deep the content is nested, because the parser recurses for every level.
class NestingGuard final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ <= kMostNesting; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return ++depth_ <= kMostNesting; }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool leave() {
    --depth_;
    return true;
  }
  int depth_ = 0;
};

/// JSON has no binary strings: they become text or hexadecimal digits.
void replace_binary(json& value) {
  if (value.is_binary()) {
    const auto bytes = std::as_const(value).get_binary();
    const ByteView view(bytes);
    value = is_plain_text(view) ? std::string(view.begin(), view.end()) : "hex:" + hex(view);
  } else if (value.is_structured()) {
    for (auto& inner : value)
      replace_binary(inner);
  }
}

std::optional<json> msgpack_json(ByteView content) {
  NestingGuard guard;
  if (!json::sax_parse(content.begin(), content.end(), &guard, json::input_format_t::msgpack)) return std::nullopt;
  json value = json::from_msgpack(content.begin(), content.end(), true, false);
  if (value.is_discarded()) return std::nullopt;
  replace_binary(value);
  return value;
}

}  // namespace

json metalayer_json(ByteView content) {
  json shown = {{"bytes", content.size()}};
  if (content.size() > kMostDecoded) {
    shown["encoding"] = "omitted";
  } else if (auto value = msgpack_json(content)) {
    shown["encoding"] = "msgpack";
    shown["value"] = std::move(*value);
  } else if (is_plain_text(content)) {
    shown["encoding"] = "text";
    shown["value"] = std::string(content.begin(), content.end());
  } else {
    shown["encoding"] = "hex";
    shown["value"] = hex(content);
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
