// The metalayer that makes a frame an n-d array: `b2nd`, or `caterva` before 2023.
//
// Parsing trusts nothing: markers, counts and lengths are checked, and what shape, chunk shape and block shape say
// together is checked by ArrayGeometry (array_geometry.h). Format: b2nd.md section 1.
//
// Thread safety: functions and plain values. Units: items, not bytes. Errors: corruption.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frame/container/container.h"

namespace cframefs::frame {

inline constexpr std::size_t kMaxDimensions = 16;

struct B2ndMeta {
  std::vector<std::int64_t> shape;
  std::vector<std::int32_t> chunkshape;
  std::vector<std::int32_t> blockshape;
  /// Text in NumPy's notation; none in `caterva` layers, and where the layer says that it is in another notation.
  std::optional<std::string> dtype;
};

/// The longest metalayer of an array that is read: shapes, and a type of some 30,000 fields.
inline constexpr std::uint64_t kMaxArrayLayer = std::uint64_t{512} << 10;

/// The content of the metalayer.
Result<B2ndMeta> parse_array_layer(ByteView content);

/// The metalayer that makes the container an array; none if it is no array. unsupported: it is too long.
Result<std::optional<Metalayer>> array_metalayer_of(const Container& container);

/// The array layer among the fixed metalayers; none if this is no array. corruption: it is one, but the layer is
/// damaged.
Result<std::optional<B2ndMeta>> b2nd_meta_of(const Container& container);

}  // namespace cframefs::frame
