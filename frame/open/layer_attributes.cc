#include "frame/open/layer_attributes.h"

#include <algorithm>
#include <cerrno>
#include <set>

#include <fmt/core.h>
#include <linux/limits.h>

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::io_error;

static_assert(kLayerPart == XATTR_SIZE_MAX);
constexpr std::size_t kDigits = 2;
// Enough for all metalayers of a frame that FrameWriter makes (16). A list of attributes has at most 64 KiB.
constexpr std::size_t kMaxListedParts = 16 * kMaxLayerParts;

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

std::string part_name(std::size_t number, const std::string& layer) {
  const std::string digits = std::to_string(number);
  return std::string(kPartAttribute) + std::string(kDigits - digits.size(), '0') + digits + "." + layer;
}

Result<std::uint64_t> length_of(const Metalayers& metalayers, const std::string& layer) {
  auto length = metalayers.vlmetalayer_length(layer);
  if (!length && length.error().kind == ErrorKind::invalid) return io_error(ENODATA, "getxattr");
  return length;
}

Result<std::string> part_value(const Metalayers& metalayers, const LayerPart& part) {
  const auto length = length_of(metalayers, part.layer);
  if (!length) return Failure(length.error());
  if (!length_without(*length, part)) return io_error(ENODATA, "getxattr");
  const auto content = metalayers.vlmetalayer(part.layer);
  if (!content) return Failure(content.error());
  const ByteView rest = ByteView(*content).subspan(std::min(part.begin, content->size()));
  const ByteView value = rest.first(std::min(rest.size(), kLayerPart));
  return std::string(value.begin(), value.end());
}

}  // namespace

std::optional<LayerPart> layer_part_of(std::string_view attribute) {
  if (!attribute.starts_with(kPartAttribute)) return std::nullopt;
  const std::string_view rest = attribute.substr(kPartAttribute.size());
  if (rest.size() <= kDigits + 1 || rest[kDigits] != '.' || !is_digit(rest[0]) || !is_digit(rest[1])) {
    return std::nullopt;
  }
  const std::size_t number = static_cast<std::size_t>(rest[0] - '0') * 10 + static_cast<std::size_t>(rest[1] - '0');
  if (number >= kMaxLayerParts) return std::nullopt;
  return LayerPart{std::string(rest.substr(kDigits + 1)), number * kLayerPart};
}

bool is_vlmetalayer_attribute(std::string_view attribute) {
  return attribute.starts_with(kVlmetaAttribute) || layer_part_of(attribute).has_value();
}

std::vector<std::string> vlmetalayer_attributes(const Metalayers& metalayers) {
  const std::vector<std::string> layers = metalayers.vlmetalayer_names();
  std::vector<std::string> names;
  std::set<std::string_view> listed;
  std::size_t parts = 0;
  for (const std::string& layer : layers) {
    // Metalayers with a NUL in the name are not listed: the name of an attribute ends at the first NUL. If several
    // metalayers have the same name, only the first is listed, because reads find the first.
    if (layer.find('\0') != std::string::npos || !listed.insert(layer).second) continue;
    const auto length = metalayers.vlmetalayer_length(layer);
    // One that is too long to be read is not listed: a program that copies all attributes would give up.
    if (!length && length.error().kind == ErrorKind::unsupported) continue;
    if (!length || *length < kLayerPart) {  // a damaged one is listed, too: getxattr() reports the damage
      names.push_back(std::string(kVlmetaAttribute) + layer);
    } else if (*length <= kMaxLayerParts * kLayerPart && parts < kMaxListedParts) {
      for (std::size_t number = 0; number * kLayerPart < *length; ++number, ++parts)
        names.push_back(part_name(number, layer));
    }
  }
  return names;
}

Result<std::string> vlmetalayer_attribute(const Metalayers& metalayers, const std::string& attribute) {
  if (const auto part = layer_part_of(attribute)) return part_value(metalayers, *part);
  const std::string layer = attribute.substr(kVlmetaAttribute.size());
  const auto length = length_of(metalayers, layer);
  if (!length) return Failure(length.error());
  if (*length > XATTR_SIZE_MAX) return io_error(E2BIG, "getxattr");
  const auto content = metalayers.vlmetalayer(layer);
  if (!content) return Failure(content.error());
  return std::string(content->begin(), content->end());
}

Result<std::vector<std::uint8_t>> with_layer_part(std::vector<std::uint8_t> content, const LayerPart& part,
                                                  ByteView value) {
  if (content.size() < part.begin) {
    return codec::invalid(fmt::format("a part of metalayer '{}' begins at byte {}, but the metalayer has only {} bytes",
                                      part.layer, part.begin, content.size()));
  }
  if (value.empty()) return codec::invalid("a part of metalayer '" + part.layer + "' has 0 bytes");
  const std::size_t end = part.begin + value.size();
  if (value.size() < kLayerPart || content.size() < end) content.resize(end);
  std::copy(value.begin(), value.end(), content.begin() + static_cast<std::ptrdiff_t>(part.begin));
  return content;
}

std::optional<std::size_t> length_without(std::size_t length, const LayerPart& part) {
  const bool has_parts = length >= kLayerPart && length <= kMaxLayerParts * kLayerPart;
  return has_parts && part.begin < length ? std::optional(part.begin) : std::nullopt;
}

}  // namespace cframefs::frame
