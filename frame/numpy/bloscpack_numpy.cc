#include "frame/numpy/bloscpack_numpy.h"

#include <string>

#include <nlohmann/json.hpp>

#include "frame/numpy/python_literal.h"

namespace cframefs::frame {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxNumpyDimensions = 64;
constexpr int kDeepestItem = 32;
/// Greatest length of parsed text. Parsing takes about 50 times the length in memory, and every lookup parses.
constexpr std::uint64_t kMaxPackText = std::uint64_t{512} << 10;

/// Converts a type in the JSON form of old releases to a Python literal. The form is a string, or a list of fields,
/// each [name, type] or [name, type, shape]. Returns nullopt for anything else.
std::optional<std::string> literal_of(const json& type, int nesting);

std::optional<std::string> quoted(const json& text) {
  if (!text.is_string()) return std::nullopt;
  const auto decoded = decode_utf8(text.get_ref<const std::string&>());
  if (!decoded) return std::nullopt;
  return python_repr(*decoded);
}

std::optional<std::string> shape_literal(const json& shape) {
  if (shape.is_number_unsigned()) return shape.dump();
  if (!shape.is_array()) return std::nullopt;
  std::string text = "(";
  for (const json& extent : shape) {
    if (!extent.is_number_unsigned()) return std::nullopt;
    text += extent.dump() + ",";
  }
  return text + ")";
}

std::optional<std::string> field_literal(const json& field, int nesting) {
  if (!field.is_array() || field.size() < 2 || field.size() > 3) return std::nullopt;
  const auto name = quoted(field[0]);
  const auto type = literal_of(field[1], nesting + 1);
  if (!name || !type) return std::nullopt;
  if (field.size() == 2) return "(" + *name + ", " + *type + ")";
  const auto shape = shape_literal(field[2]);
  if (!shape) return std::nullopt;
  return "(" + *name + ", " + *type + ", " + *shape + ")";
}

std::optional<std::string> literal_of(const json& type, int nesting) {
  if (nesting > kDeepestItem) return std::nullopt;
  if (type.is_string()) return quoted(type);
  if (!type.is_array() || type.empty()) return std::nullopt;
  // The first release wrote a plain type as one field without a name.
  if (type.size() == 1 && type[0].is_array() && type[0].size() == 2 && type[0][0] == json(""))
    return quoted(type[0][1]);
  std::string text = "[";
  for (const json& field : type) {
    const auto literal = field_literal(field, nesting);
    if (!literal) return std::nullopt;
    text += *literal + ", ";
  }
  return text + "]";
}

std::optional<ItemType> item_type(const json& dtype) {
  // Current releases write a Python literal in the JSON string, some older ones the bare name of a plain type.
  if (dtype.is_string()) return parse_dtype(dtype.get_ref<const std::string&>());
  const auto literal = literal_of(dtype, 0);
  return literal ? parse_dtype(*literal) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> BloscpackNumpy::nbytes() const {
  std::uint64_t total = type.itemsize;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(total, static_cast<std::uint64_t>(extent), &total)) return std::nullopt;
  }
  return total;
}

std::optional<BloscpackNumpy> parse_numpy_metadata(ByteView text) {
  if (text.size() > kMaxPackText) return std::nullopt;
  const json metadata = json::parse(text.begin(), text.end(), nullptr, false);
  if (!metadata.is_object() || !metadata.contains("container") || metadata["container"] != "numpy") return std::nullopt;
  if (!metadata.contains("dtype") || !metadata.contains("shape") || !metadata.contains("order")) return std::nullopt;
  const json& shape = metadata["shape"];
  const json& order = metadata["order"];
  if (!shape.is_array() || shape.size() > kMaxNumpyDimensions || (order != "C" && order != "F")) return std::nullopt;
  BloscpackNumpy pack;
  for (const json& extent : shape) {
    if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
    pack.shape.push_back(extent.get<std::int64_t>());
  }
  auto type = item_type(metadata["dtype"]);
  if (!type) return std::nullopt;
  pack.type = std::move(*type);
  // With fewer than two dimensions both orders are the same, which NumPy calls C order.
  pack.fortran_order = order == "F" && pack.shape.size() > 1;
  return pack;
}

Result<std::optional<BloscpackNumpy>> numpy_pack_of(const Container& container) {
  if (container.parameters().kind != ContainerKind::bloscpack) return std::optional<BloscpackNumpy>();
  for (const std::string& name : container.vlmetalayer_names()) {
    if (const auto length = container.vlmetalayer_length(name); length && *length > kMaxPackText) continue;
    const auto text = container.vlmetalayer(name);
    if (!text) {
      if (text.error().kind == codec::ErrorKind::io) return codec::Failure(text.error());
      continue;
    }
    auto pack = parse_numpy_metadata(*text);
    if (!pack) continue;
    if (pack->nbytes() != container.parameters().nbytes) {
      const auto bytes = pack->nbytes();
      return codec::corrupt("the metadata describe a NumPy array of " + (bytes ? std::to_string(*bytes) : "too many") +
                            " bytes, the file holds " + std::to_string(container.parameters().nbytes));
    }
    return pack;
  }
  return std::optional<BloscpackNumpy>();
}

}  // namespace cframefs::frame
