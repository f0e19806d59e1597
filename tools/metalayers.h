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
#include "frame/parse_budget.h"

namespace cframefs::tools {

/// The longest content that is shown.
inline constexpr std::uint64_t kMostShownContent = std::uint64_t{1} << 20;

/// {"bytes": length, "encoding": "msgpack" | "text" | "hex", "value": …}. Contents above 1 MiB, and those that would
/// take more than `budget` has left, are not shown: omitted_json().
nlohmann::json metalayer_json(codec::ByteView content, frame::ParseBudget& budget);
/// What stands for a content that is not shown: "encoding" is "omitted", and there is no "value".
nlohmann::json omitted_json(std::uint64_t length);

/// {"shape", "chunkshape", "blockshape", "dtype"} of a `b2nd` (or `caterva`) metalayer; none if it is no such thing.
std::optional<nlohmann::json> array_json(codec::ByteView content);

}  // namespace cframefs::tools
