// Names and values of metalayers as extended attributes.
//
// A value has at most XATTR_SIZE_MAX (64 KiB) bytes. Programs that copy attributes fail if a listed attribute cannot be
// read, some of them for the whole file. So a longer variable-length metalayer is listed in parts, each an attribute:
//
//   user.blosc2.meta.NAME         fixed metalayer
//   user.blosc2.vlmeta.NAME       variable-length metalayer of less than kLayerPart bytes
//   user.blosc2.vlpart.NN.NAME    part NN (00 to 15) of a longer one; all but the last have kLayerPart bytes
//
// Metalayers of more than kMaxLayerParts parts are not listed: reading or setting a part reads or writes the whole
// metalayer, so the cost of a copy grows with the square of the length.
//
// Thread safety: functions only. Errors: io, with ENODATA for missing metalayers and parts, and E2BIG for metalayers
// longer than a value, which are not decompressed; invalid.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frame/container/metalayers.h"

namespace cframefs::frame {

inline constexpr std::string_view kMetaAttribute = "user.blosc2.meta.";
inline constexpr std::string_view kVlmetaAttribute = "user.blosc2.vlmeta.";
inline constexpr std::string_view kPartAttribute = "user.blosc2.vlpart.";
inline constexpr std::size_t kLayerPart = std::size_t{64} << 10;
inline constexpr std::size_t kMaxLayerParts = 16;

/// A part of a metalayer.
struct LayerPart {
  std::string layer;
  std::size_t begin = 0;  // offset in the metalayer
};

/// Returns nullopt if the attribute does not name a part.
std::optional<LayerPart> layer_part_of(std::string_view attribute);

/// Returns true if the attribute names a variable-length metalayer or a part of one.
bool is_vlmetalayer_attribute(std::string_view attribute);

/// Returns the attributes to list for the variable-length metalayers.
std::vector<std::string> vlmetalayer_attributes(const Metalayers& metalayers);

/// Returns the value of an attribute. REQUIRES: is_vlmetalayer_attribute(attribute).
Result<std::string> vlmetalayer_attribute(const Metalayers& metalayers, const std::string& attribute);

/// Returns the content of the metalayer with `part` replaced by `value`. A value shorter than kLayerPart becomes the
/// last part.
Result<std::vector<std::uint8_t>> with_layer_part(std::vector<std::uint8_t> content, const LayerPart& part,
                                                  ByteView value);

/// Returns the length of the metalayer without this part and all parts after it, or nullopt if it has no such part.
std::optional<std::size_t> length_without(std::size_t length, const LayerPart& part);

}  // namespace cframefs::frame
