#include "frame/store/embed_map.h"

#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

namespace cframefs::frame {

namespace {

using nlohmann::json;

/// Bounds the recursion of the parser, which recurses for each level.
constexpr int kMaxMapNesting = 32;

/// Nesting depth inside the outer object, inside the map, and inside an entry of the map.
constexpr int kTopLevel = 1;
constexpr int kMapLevel = 2;
constexpr int kEntryLevel = 3;

class MapReader final : public nlohmann::json_sax<json> {
 public:
  MapReader(const std::function<bool(const std::string&)>& wanted,
            const std::function<codec::Result<void>(const EmbeddedPlace&)>& visit)
      : wanted_(wanted), visit_(visit) {}

  /// The error of the visitor, or damage of an entry. nullopt if the parser stopped for another reason, or not at all.
  const std::optional<codec::Error>& error() const { return error_; }
  bool found_map() const { return found_map_; }

  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t) override { return other(); }
  bool number_unsigned(number_unsigned_t value) override {
    if (!in_entry()) return other();
    if (field_ == "offset") offset_ = value;
    if (field_ == "length") length_ = value;
    return true;
  }
  bool number_float(number_float_t, const string_t&) override { return other(); }
  bool string(string_t&) override { return other(); }
  bool binary(binary_t&) override { return other(); }

  bool key(string_t& name) override {
    if (depth_ == kTopLevel) is_map_ = name == "embed_map";
    if (depth_ == kMapLevel && is_map_) place_.key.swap(name);
    if (in_entry()) field_.swap(name);
    return true;
  }

  bool start_object(std::size_t) override {
    if (depth_ == kTopLevel && is_map_) found_map_ = true;
    if (depth_ == kMapLevel && is_map_) {
      is_entry_ = wanted_(place_.key);
      is_damaged_ = false;
      offset_.reset();
      length_.reset();
    } else if (!note_other()) {
      return false;
    }
    return ++depth_ <= kMaxMapNesting;
  }
  bool end_object() override {
    const bool is_done = in_entry();
    --depth_;
    return !is_done || finish();
  }
  bool start_array(std::size_t) override { return depth_ != 0 && other() && ++depth_ <= kMaxMapNesting; }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool in_entry() const { return depth_ == kEntryLevel && is_map_ && is_entry_; }

  /// Handles a value that is not an unsigned number. As the offset or length of an entry it is damage.
  bool note_other() {
    if (in_entry() && (field_ == "offset" || field_ == "length")) is_damaged_ = true;
    return true;
  }
  /// As note_other(). Returns false, which stops the parser, for the outer value and the map, which must be objects.
  bool other() { return depth_ != 0 && !(depth_ == kTopLevel && is_map_) && note_other(); }

  bool finish() {
    is_entry_ = false;
    if (is_damaged_) {
      error_ = codec::corrupt("offset or length of embedded frame '" + place_.key + "' is not a number").value();
      return false;
    }
    if (!offset_ || !length_) return true;  // a remote reference
    place_.offset = *offset_;
    place_.length = *length_;
    const auto done = visit_(place_);
    if (!done) error_ = done.error();
    return done.has_value();
  }

  const std::function<bool(const std::string&)>& wanted_;
  const std::function<codec::Result<void>(const EmbeddedPlace&)>& visit_;
  std::optional<codec::Error> error_;
  bool found_map_ = false;
  int depth_ = 0;
  bool is_map_ = false;    // the parser is at or inside the value of the key `embed_map`
  bool is_entry_ = false;  // the parser is inside a wanted entry
  EmbeddedPlace place_;
  std::string field_;
  std::optional<std::uint64_t> offset_;
  std::optional<std::uint64_t> length_;
  bool is_damaged_ = false;
};

}  // namespace

codec::Result<void> visit_embed_map(codec::ByteView content, const std::function<bool(const std::string& key)>& wanted,
                                    const std::function<codec::Result<void>(const EmbeddedPlace& place)>& visit) {
  MapReader reader(wanted, visit);
  const bool sound = json::sax_parse(content.begin(), content.end(), &reader, json::input_format_t::msgpack);
  if (reader.error()) return codec::Failure(*reader.error());
  if (!sound || !reader.found_map()) return codec::corrupt("the map of the embedded frames is damaged");
  return {};
}

}  // namespace cframefs::frame
