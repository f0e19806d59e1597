// Tries settings on samples of the data and chooses the parameters of a frame.
//
// Among the settings whose result is within kTolerance of the smallest, the tuner takes the one that encodes fastest.
// It does not change options that the user has given.
//
// Thread safety: functions. Units: bytes. Errors: those of encoding.
#pragma once

#include <vector>

#include "codec/chunk_encoder.h"
#include "tools/cframe/encode_options.h"

namespace cframefs::tools {

struct Tuned {
  codec::EncodeParameters encode;
  double ratio = 1;  // on the samples
  int tried = 0;     // number of settings
};

/// Returns the best setting. `samples`: pieces of the data, each at most a chunk long. REQUIRES: at least one, none
/// empty.
codec::Result<Tuned> tune(codec::EncodeContext& context, const EncodeOptions& wishes,
                          const std::vector<std::vector<std::uint8_t>>& samples);

}  // namespace cframefs::tools
