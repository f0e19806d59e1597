// The map of an embed frame: which key lies where in its plain bytes.
//
// It is msgpack that a file chose: of what it says only places are taken, and nothing is built from the rest. Format:
// stores.md section 2.
//
// Thread safety: functions only. Errors: corruption; what the visitor answers.
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

/// Calls `visit` for each entry that has a place, in stored order; its first error ends the walk. The place that it
/// gets is another one after the call. `wanted`: keys; what others say is not looked at.
codec::Result<void> visit_embed_map(codec::ByteView content, const std::function<bool(const std::string& key)>& wanted,
                                    const std::function<codec::Result<void>(const EmbeddedPlace& place)>& visit);

}  // namespace cframefs::frame
