#include "tools/cframe/tuner.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

#include "codec/format/filter_registry.h"
#include "codec/stream/codec_table.h"
#include "frame/write/auto_params.h"

namespace cframefs::tools {

namespace {

using codec::EncodeParameters;
using codec::Result;
using Samples = std::vector<std::vector<std::uint8_t>>;

constexpr double kTolerance = 1.05;

// Without delta, because releases of C-Blosc2 read parts of such chunks wrongly.
constexpr std::array<std::string_view, 4> kPipelines{"none", "shuffle", "bitshuffle", "shuffle+bytedelta"};

struct Trial {
  EncodeParameters encode;
  double stored = 0;
  double seconds = 0;
};

Result<void> run(codec::EncodeContext& context, const Samples& samples, Trial& trial) {
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& sample : samples) {
    const auto chunk = codec::encode_chunk(context, trial.encode, sample);
    if (!chunk) return codec::Failure(chunk.error());
    // Count the index entry, too, so that the divisor is never zero.
    trial.stored += static_cast<double>(chunk->bytes.size() + 8);
  }
  trial.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {};
}

/// Returns every codec and level that the options permit, with the filters of `encode`.
std::vector<EncodeParameters> with_codecs(const EncodeOptions& wishes, const EncodeParameters& encode) {
  if (wishes.compcode && wishes.clevel) return {encode};
  std::vector<EncodeParameters> all;
  for (const codec::CodecInfo& codec : codec::codec_table()) {
    if (wishes.compcode && codec.id != *wishes.compcode) continue;
    for (const int clevel : codec.tuned_levels) {
      if (clevel == 0) continue;
      EncodeParameters one = encode;
      one.compcode = codec.id;
      one.clevel = wishes.clevel.value_or(clevel);
      all.push_back(one);
    }
  }
  // A given codec without levels to try is tried at the default level.
  if (all.empty()) all.push_back(encode);
  return all;
}

std::vector<EncodeParameters> settings(codec::EncodeContext& context, const EncodeOptions& wishes,
                                       const Samples& samples) {
  std::vector<EncodeParameters> all;
  for (const std::string_view names : kPipelines) {
    EncodeParameters encode = wishes.parameters();
    if (!wishes.filters) encode.filters = *codec::filters_named(names);
    if (encode.typesize == 0) encode.typesize = frame::choose_typesize(context, encode, samples.front());
    const auto more = with_codecs(wishes, encode);
    all.insert(all.end(), more.begin(), more.end());
    if (wishes.filters) break;
  }
  return all;
}

}  // namespace

Result<Tuned> tune(codec::EncodeContext& context, const EncodeOptions& wishes, const Samples& samples) {
  std::vector<Trial> trials;
  for (const EncodeParameters& encode : settings(context, wishes, samples)) {
    trials.push_back({encode});
    if (auto ran = run(context, samples, trials.back()); !ran) return codec::Failure(ran.error());
  }
  const auto shorter = [](const Trial& a, const Trial& b) { return a.stored < b.stored; };
  const double enough = kTolerance * std::min_element(trials.begin(), trials.end(), shorter)->stored;
  const auto good = std::partition(trials.begin(), trials.end(), [&](const Trial& t) { return t.stored <= enough; });
  const auto faster = [](const Trial& a, const Trial& b) { return a.seconds < b.seconds; };
  const Trial& best = *std::min_element(trials.begin(), good, faster);
  double plain = 0;
  for (const auto& sample : samples)
    plain += static_cast<double>(sample.size());
  return Tuned{best.encode, plain / best.stored, static_cast<int>(trials.size())};
}

}  // namespace cframefs::tools
