// cframe bench: encodes and decodes samples of a file with each codec, filter and level.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "codec/chunk_decoder.h"
#include "codec/chunk_encoder.h"
#include "codec/format/filter_registry.h"
#include "codec/stream/codec_table.h"
#include "frame/write/auto_params.h"
#include "tools/cframe/cframe.h"
#include "tools/cframe/encode_options.h"
#include "tools/cframe/plain_content.h"
#include "tools/lib/progress.h"
#include "tools/lib/sizes.h"

namespace cframefs::tools {

using codec::EncodeParameters;
using codec::Result;
using SampleChunks = std::vector<std::vector<std::uint8_t>>;

namespace {

// Without delta, because releases of C-Blosc2 read parts of such chunks wrongly.
constexpr std::array<std::string_view, 4> kFilters{"none", "shuffle", "bitshuffle", "shuffle+bytedelta"};
constexpr std::array<int, 3> kLevels{1, 5, 9};
constexpr std::uint64_t kMaxSample = std::uint64_t{1} << 30;
constexpr double kMaxLeastSeconds = 60;

struct BenchOptions {
  std::string file;
  EncodeOptions wishes;
  std::uint64_t sample = std::uint64_t{4} << 20;
  double seconds = 0.1;
  bool as_json = false;
};

/// A setting and its results. Speeds: uncompressed bytes per second of one thread.
struct Measured {
  EncodeParameters encode;
  std::string filters;
  std::uint64_t stored = 0;
  double encode_speed = 0;
  double decode_speed = 0;
  // No setting with a smaller result is faster.
  bool is_best_encoder = false;
  bool is_best_decoder = false;
};

/// Repeats `step`, which processes `bytes`, until `seconds` have passed. Returns the bytes per second.
template <class Step>
Result<double> speed_of(double seconds, std::uint64_t bytes, Step step) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t repeated = 1;; ++repeated) {
    if (auto ran = step(); !ran) return codec::Failure(ran.error());
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (passed >= seconds && passed > 0) return static_cast<double>(bytes * repeated) / passed;
  }
}

std::uint64_t total_of(const SampleChunks& samples) {
  std::uint64_t sum = 0;
  for (const auto& sample : samples)
    sum += sample.size();
  return sum;
}

/// Returns chunks from the whole of the content, at most `wanted` bytes.
Result<SampleChunks> read_samples(const PlainContent& content, std::uint64_t chunksize, std::uint64_t wanted, Io& io) {
  const std::uint64_t chunks = (content.size() + chunksize - 1) / chunksize;
  const std::uint64_t count = std::min(chunks, std::max<std::uint64_t>(wanted / chunksize, 1));
  SampleChunks samples;
  for (std::uint64_t i = 0; i < count; ++i) {
    // The product may exceed 64 bits.
    const std::uint64_t begin = (chunks / count * i + chunks % count * i / count) * chunksize;
    const std::uint64_t length = std::min(chunksize, content.size() - begin);
    std::vector<std::uint8_t> sample;
    const Sink sink = [&sample](codec::ByteView bytes) -> Result<void> {
      sample.insert(sample.end(), bytes.begin(), bytes.end());
      return {};
    };
    if (auto read = content.stream(begin, length, available_workers(), sink, io.stop); !read)
      return codec::Failure(with_path(read.error(), content.name()));
    samples.push_back(std::move(sample));
  }
  return samples;
}

class Bench {
 public:
  Bench(const BenchOptions& options, const SampleChunks& samples, std::int32_t typesize)
      : options_(options), samples_(samples), bytes_(total_of(samples)), typesize_(typesize) {}

  /// Returns the settings that the options permit.
  std::vector<Measured> settings() const {
    std::vector<Measured> trials;
    for (const codec::CodecInfo& codec : codec::codec_table()) {
      const bool is_wanted = !options_.wishes.compcode || *options_.wishes.compcode == codec.id;
      if (codec.encode == nullptr || !is_wanted) continue;
      for (const std::string_view filters : kFilters) {
        // Filters on the bytes of an item do nothing to items of one byte.
        if (!options_.wishes.filters && typesize_ == 1 && filters.starts_with("shuffle")) continue;
        for (const int level : kLevels) {
          Measured trial{options_.wishes.parameters(), std::string(filters)};
          trial.encode.compcode = codec.id;
          trial.encode.typesize = typesize_;
          if (!options_.wishes.filters) trial.encode.filters = *codec::filters_named(filters);
          if (!options_.wishes.clevel) trial.encode.clevel = level;
          if (options_.wishes.filters) trial.filters = name_of(trial.encode.filters);
          trials.push_back(std::move(trial));
          if (options_.wishes.clevel) break;
        }
        if (options_.wishes.filters) break;
      }
    }
    return trials;
  }

