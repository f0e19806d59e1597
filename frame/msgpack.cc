#include "frame/msgpack.h"

namespace cframefs::frame {

using nlohmann::json;

namespace {

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

}  // namespace

std::optional<json> parse_msgpack(codec::ByteView content) {
  NestingGuard guard;
  if (!json::sax_parse(content.begin(), content.end(), &guard, json::input_format_t::msgpack)) return std::nullopt;
  json value = json::from_msgpack(content.begin(), content.end(), true, false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

}  // namespace cframefs::frame
