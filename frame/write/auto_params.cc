#include "frame/write/auto_params.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string_view>

#include "codec/format/filter_registry.h"
#include "codec/stream/block_sizes.h"
#include "codec/stream/codec_table.h"
#include "frame/write/item_sizes.h"

namespace cframefs::frame {
namespace {

using codec::EncodeParameters;
using codec::FilterSlots;

constexpr std::int64_t kChunksize = std::int64_t{1} << 20;

// Common sizes of items.
constexpr std::array<std::int32_t, 9> kTypesizes{1, 2, 3, 4, 6, 8, 12, 16, 24};

// Fewer items tell nothing about a typesize.
constexpr std::size_t kFewestItems = 32;

// Pipelines that are tried if the filters are open, and how much longer the result of another one has to be before one
// is chosen that takes longer to decode. Without delta, because releases of C-Blosc2 read parts of such chunks wrongly.
struct Pipeline {
  std::string_view names;
  double handicap;
};
constexpr Pipeline kNone{"none", 1};
constexpr Pipeline kShuffle{"shuffle", 1.005};
constexpr Pipeline kBytedelta{"shuffle+bytedelta", 1.01};
constexpr Pipeline kBitshuffle{"bitshuffle", 1.01};

// Likewise for typesizes other than 1.
constexpr double kNumberHandicap = 1.006;
constexpr double kRecordHandicap = 1.009;

// The first round uses the first half of each slice if the slices have more bytes than this.
constexpr std::size_t kFirstRound = std::size_t{128} << 10;
constexpr std::size_t kFirstRoundDivisor = 2;

// The greatest level of the second round: the order of settings is about the same at higher levels, which take very
// long.
constexpr int kMaxTrialLevel = 6;
// Settings whose result in the first round exceeds the best one by more than this do not take part in the second one.
constexpr double kFinalist = 1.06;
constexpr std::size_t kFinalists = 3;

// Longer blocks must shorten the result to this share, because a small read decodes a whole block.
constexpr double kLongerBlockGain = 0.985;
constexpr std::array<std::int32_t, 2> kLongerBlocks{1 << 20, 512 << 10};
// A run shows the effect of blocks if it has at least this share of one.
constexpr double kShownShare = 0.75;

struct Trial {
  EncodeParameters parameters;
  double share = 0;  // encoded bytes / plain bytes, with the handicap
};

FilterSlots filters_of(const Pipeline& pipeline) {
  return *codec::filters_named(pipeline.names);
}

/// Returns by how much the result of these parameters counts as longer than it is.
double handicap_of(const EncodeParameters& parameters) {
  double handicap = 1;
  for (const Pipeline& pipeline : {kNone, kShuffle, kBytedelta, kBitshuffle}) {
    if (filters_of(pipeline) == parameters.filters) handicap = pipeline.handicap;
  }
  if (parameters.typesize == 1) return handicap;
  const bool is_number = std::has_single_bit(static_cast<std::uint32_t>(parameters.typesize));
  return handicap * (is_number ? kNumberHandicap : kRecordHandicap);
}

/// Returns the length of the encoded bytes; infinite if they cannot be encoded with these parameters.
double encoded_length(codec::EncodeContext& context, const EncodeParameters& parameters, ByteView bytes) {
  const auto chunk = codec::encode_chunk(context, parameters, bytes);
  if (!chunk) return std::numeric_limits<double>::infinity();
  return static_cast<double>(chunk->bytes.size() + 1);
}

/// Cuts off what follows the last whole item. A chunk that ends within an item would be encoded without its typesize.
ByteView whole_items(ByteView bytes, std::int32_t typesize) {
  return bytes.first(bytes.size() - bytes.size() % static_cast<std::size_t>(typesize));
}

/// Joins 1 / `divisor` of each slice, from the first to the last whole item of `typesize` bytes.
std::vector<std::uint8_t> joined(const std::vector<Sample>& slices, std::int32_t typesize, std::size_t divisor) {
  std::vector<std::uint8_t> all;
  const auto size = static_cast<std::size_t>(typesize);
  for (const Sample& slice : slices) {
    const std::size_t skipped = std::min(slice.bytes.size(), (size - slice.offset % size) % size);
    const ByteView rest = ByteView(slice.bytes).subspan(skipped).first((slice.bytes.size() - skipped) / divisor);
    codec::append(all, whole_items(rest, typesize));
  }
  return all;
}

/// The first round.
class Round {
 public:
  Round(codec::EncodeContext& context, const EncodeParameters& parameters, const std::vector<Sample>& slices)
      : context_(context), parameters_(parameters), slices_(slices) {
    std::size_t all = 0;
    for (const Sample& slice : slices)
      all += slice.bytes.size();
    if (all > kFirstRound) divisor_ = kFirstRoundDivisor;
  }

