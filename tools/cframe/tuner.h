// Tries settings on samples of the data and chooses the parameters of a frame for a goal.
//
// The tuner does not change options that the user has given. The goals `balanced`, `speed` and `random` depend on
// measured time, so that their result may differ between machines and runs.
//
// Thread safety: functions. Units: bytes. Errors: those of encoding.
#pragma once

#include <optional>
#include <string>

#include "codec/chunk_encoder.h"
#include "frame/write/data_samples.h"
#include "tools/cframe/encode_options.h"

namespace CLI {
class App;
}  // namespace CLI

namespace cframefs::tools {

enum class TuneGoal : std::uint8_t {
  balanced,  // of the settings within 5 % of the smallest result, the one that encodes fastest
  ratio,     // the smallest result, whatever time the encoder takes
  speed,     // of the settings within 20 % of the smallest result, the one that decodes fastest
  random,    // short blocks; of the settings within 25 % of the smallest result, the one that decodes a block fastest
};

struct Tuned {
  codec::EncodeParameters encode;
  double ratio = 1;  // on the samples
  int tried = 0;     // number of settings
};

/// Returns the best setting. REQUIRES: samples.runs is not empty.
codec::Result<Tuned> tune(codec::EncodeContext& context, const EncodeOptions& wishes, const frame::DataSamples& samples,
                          TuneGoal goal = TuneGoal::balanced);

/// Returns the options of `cframe pack` that select these parameters: "--codec zstd --clevel 5 …".
std::string options_text(const codec::EncodeParameters& encode);

/// Declares --tune.
void add_tune_option(CLI::App& app, std::optional<TuneGoal>& goal);

}  // namespace cframefs::tools
