// msgpack turned into JSON values, with nesting and size bounded: contents come from files that may mean harm.
//
// Thread safety: functions only.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "codec/base/bytes.h"
#include "frame/base/parse_budget.h"

namespace cframefs::frame {

/// None if this is not msgpack, or nested more than 32 levels deep, which the parser would follow by recursion.
/// unsupported: the values would take more memory than `budget` has left; they stay taken from it.
codec::Result<std::optional<nlohmann::json>> parse_msgpack(codec::ByteView content, ParseBudget& budget);

}  // namespace cframefs::frame