  void run(std::int32_t typesize, const FilterSlots& filters) {
    if (joined_typesize_ != typesize) {
      joined_ = joined(slices_, typesize, divisor_);
      joined_typesize_ = typesize;
    }
    if (joined_.size() < kFewestItems * static_cast<std::size_t>(typesize)) return;
    EncodeParameters trial;
    // The fastest codec and level that are as the frame's codec: exploit unequal byte frequencies, or repeats only.
    const bool has_entropy_coder = parameters_.compcode == codec::kZstd || has_deflate_streams(parameters_.compcode);
    trial.compcode = has_entropy_coder ? codec::kZstd : codec::kLz4;
    trial.clevel = 1;
    trial.filters = filters;
    trial.typesize = typesize;
    trial.blocksize = static_cast<std::int32_t>(joined_.size());
    const double share = encoded_length(context_, trial, joined_) / static_cast<double>(joined_.size());
    trials_.push_back({parameters_, share * handicap_of(trial)});
    trials_.back().parameters.typesize = typesize;
    trials_.back().parameters.filters = filters;
  }

  void sort() {
    std::stable_sort(trials_.begin(), trials_.end(), [](const Trial& a, const Trial& b) { return a.share < b.share; });
  }

  const std::vector<Trial>& trials() const { return trials_; }

 private:
  static bool has_deflate_streams(std::uint8_t compcode) {
    const codec::CodecInfo* const codec = codec::codec_info(compcode);
    return codec != nullptr && codec->format == codec::CodecFormat::zlib;
  }

