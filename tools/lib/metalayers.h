// Conversion of metalayers: their content to JSON if it is msgpack, otherwise to text or hexadecimal digits; values to
// contents; and the array header of b2nd.
//
// Contents come from untrusted files: nesting and size are bounded before any object is built from them.
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

/// The longest content that is shown, in bytes.
inline constexpr std::uint64_t kMaxShownContent = std::uint64_t{1} << 20;

/// Returns {"bytes": length, "encoding": "msgpack" | "text" | "hex", "value": …}, or omitted_json() for a content above
/// 1 MiB, or one that would take more memory than `budget` has left.
nlohmann::json metalayer_json(codec::ByteView content, frame::ParseBudget& budget);
/// Returns the object for a content that is not shown: "encoding" is "omitted", and there is no "value".
nlohmann::json omitted_json(std::uint64_t length);

/// How a value is stored in a metalayer. python-blosc2 packs and unpacks values with msgpack.
enum class MetaType : std::uint8_t {
  text,     // a msgpack string
  json,     // JSON text, stored as msgpack
  bytes,    // a msgpack byte string
  msgpack,  // msgpack, stored unchanged
  raw,      // unchanged
};

/// Returns the content to store. invalid: the value is not UTF-8, not JSON or not
/// msgpack.
codec::Result<std::vector<std::uint8_t>> meta_content(MetaType type, std::vector<std::uint8_t> value);

/// Returns the content for output: text and bytes unchanged, other values as JSON, contents that are not msgpack
/// unchanged. Text and JSON end with a newline. invalid: the content is too long to be decoded.
codec::Result<std::string> meta_text(codec::ByteView content);

/// Returns {"shape", "chunkshape", "blockshape", "dtype"} of a `b2nd` (or `caterva`) metalayer; none if the content is
/// not one.
std::optional<nlohmann::json> array_json(codec::ByteView content);

}  // namespace cframefs::tools
