// What there is to say about a container, as JSON: the source of `cframe info --json` and of user.blosc2.info.
//
// Thread safety: functions only.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "frame/container/container.h"

namespace cframefs::frame {

/// The pipeline in the order applied, joined with "+": "shuffle", "delta+shuffle", "trunc_prec(-12)"; "none".
std::string filters_name(const FrameParameters& parameters);

/// Header only: nothing that costs more than opening did. Keys: format, codec, clevel, filters, typesize, chunksize,
/// blocksize, nbytes, cbytes, ratio, chunks, metalayers (names), vlmetalayers (names).
nlohmann::json summary_json(const Container& container);

/// The same as text, on one line.
std::string info_json(const Container& container);

}  // namespace cframefs::frame