  codec::EncodeContext& context_;
  const EncodeParameters& parameters_;
  const std::vector<Sample>& slices_;
  std::size_t divisor_ = 1;
  std::int32_t joined_typesize_ = 0;
  std::vector<std::uint8_t> joined_;
  std::vector<Trial> trials_;
};

std::vector<std::int32_t> typesizes_to_try(const EncodeParameters& parameters, const DataSamples& samples) {
  if (parameters.typesize != 0) return {parameters.typesize};
  if (auto declared = declared_item_sizes(samples.head); !declared.empty()) return declared;
  std::vector<std::int32_t> sizes(kTypesizes.begin(), kTypesizes.end());
  const std::int32_t record = repeating_distance(samples.slices);
  if (record > 0 && std::find(sizes.begin(), sizes.end(), record) == sizes.end()) sizes.push_back(record);
  return sizes;
}

/// Tries bitshuffle, which is slow, with the best typesizes only.
void try_bitshuffle(Round& round) {
  constexpr std::size_t kTypesizesTried = 2;
  std::vector<std::int32_t> best;
  for (const Trial& trial : round.trials()) {
    const std::int32_t typesize = trial.parameters.typesize;
    if (std::find(best.begin(), best.end(), typesize) == best.end()) best.push_back(typesize);
    if (best.size() == kTypesizesTried) break;
  }
  for (const std::int32_t typesize : best)
    round.run(typesize, filters_of(kBitshuffle));
}

EncodeParameters at_trial_level(EncodeParameters parameters) {
  parameters.clevel = std::min(parameters.clevel, kMaxTrialLevel);
  return parameters;
}

/// The second round.
EncodeParameters best_of(codec::EncodeContext& context, const std::vector<EncodeParameters>& finalists,
                         const std::vector<Sample>& slices) {
  const EncodeParameters* best = &finalists.front();
  double shortest = std::numeric_limits<double>::infinity();
  for (const EncodeParameters& finalist : finalists) {
    if (finalists.size() == 1) break;
    const auto bytes = joined(slices, finalist.typesize, 1);
    const double length = encoded_length(context, at_trial_level(finalist), bytes) * handicap_of(finalist) /
                          static_cast<double>(bytes.size());
    if (length >= shortest) continue;
    shortest = length;
    best = &finalist;
  }
  return *best;
}

/// Returns the automatic block size, 0, or a longer one that shortens the result enough.
std::int32_t longer_blocksize(codec::EncodeContext& context, const EncodeParameters& parameters, std::int64_t chunksize,
                              const std::vector<Sample>& runs) {
  const std::int64_t usual = codec::choose_blocksize(parameters, static_cast<std::int32_t>(chunksize));
  const auto length_with = [&](std::int32_t blocksize) {
    EncodeParameters trial = at_trial_level(parameters);
    trial.blocksize = blocksize;
    double length = 0;
    for (const Sample& run : runs)
      length += encoded_length(context, trial, whole_items(run.bytes, parameters.typesize));
    return length;
  };
  std::int32_t best = 0;
  double shortest = 0;
  // Longest first: if it does not gain enough, no other one does.
  for (const std::int32_t longer : kLongerBlocks) {
    const std::int32_t blocksize = longer - longer % parameters.typesize;
    const bool is_shown = !runs.empty() && static_cast<double>(runs.front().bytes.size()) >= kShownShare * blocksize;
    if (blocksize <= usual || blocksize > chunksize || !is_shown) continue;
    if (best == 0) {
      const double with_usual = length_with(0);
      shortest = length_with(blocksize);
      if (shortest > kLongerBlockGain * with_usual) break;
      best = blocksize;
    } else if (length_with(blocksize) < shortest * (2 - kLongerBlockGain)) {
      best = blocksize;
    }
  }
  return best;
}

}  // namespace

std::vector<EncodeParameters> rank_pipelines(codec::EncodeContext& context, const EncodeParameters& parameters,
                                             Filters filters, const DataSamples& samples, std::size_t most) {
  const std::vector<std::int32_t> typesizes = typesizes_to_try(parameters, samples);
  Round round(context, parameters, samples.slices);
  const bool open = filters == Filters::open;
  // Without filters the typesize makes no difference.
  if (open && parameters.clevel > 0) round.run(typesizes.front(), filters_of(kNone));
  for (const std::int32_t typesize : parameters.clevel > 0 ? typesizes : std::vector<std::int32_t>()) {
    if (!open) round.run(typesize, parameters.filters);
    if (open && typesize > 1) round.run(typesize, filters_of(kShuffle));
    if (open) round.run(typesize, filters_of(kBytedelta));
  }
  round.sort();
  if (open) try_bitshuffle(round);
  round.sort();
  if (round.trials().empty()) {
    // There is nothing to try: no data, or chunks that are stored uncompressed.
    EncodeParameters only = parameters;
    only.typesize = typesizes.front();
    if (open) only.filters = filters_of(kShuffle);
    return {only};
  }
  std::vector<EncodeParameters> best;
  for (const Trial& trial : round.trials()) {
    if (best.size() == most || trial.share > kFinalist * round.trials().front().share) break;
    best.push_back(trial.parameters);
  }
  return best;
}

std::int32_t choose_chunksize(std::int32_t typesize, std::int64_t wanted) {
  const std::int64_t size = wanted > 0 ? wanted : kChunksize;
  return static_cast<std::int32_t>(std::max<std::int64_t>(size - size % typesize, typesize));
}

NewFrame choose_frame(codec::EncodeContext& context, EncodeParameters encode, std::int64_t chunksize,
                      const DataSamples& samples, Filters filters) {
  NewFrame frame;
  if (encode.typesize == 0 || (filters == Filters::open && !samples.slices.empty())) {
    encode = best_of(context, rank_pipelines(context, encode, filters, samples, kFinalists), samples.slices);
  }
  frame.encode = encode;
  frame.chunksize = choose_chunksize(encode.typesize, chunksize);
  const bool has_open_blocks = encode.blocksize == 0 && encode.clevel > 0;
  if (has_open_blocks) frame.encode.blocksize = longer_blocksize(context, encode, frame.chunksize, samples.runs);
  return frame;
}

}  // namespace cframefs::frame