  /// Measures a setting. corruption: the samples did not survive it.
  Result<void> measure(Measured& trial) {
    std::vector<codec::EncodedChunk> chunks(samples_.size());
    const auto encoded = speed_of(options_.seconds, bytes_, [&]() -> Result<void> {
      for (std::size_t i = 0; i < samples_.size(); ++i) {
        if (auto one = codec::encode_into(encoder_, trial.encode, samples_[i], chunks[i]); !one) return one;
      }
      return {};
    });
    if (!encoded) return codec::Failure(encoded.error());
    trial.encode_speed = *encoded;
    // An index entry for each chunk.
    for (const codec::EncodedChunk& chunk : chunks)
      trial.stored += chunk.bytes.size() + sizeof(std::uint64_t);
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      auto decoded = decode(chunks[i], trial.encode.typesize);
      if (!decoded) return codec::Failure(decoded.error());
      if (plain_ != samples_[i]) return codec::corrupt("the decoded bytes differ from the sample");
    }
    const auto decoded = speed_of(options_.seconds, bytes_, [&]() -> Result<void> {
      for (const codec::EncodedChunk& chunk : chunks) {
        if (auto one = decode(chunk, trial.encode.typesize); !one) return one;
      }
      return {};
    });
    if (!decoded) return codec::Failure(decoded.error());
    trial.decode_speed = *decoded;
    return {};
  }

  std::uint64_t bytes() const { return bytes_; }

  static std::string name_of(const codec::FilterSlots& filters) {
    std::string names;
    for (const std::uint8_t filter : filters) {
      if (filter != 0) names += (names.empty() ? "" : "+") + codec::filter_name(filter);
    }
    return names.empty() ? "none" : names;
  }

 private:
  Result<void> decode(const codec::EncodedChunk& chunk, std::int32_t typesize) {
    plain_.resize(static_cast<std::size_t>(chunk.nbytes));
    const bool is_special = chunk.special != codec::SpecialValue::none;
    const auto decoder = is_special ? codec::ChunkDecoder::special(chunk.special, chunk.nbytes, typesize)
                                    : codec::ChunkDecoder::parse(chunk.bytes);
    if (!decoder) return codec::Failure(decoder.error());
    return codec::decode_range(decoder_, *decoder, chunk.bytes, 0, plain_);
  }

  const BenchOptions& options_;
  const SampleChunks& samples_;
  const std::uint64_t bytes_;
  const std::int32_t typesize_;
  codec::EncodeContext encoder_;
  codec::DecodeContext decoder_;
  std::vector<std::uint8_t> plain_;
};

/// Sorts by size and marks the fastest of each size.
void rank(std::vector<Measured>& trials) {
  std::sort(trials.begin(), trials.end(), [](const Measured& a, const Measured& b) { return a.stored < b.stored; });
  double encode = 0;
  double decode = 0;
  for (Measured& trial : trials) {
    trial.is_best_encoder = trial.encode_speed > encode;
    trial.is_best_decoder = trial.decode_speed > decode;
    encode = std::max(encode, trial.encode_speed);
    decode = std::max(decode, trial.decode_speed);
  }
}

std::string speed_text(double speed) {
  return human_size(static_cast<std::uint64_t>(speed)) + "/s";
}

std::string json_text(const std::vector<Measured>& trials, std::uint64_t bytes) {
  std::string text;
  for (const Measured& trial : trials) {
    const nlohmann::json line = {{"codec", codec::codec_name(trial.encode.compcode)},
                                 {"clevel", trial.encode.clevel},
                                 {"filters", trial.filters},
                                 {"typesize", trial.encode.typesize},
                                 {"plain", bytes},
                                 {"stored", trial.stored},
                                 {"ratio", static_cast<double>(bytes) / static_cast<double>(trial.stored)},
                                 {"encode_bytes_per_second", static_cast<std::uint64_t>(trial.encode_speed)},
                                 {"decode_bytes_per_second", static_cast<std::uint64_t>(trial.decode_speed)},
                                 {"fastest_encoding_of_its_size", trial.is_best_encoder},
                                 {"fastest_decoding_of_its_size", trial.is_best_decoder}};
    text += line.dump() + "\n";
  }
  return text;
}

