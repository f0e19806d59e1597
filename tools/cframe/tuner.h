// Tries settings on samples of the data and chooses the parameters of a frame for a goal.
//
// The tuner does not change options that the user has given. The goals `balanced`, `speed` and `random` depend on
// measured time, so that their result may differ between machines and runs.
//
// Thread safety: functions. Units: bytes. Errors: those of encoding.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "codec/chunk_encoder.h"
#include "frame/container/container.h"
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
  remote,    // the usual setting, with choose_remote_chunksize()
};

struct Tuned {
  codec::EncodeParameters encode;
  double ratio = 1;  // on the samples
  int tried = 0;     // number of settings
};

/// Returns the best setting. REQUIRES: samples.runs is not empty; the goal is not `remote`.
codec::Result<Tuned> tune(codec::EncodeContext& context, const EncodeOptions& wishes, const frame::DataSamples& samples,
                          TuneGoal goal = TuneGoal::balanced);

/// Returns the chunk size for a frame that is read from a server: the largest power of two up to 8 MiB with which each
/// sample would store at most 1 MiB, so that a chunk is read by one request. 8 MiB if there are no samples.
codec::Result<std::int64_t> choose_remote_chunksize(codec::EncodeContext& context,
                                                    const codec::EncodeParameters& encode,
                                                    const frame::DataSamples& samples);

/// The same, by samples of the content of a container.
codec::Result<std::int64_t> choose_remote_chunksize(const std::shared_ptr<const frame::Container>& container,
                                                    const codec::EncodeParameters& encode);

/// Returns the options of `cframe pack` that select these parameters: "--codec zstd --clevel 5 …".
std::string options_text(const codec::EncodeParameters& encode);

/// Declares --tune with all goals.
void add_tune_option(CLI::App& app, std::optional<TuneGoal>& goal);
/// Declares --tune with the goal `remote` alone, which keeps the codec.
void add_remote_tune_option(CLI::App& app, bool& is_remote);

}  // namespace cframefs::tools
