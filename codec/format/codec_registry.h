// The names of codecs and filters, as options take them and reports print them. The only table of them.
//
// Thread safety: functions only. Errors: invalid, half a sentence that says what was expected.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "codec/base/error.h"
#include "codec/format/chunk_header.h"

namespace cframefs::codec {

using FilterSlots = std::array<std::uint8_t, kFilterSlots>;

/// Of a compressor code: "blosclz", "lz4", "lz4hc", "zlib", "zstd", or the registered name, or "codec 170".
std::string codec_name(std::uint8_t compcode);

/// "shuffle", or "filter 200".
std::string filter_name(std::uint8_t id);

/// The compressor code of a codec that chunks are made with.
Result<std::uint8_t> find_codec(std::string_view name);

/// A pipeline of filters that lose nothing, joined with "+" in the order applied: "delta+shuffle". They take the last
/// slots. "none" is the empty one.
Result<FilterSlots> filters_named(std::string_view names);

}  // namespace cframefs::codec
