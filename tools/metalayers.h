// Metalayers made readable: the content as JSON if it is msgpack, else as text, else in hexadecimal digits; and the
// array header of b2nd.
//
// Contents come from files that may mean harm: nesting and size are bounded before anything is built from them.
// Thread safety: functions only.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "codec/bytes.h"

namespace cframefs::tools {

/// {"bytes": length, "encoding": "msgpack" | "text" | "hex", "value": …}. Contents above 1 MiB are not decoded: their
/// "encoding" is "omitted", and they have no "value".
nlohmann::json metalayer_json(codec::ByteView content);

/// {"shape", "chunkshape", "blockshape", "dtype"} of a `b2nd` (or `caterva`) metalayer; none if it is no such thing.
std::optional<nlohmann::json> array_json(codec::ByteView content);

}  // namespace cframefs::tools
