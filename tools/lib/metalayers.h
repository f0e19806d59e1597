// Metalayers made readable: the content as JSON if it is msgpack, else as text, else in hexadecimal digits; values that
// become contents; and the array header of b2nd.
//
// Contents come from files that may mean harm: nesting and size are bounded before anything is built from them.
// Thread safety: functions only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "frame/base/parse_budget.h"

namespace cframefs::tools {

/// The longest content that is shown.
inline constexpr std::uint64_t kMaxShownContent = std::uint64_t{1} << 20;

/// {"bytes": length, "encoding": "msgpack" | "text" | "hex", "value": …}. Contents above 1 MiB, and those that would
/// take more than `budget` has left, are not shown: omitted_json().
nlohmann::json metalayer_json(codec::ByteView content, frame::ParseBudget& budget);
/// What stands for a content that is not shown: "encoding" is "omitted", and there is no "value".
nlohmann::json omitted_json(std::uint64_t length);

/// How a value is stored in a metalayer. python-blosc2 packs and unpacks all of them with msgpack.
enum class MetaType : std::uint8_t {
  text,   // a msgpack string
  json,   // JSON text, stored as msgpack
  bytes,  // a msgpack byte string
  raw,    // as it is
};

/// The content to store. invalid: it is no UTF-8, or no JSON.
codec::Result<std::vector<std::uint8_t>> meta_content(MetaType type, std::vector<std::uint8_t> value);

/// What a person or a script wants to see: text and bytes as they are, other values as JSON, contents that are no
/// msgpack as they are; a line each, but for bytes and raw contents. invalid: it is too long to be decoded.
codec::Result<std::string> meta_text(codec::ByteView content);

/// {"shape", "chunkshape", "blockshape", "dtype"} of a `b2nd` (or `caterva`) metalayer; none if it is no such thing.
std::optional<nlohmann::json> array_json(codec::ByteView content);

}  // namespace cframefs::tools
