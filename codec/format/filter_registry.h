// The names of filters, as options take them and reports print them. The only table of these names; that of codecs is
// codec/stream/codec_table.h.
//
// Thread safety: functions only. Errors: invalid; the reason says what was expected, to follow the name of the option.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "codec/base/error.h"
#include "codec/format/chunk_header.h"

namespace cframefs::codec {

using FilterSlots = std::array<std::uint8_t, kFilterSlots>;

/// Returns the name of a filter id: "shuffle", or "filter 200" for an unknown one.
std::string filter_name(std::uint8_t id);

/// Parses a pipeline of lossless filters, joined with "+" in the order of application: "delta+shuffle". The filters
/// take the last slots. "none" is the empty pipeline.
Result<FilterSlots> filters_named(std::string_view names);

}  // namespace cframefs::codec