std::string table_text(const std::vector<Measured>& trials, std::uint64_t bytes) {
  std::string text = fmt::format("{:>8}  {:>14}   {:>14}   {}\n", "RATIO", "ENCODE", "DECODE", "OPTIONS");
  for (const Measured& trial : trials) {
    text += fmt::format("{:8.2f}  {:>14} {} {:>14} {} --codec {} --clevel {} --filter {}\n",
                        static_cast<double>(bytes) / static_cast<double>(trial.stored), speed_text(trial.encode_speed),
                        trial.is_best_encoder ? '*' : ' ', speed_text(trial.decode_speed),
                        trial.is_best_decoder ? '*' : ' ', codec::codec_name(trial.encode.compcode),
                        trial.encode.clevel, trial.filters);
  }
  return text;
}

// Bytes of the file's beginning by which its typesize is chosen.
constexpr std::uint64_t kHeadBytes = std::uint64_t{1} << 20;

/// Returns the typesize: the option, else that of the frame, else the one that suits the data.
Result<std::int32_t> typesize_of(const BenchOptions& options, const PlainContent& content, Io& io) {
  if (options.wishes.typesize != 0) return static_cast<std::int32_t>(options.wishes.typesize);
  if (content.container() != nullptr && content.container()->parameters().typesize > 0)
    return std::min(content.container()->parameters().typesize, std::int32_t{255});
  const auto head = read_samples(content, kHeadBytes, kHeadBytes, io);
  if (!head) return codec::Failure(head.error());
  codec::EncodeContext context;
  const auto samples = frame::samples_of(head->front());
  return frame::choose_frame(context, options.wishes.parameters(), 0, samples).encode.typesize;
}

int run_bench(const BenchOptions& options, Io& io) {
  if (auto checked = validate_combination(options.wishes); !checked) return report(io, checked.error());
  const auto content = PlainContent::open(options.file, frame::ArrayForm::flat, io);
  if (!content) return report_failure(io, content.error(), options.file);
  if (content->size() == 0)
    return report(io, with_path(codec::invalid("has no content to be measured").value(), content->name()));
  const auto typesize = typesize_of(options, *content, io);
  if (!typesize) return report_failure(io, typesize.error(), content->name());
  const auto chunksize = static_cast<std::uint64_t>(
      frame::choose_chunksize(*typesize, static_cast<std::int64_t>(options.wishes.chunksize)));
  const auto samples = read_samples(*content, chunksize, options.sample, io);
  if (!samples) return report_failure(io, samples.error(), content->name());
  Bench bench(options, *samples, *typesize);
  std::vector<Measured> trials = bench.settings();
  Progress progress(io, "measuring", Progress::Unit::items);
  for (std::size_t i = 0; i < trials.size(); ++i) {
    progress.update(i, trials.size());
    if (auto measured = bench.measure(trials[i]); !measured)
      return report_failure(io, measured.error(), content->name());
    if (io.stop.load()) return interrupted;
  }
  progress.finish();
  rank(trials);
  if (options.as_json) return emit(io, json_text(trials, bench.bytes()));
  const std::string head = fmt::format(
      "{}: {} in {} chunks of {}, typesize {}, one thread; *: no smaller result is faster\n",
      printable(content->name()), human_size(bench.bytes()), samples->size(), human_size(chunksize), *typesize);
  return emit(io, head + table_text(trials, bench.bytes()));
}

}  // namespace

SubcommandRun declare_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  app.add_option("FILE", options->file, "Frame or any other file, or - for standard input")->required()->type_name("");
  add_frame_options(app, options->wishes);
  add_size_option(app, "--sample", options->sample, "Bytes to encode and decode, from the whole file (4M)")
      ->check(CLI::Validator(
          [](const std::string& text) -> std::string {
            const auto size = parse_size(text);
            return size && *size > kMaxSample ? "must be at most 1G" : "";
          },
          "", "sample"));
  app.add_option("--seconds", options->seconds, "Least time for each encoding and each decoding (0.1)")
      ->check(CLI::Range(0.0, kMaxLeastSeconds))
      ->type_name("SECONDS");
  app.add_flag("--json", options->as_json, "Print JSON: one object on one line for each setting");
  return [options](Io& io) { return run_bench(*options, io); };
}

}  // namespace cframefs::tools
