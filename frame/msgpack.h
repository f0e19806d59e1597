// msgpack turned into JSON values, with nesting and size bounded: contents come from files that may mean harm.
//
// Thread safety: functions only.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "codec/bytes.h"

namespace cframefs::frame {

/// None if this is not msgpack, or nested more than 32 levels deep, which the parser would follow by recursion.
std::optional<nlohmann::json> parse_msgpack(codec::ByteView content);

}  // namespace cframefs::frame
