// The metalayer that makes a frame an n-d array: `b2nd`, or `caterva` before 2023.
//
// The parser checks markers, counts and lengths. ArrayGeometry (array_geometry.h) checks that shape, chunk shape and
// block shape are consistent. Format: b2nd.md section 1.
//
// Thread safety: functions and plain values. Units: items, not bytes. Errors: corruption.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frame/container/metalayers.h"

namespace cframefs::frame {

inline constexpr std::size_t kMaxDimensions = 16;

struct B2ndMeta {
  std::vector<std::int64_t> shape;
  std::vector<std::int32_t> chunkshape;
  std::vector<std::int32_t> blockshape;
  /// The dtype in NumPy's notation. nullopt in `caterva` metalayers, and if the metalayer uses another notation.
  std::optional<std::string> dtype;
};

/// The longest array metalayer that is read, in bytes: room for the shapes and a dtype of about 30,000 fields.
inline constexpr std::uint64_t kMaxArrayLayer = std::uint64_t{512} << 10;

/// Parses the content of the metalayer.
Result<B2ndMeta> parse_array_layer(ByteView content);

/// Returns the metalayer that makes the container an array, or nullopt if the container is not an array. unsupported:
/// the metalayer is longer than kMaxArrayLayer.
Result<std::optional<Metalayer>> array_metalayer_of(const Metalayers& layers);

/// The fixed metalayer of a frame with the suffix of an array that holds the bytes of a file instead: of a .npy file
/// that no array can store. Format: b2nd.md section 6.
inline constexpr std::string_view kFileBytesLayer = "file_bytes";
Metalayer file_bytes_layer();
bool holds_file_bytes(const Metalayers& layers);

/// Returns the parsed array metalayer, or nullopt if the container is not an array. corruption: the metalayer is
/// damaged or lost.
Result<std::optional<B2ndMeta>> b2nd_meta_of(const Metalayers& layers);

}  // namespace cframefs::frame
