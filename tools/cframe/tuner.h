// Tries settings on samples of the data and picks those to make a frame with.
//
// Of the settings tried, those that come within kTolerance of the shortest are good enough; of them the one that
// encodes fastest is taken. What the user wished for is not touched.
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
  int tried = 0;     // settings
};

/// Samples: some pieces of the data, each as long as a chunk or shorter. REQUIRES: at least one, none empty.
codec::Result<Tuned> tune(codec::EncodeContext& context, const EncodeOptions& wishes,
                          const std::vector<std::vector<std::uint8_t>>& samples);

}  // namespace cframefs::tools
