// Describes a container as JSON, for `cframe info --json` and the attribute user.blosc2.info.
//
// Thread safety: functions only.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "frame/container/container.h"

namespace cframefs::frame {

/// Returns the names of the filters in the order of their application, joined with "+", or "none". Examples: "shuffle",
/// "delta+shuffle", "trunc_prec(-12)".
std::string filters_name(const FrameParameters& parameters);

/// Describes what is known after opening; reads nothing. Keys: format, codec, clevel, filters, typesize, chunksize,
/// blocksize, nbytes, cbytes, ratio, chunks, sealed (whether there is a seal; its digests are not checked), metalayers
/// (names), vlmetalayers (names).
nlohmann::json summary_json(const Container& container);

/// Returns summary_json() as text on one line.
std::string info_json(const Container& container);

}  // namespace cframefs::frame
