#include "frame/store/msgpack.h"

#include <cstdint>
#include <utility>

namespace cframefs::frame {

using nlohmann::json;

namespace {

constexpr int kMaxNesting = 32;
/// The most bytes of a value, including its share of the container that holds it and of the text that shows it.
constexpr std::uint64_t kValueBytes = 96;
/// The most bytes of a map's key, which is a node of a tree.
constexpr std::uint64_t kKeyBytes = 128;

/// Checks the nesting and sums up the memory that the values would take, without building them.
class Surveyor final : public nlohmann::json_sax<json> {
 public:
  explicit Surveyor(ParseBudget& budget) : budget_(budget) {}
  const std::optional<codec::Error>& too_much() const { return too_much_; }

  bool null() override { return charge(kValueBytes); }
  bool boolean(bool) override { return charge(kValueBytes); }
  bool number_integer(number_integer_t) override { return charge(kValueBytes); }
  bool number_unsigned(number_unsigned_t) override { return charge(kValueBytes); }
  bool number_float(number_float_t, const string_t&) override { return charge(kValueBytes); }
  bool string(string_t& value) override { return charge(kValueBytes + 2 * value.size()); }
  bool binary(binary_t& value) override { return charge(kValueBytes + 4 * value.size()); }
  bool start_object(std::size_t) override { return enter(); }
  bool key(string_t& value) override { return charge(kKeyBytes + 2 * value.size()); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool charge(std::uint64_t bytes) {
    const auto charged = budget_.take_memory(bytes, "values in msgpack");
    if (!charged) too_much_ = charged.error();
    return charged.has_value();
  }
  bool enter() { return ++depth_ <= kMaxNesting && charge(kValueBytes); }
  bool leave() {
    --depth_;
    return true;
  }
  ParseBudget& budget_;
  std::optional<codec::Error> too_much_;
  int depth_ = 0;
};

}  // namespace

codec::Result<std::optional<json>> parse_msgpack(codec::ByteView content, ParseBudget& budget) {
  Surveyor surveyor(budget);
  const bool sound = json::sax_parse(content.begin(), content.end(), &surveyor, json::input_format_t::msgpack);
  if (surveyor.too_much()) return codec::Failure(*surveyor.too_much());
  if (!sound) return std::optional<json>();
  json value = json::from_msgpack(content.begin(), content.end(), true, false);
  if (value.is_discarded()) return std::optional<json>();
  return std::optional<json>(std::move(value));
}

}  // namespace cframefs::frame
