// Converts msgpack to JSON values with bounded nesting and memory, because the content of a file is untrusted.
//
// Thread safety: functions only.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "codec/base/bytes.h"
#include "frame/base/parse_budget.h"

namespace cframefs::frame {

/// Returns nullopt if `content` is not msgpack or is nested more than 32 levels deep, because the parser recurses for
/// each level. The memory of the values is taken from `budget`. unsupported: `budget` has too little left.
codec::Result<std::optional<nlohmann::json>> parse_msgpack(codec::ByteView content, ParseBudget& budget);

}  // namespace cframefs::frame
