#include "tools/cframe/tuner.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "codec/chunk_decoder.h"
#include "codec/format/filter_registry.h"
#include "codec/stream/block_sizes.h"
#include "codec/stream/codec_table.h"
#include "frame/array/array_view.h"
#include "frame/write/auto_params.h"
#include "tools/stream/array_stream.h"

namespace cframefs::tools {

namespace {

using codec::EncodeParameters;
using codec::Result;
using Runs = std::vector<frame::Sample>;

// Pipelines and typesizes that are tried with each codec.
constexpr std::size_t kPipelines = 3;

// Block sizes that are tried for a goal; 0: automatic.
constexpr std::array<std::int64_t, 1> kUsualBlocks{0};
constexpr std::array<std::int64_t, 2> kLongBlocks{0, std::int64_t{1} << 20};
constexpr std::array<std::int64_t, 3> kShortBlocks{std::int64_t{8} << 10, std::int64_t{16} << 10,
                                                   std::int64_t{32} << 10};

// Of a chunk that is read by one request (frame/doc/remote.md section 3), and the sizes that are tried.
constexpr double kRemoteChunk = 1 << 20;
constexpr std::int64_t kMostRemoteChunk = std::int64_t{8} << 20;
constexpr std::int64_t kLeastRemoteChunk = std::int64_t{256} << 10;
// Data between the samples may compress worse than they do.
constexpr double kRemoteMargin = 1.05;

struct Trial {
  EncodeParameters encode;
  double stored = 0;
  double encoding = 0;  // seconds
  double decoding = 0;  // seconds
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Returns the seconds that decoding takes; the less of two runs.
Result<double> decoding_time(codec::DecodeContext& context, codec::ByteView chunk, std::size_t nbytes) {
  constexpr int kRepetitions = 2;
  const auto decoder = codec::ChunkDecoder::parse(chunk);
  if (!decoder) return codec::Failure(decoder.error());
  std::vector<std::uint8_t> plain(nbytes);
  double least = 0;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const auto begin = std::chrono::steady_clock::now();
    if (auto done = codec::decode_range(context, *decoder, chunk, 0, plain); !done) return codec::Failure(done.error());
    const double seconds = seconds_since(begin);
    least = repetition == 0 ? seconds : std::min(least, seconds);
  }
  return least;
}

Result<void> run(codec::EncodeContext& context, const Runs& runs, bool decodes, Trial& trial) {
  codec::DecodeContext decode_context;
  for (const auto& sample : runs) {
    const auto begin = std::chrono::steady_clock::now();
    const auto chunk = codec::encode_chunk(context, trial.encode, sample.bytes);
    trial.encoding += seconds_since(begin);
    if (!chunk) return codec::Failure(chunk.error());
    // Count the index entry, too, so that the divisor is never zero.
    trial.stored += static_cast<double>(chunk->bytes.size() + 8);
    if (!decodes || chunk->bytes.empty()) continue;
    const auto seconds = decoding_time(decode_context, chunk->bytes, sample.bytes.size());
    if (!seconds) return codec::Failure(seconds.error());
    trial.decoding += *seconds;
  }
  return {};
}

std::vector<int> levels_of(const codec::CodecInfo& codec, TuneGoal goal) {
  std::vector<int> levels;
  for (const int level : codec.tuned_levels) {
    if (level != 0) levels.push_back(level);
  }
  const bool all = goal == TuneGoal::ratio && codec.long_blocks && !levels.empty();
  if (all && levels.back() != codec::kMaxLevel) levels.push_back(codec::kMaxLevel);
  return levels;
}

/// Returns every codec and level that the options permit.
std::vector<EncodeParameters> with_codecs(const EncodeOptions& wishes, TuneGoal goal) {
  const EncodeParameters usual = wishes.parameters();
  if (wishes.compcode && wishes.clevel) return {usual};
  std::vector<EncodeParameters> all;
  for (const codec::CodecInfo& codec : codec::codec_table()) {
    if (wishes.compcode && codec.id != *wishes.compcode) continue;
    for (const int clevel : levels_of(codec, goal)) {
      EncodeParameters one = usual;
      one.compcode = codec.id;
      one.clevel = wishes.clevel.value_or(clevel);
      all.push_back(one);
      if (wishes.clevel) break;
    }
  }
  // A given codec without levels to try is tried at the default level.
  if (all.empty()) all.push_back(usual);
  return all;
}

std::span<const std::int64_t> blocks_for(TuneGoal goal) {
  if (goal == TuneGoal::ratio) return kLongBlocks;
  if (goal == TuneGoal::random) return kShortBlocks;
  return kUsualBlocks;
}

std::vector<EncodeParameters> settings(codec::EncodeContext& context, const EncodeOptions& wishes,
                                       const frame::DataSamples& samples, TuneGoal goal) {
  const auto filters = wishes.filters ? frame::Filters::given : frame::Filters::open;
  const std::array<std::int64_t, 1> given{static_cast<std::int64_t>(wishes.blocksize)};
  const auto blocks = wishes.blocksize != 0 ? std::span<const std::int64_t>(given) : blocks_for(goal);
  std::map<std::uint8_t, std::vector<EncodeParameters>> pipelines;  // the order depends on the codec only
  std::vector<EncodeParameters> all;
  for (const EncodeParameters& coded : with_codecs(wishes, goal)) {
    auto& ranked = pipelines[coded.compcode];
    if (ranked.empty()) ranked = frame::rank_pipelines(context, coded, filters, samples, kPipelines);
    for (EncodeParameters one : ranked) {
      one.clevel = coded.clevel;
      const std::int64_t chunksize = frame::choose_chunksize(one.typesize, static_cast<std::int64_t>(wishes.chunksize));
      for (const std::int64_t blocksize : blocks) {
        // A given size is kept as it is.
        const std::int64_t whole = blocksize == given[0] ? blocksize : blocksize - blocksize % one.typesize;
        one.blocksize = static_cast<std::int32_t>(std::min(whole, chunksize));
        all.push_back(one);
      }
    }
  }
  return all;
}

/// Returns the seconds that decoding a block takes, on average, times the bytes of the runs.
double block_time(const Trial& trial, std::int32_t run) {
  return trial.decoding * codec::choose_blocksize(trial.encode, run);
}

const Trial& best_of(std::vector<Trial>& trials, TuneGoal goal, std::int32_t run) {
  const auto shorter = [](const Trial& a, const Trial& b) { return a.stored < b.stored; };
  const auto shortest = std::min_element(trials.begin(), trials.end(), shorter);
  if (goal == TuneGoal::ratio) return *shortest;
  const double tolerance = goal == TuneGoal::speed ? 1.2 : goal == TuneGoal::random ? 1.25 : 1.05;
  const double enough = tolerance * shortest->stored;
  const auto good = std::partition(trials.begin(), trials.end(), [&](const Trial& t) { return t.stored <= enough; });
  return *std::min_element(trials.begin(), good, [&](const Trial& a, const Trial& b) {
    if (goal == TuneGoal::speed) return a.decoding < b.decoding;
    if (goal == TuneGoal::random) return block_time(a, run) < block_time(b, run);
    return a.encoding < b.encoding;
  });
}

}  // namespace

Result<Tuned> tune(codec::EncodeContext& context, const EncodeOptions& wishes, const frame::DataSamples& samples,
                   TuneGoal goal) {
  const bool decodes = goal == TuneGoal::speed || goal == TuneGoal::random;
  std::vector<Trial> trials;
  for (const EncodeParameters& encode : settings(context, wishes, samples, goal)) {
    trials.push_back({encode});
    if (auto ran = run(context, samples.runs, decodes, trials.back()); !ran) return codec::Failure(ran.error());
  }
  double plain = 0;
  for (const auto& sample : samples.runs)
    plain += static_cast<double>(sample.bytes.size());
  const auto tried = static_cast<int>(trials.size());
  const Trial& best = best_of(trials, goal, static_cast<std::int32_t>(samples.runs.front().bytes.size()));
  return Tuned{best.encode, plain / best.stored, tried};
}

Result<std::int64_t> choose_remote_chunksize(codec::EncodeContext& context, const EncodeParameters& encode,
                                             const frame::DataSamples& samples) {
  double most = 0;  // stored bytes of a byte
  Runs all = samples.runs;
  all.insert(all.end(), samples.slices.begin(), samples.slices.end());
  for (const auto& sample : all) {
    const auto chunk = codec::encode_chunk(context, encode, sample.bytes);
    if (!chunk) return codec::Failure(chunk.error());
    most = std::max(most, static_cast<double>(chunk->bytes.size()) / static_cast<double>(sample.bytes.size()));
  }
  std::int64_t chunksize = kMostRemoteChunk;
  while (chunksize > kLeastRemoteChunk && most * kRemoteMargin * static_cast<double>(chunksize) > kRemoteChunk)
    chunksize /= 2;
  return chunksize;
}

Result<std::int64_t> choose_remote_chunksize(const std::shared_ptr<const frame::Container>& container,
                                             const EncodeParameters& encode) {
  const auto view = frame::make_view(container, frame::ArrayForm::flat, false);
  if (!view) return codec::Failure(view.error());
  const std::atomic<bool> never{false};
  const auto samples = frame::take_samples(
      [&](codec::ByteSpan into, std::uint64_t at) -> Result<std::size_t> {
        const std::uint64_t length =
            std::min<std::uint64_t>(into.size(), (*view)->size() - std::min(at, (*view)->size()));
        std::size_t done = 0;
        const Sink sink = [&](codec::ByteView bytes) -> Result<void> {
          std::copy(bytes.begin(), bytes.end(), into.begin() + static_cast<std::ptrdiff_t>(done));
          done += bytes.size();
          return {};
        };
        auto read = stream_view(**view, frame::FlatOffset{at}, length, 1, sink, never);
        return read ? Result<std::size_t>(done) : codec::Failure(read.error());
      },
      (*view)->size());
  if (!samples) return codec::Failure(samples.error());
  codec::EncodeContext context;
  return choose_remote_chunksize(context, encode, *samples);
}

std::string options_text(const EncodeParameters& encode) {
  std::string names;
  for (const std::uint8_t filter : encode.filters) {
    if (filter != 0) names += (names.empty() ? "" : "+") + codec::filter_name(filter);
  }
  std::string text = fmt::format("--codec {} --clevel {} --filter {} --typesize {}", codec::codec_name(encode.compcode),
                                 encode.clevel, names.empty() ? "none" : names, encode.typesize);
  if (encode.blocksize != 0) text += fmt::format(" --blocksize {}", encode.blocksize);
  return text;
}

void add_remote_tune_option(CLI::App& app, bool& is_remote) {
  app.add_option_function<std::string>(
         "--tune", [&is_remote](const std::string& /*goal*/) { is_remote = true; },
         "Choose the chunk size for reads from a server, by samples (remote)")
      ->check(CLI::IsMember({"remote"}))
      ->type_name("remote");
}

void add_tune_option(CLI::App& app, std::optional<TuneGoal>& goal) {
  static const std::map<std::string, TuneGoal> kGoals{{"balanced", TuneGoal::balanced},
                                                      {"ratio", TuneGoal::ratio},
                                                      {"speed", TuneGoal::speed},
                                                      {"random", TuneGoal::random},
                                                      {"remote", TuneGoal::remote}};
  const auto parse = [&goal](const std::string& text) {
    const auto found = kGoals.find(text);
    if (found == kGoals.end()) {
      throw CLI::ValidationError("--tune", "'" + text + "' must be one of balanced, ratio, speed, random, remote");
    }
    goal = found->second;
  };
  app.add_flag(std::string("--tune{balanced}"))
      ->description(
          "Try settings on samples and take the best for balanced, ratio, speed, random reads or reads from a server "
          "(remote); options that are given are not changed")
      ->each(parse);
}

}  // namespace cframefs::tools
