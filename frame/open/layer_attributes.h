// Metalayers as extended attributes: their names and values.
//
// A value has at most XATTR_SIZE_MAX bytes. Programs that copy attributes give up at one that is listed and cannot be
// read, some of them the whole file; so a longer variable-length metalayer is listed in parts, each an attribute:
//
//   user.blosc2.meta.NAME         fixed metalayer
//   user.blosc2.vlmeta.NAME       variable-length metalayer of less than kLayerPart bytes
//   user.blosc2.vlpart.NN.NAME    part NN (00 to 15) of a longer one; all but the last have kLayerPart bytes
//
// Longer ones than kMaxLayerParts parts are not listed: each part is read and set with the whole metalayer, so that
// the cost of a copy grows with the square of its length. Thread safety: functions only. Errors: io, with ENODATA for
// what there is not and E2BIG for what is longer than a value, which is known before it is decompressed; invalid.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frame/container/container.h"

namespace cframefs::frame {

inline constexpr std::string_view kMetaAttribute = "user.blosc2.meta.";
inline constexpr std::string_view kVlmetaAttribute = "user.blosc2.vlmeta.";
inline constexpr std::string_view kPartAttribute = "user.blosc2.vlpart.";
inline constexpr std::size_t kLayerPart = std::size_t{64} << 10;
inline constexpr std::size_t kMaxLayerParts = 16;

/// Which part of which metalayer an attribute is.
struct LayerPart {
  std::string layer;
  std::size_t begin = 0;  // where it begins in the metalayer
};

/// nullopt if the attribute is no part.
std::optional<LayerPart> layer_part_of(std::string_view attribute);

/// Whether the attribute is a variable-length metalayer or a part of one.
bool is_vlmetalayer_attribute(std::string_view attribute);

/// The attributes that are listed for the variable-length metalayers.
std::vector<std::string> vlmetalayer_attributes(const Container& container);

/// The value of an attribute of which is_vlmetalayer_attribute() is true.
Result<std::string> vlmetalayer_attribute(const Container& container, const std::string& attribute);

/// The metalayer with another part in the place of what it has there. What is shorter than a part is the last one.
Result<std::vector<std::uint8_t>> with_layer_part(std::vector<std::uint8_t> content, const LayerPart& part,
                                                  ByteView value);

/// How long the metalayer is without this part and all behind it; nullopt if it has no such part.
std::optional<std::size_t> length_without(std::size_t length, const LayerPart& part);

}  // namespace cframefs::frame
