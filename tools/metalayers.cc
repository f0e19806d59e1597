#include "tools/metalayers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tools/text.h"

namespace cframefs::tools {

using codec::ByteView;
using nlohmann::json;

namespace {

constexpr std::size_t kMostDecoded = std::size_t{1} << 20;
constexpr int kMostNesting = 32;
constexpr unsigned kMostDimensions = 16;

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

/// Takes big-endian fields from the front; once something is missing everything fails.
class Fields {
 public:
  explicit Fields(ByteView bytes) : rest_(bytes) {}
  bool ok() const { return ok_; }
  bool empty() const { return rest_.empty(); }

  ByteView take(std::size_t size) {
    if (!ok_ || rest_.size() < size) {
      ok_ = false;
      return {};
    }
    return std::exchange(rest_, rest_.subspan(size)).first(size);
  }
  template <class T>
  T number() {
    const ByteView bytes = take(sizeof(T));
    return ok_ ? codec::load_be<T>(bytes.data()) : T{};
  }
  void expect(std::uint8_t marker) {
    if (number<std::uint8_t>() != marker) ok_ = false;
  }

 private:
  ByteView rest_;
  bool ok_ = true;
};

/// One entry for each dimension. The marker of a list of 16 is 0xa0, which is no msgpack: counted from ndim instead.
template <class T>
json dimensions(Fields& fields, unsigned ndim, std::uint8_t marker) {
  json list = json::array();
  fields.expect(static_cast<std::uint8_t>(0x90 + ndim));
  for (unsigned i = 0; i < ndim && fields.ok(); ++i) {
    fields.expect(marker);
    list.push_back(fields.number<T>());
  }
  return list;
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
  Fields fields(content);
  const auto outer = fields.number<std::uint8_t>();
  if (outer != 0x97 && outer != 0x95) return std::nullopt;
  fields.number<std::uint8_t>();  // version, which readers ignore
  const unsigned ndim = fields.number<std::uint8_t>();
  if (ndim > kMostDimensions) return std::nullopt;
  json array;
  array["shape"] = dimensions<std::int64_t>(fields, ndim, 0xd3);
  array["chunkshape"] = dimensions<std::int32_t>(fields, ndim, 0xd2);
  array["blockshape"] = dimensions<std::int32_t>(fields, ndim, 0xd2);
  if (outer == 0x97) {
    fields.number<std::uint8_t>();  // dtype format
    fields.expect(0xdb);
    const auto length = fields.number<std::uint32_t>();
    const ByteView dtype = fields.take(length);
    array["dtype"] = std::string(dtype.begin(), dtype.end());
  }
  if (!fields.ok()) return std::nullopt;
  return array;
}

}  // namespace cframefs::tools
