// Parses the map of an embed frame: for each key, the range of its frame in the uncompressed bytes.
//
// The map is untrusted msgpack. The parser extracts only keys and ranges and builds no values from the rest. Format:
// stores.md section 2.
//
// Thread safety: functions only. Errors: corruption; errors of the visitor.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "codec/base/bytes.h"
#include "codec/base/error.h"

namespace cframefs::frame {

struct EmbeddedPlace {
  std::string key;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// Calls `visit` for each entry that has a range and whose key is `wanted`, in stored order. Stops at the first error.
/// The argument of `visit` is valid only during the call.
codec::Result<void> visit_embed_map(codec::ByteView content, const std::function<bool(const std::string& key)>& wanted,
                                    const std::function<codec::Result<void>(const EmbeddedPlace& place)>& visit);

}  // namespace cframefs::frame
