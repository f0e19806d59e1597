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
// Likewise of the second round, with the usual blocks: such settings are compared again with longer blocks.
constexpr double kCloseRival = 1.03;

// Longer blocks must shorten the result to this share, because a small read decodes a whole block.
constexpr double kLongerBlockGain = 0.985;
constexpr std::array<std::int32_t, 2> kLongerBlocks{1 << 20, 512 << 10};

struct Trial {
  EncodeParameters parameters;
  double share = 0;  // encoded bytes / plain bytes, with the handicap
};

void sort_by_share(std::vector<Trial>& trials) {
  std::stable_sort(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) { return a.share < b.share; });
}

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

/// Returns the largest multiple of the typesize up to `length`.
std::int32_t rounded_down(std::int32_t length, std::int32_t typesize) {
  return length - length % typesize;
}

/// Returns the sample from its first whole item of `typesize` bytes on.
ByteView from_first_item(const Sample& sample, std::int32_t typesize) {
  const auto size = static_cast<std::uint64_t>(typesize);
  const std::uint64_t before = (size - sample.offset % size) % size;
  return ByteView(sample.bytes).subspan(static_cast<std::size_t>(std::min<std::uint64_t>(sample.bytes.size(), before)));
}

/// Joins 1 / `divisor` of each slice, from the first to the last whole item of `typesize` bytes.
std::vector<std::uint8_t> joined(const std::vector<Sample>& slices, std::int32_t typesize, std::size_t divisor) {
  std::vector<std::uint8_t> all;
  for (const Sample& slice : slices) {
    const ByteView rest = from_first_item(slice, typesize);
    codec::append(all, whole_items(rest.first(rest.size() / divisor), typesize));
  }
  return all;
}

/// The first round.
class FirstRound {
 public:
  FirstRound(codec::EncodeContext& context, const EncodeParameters& parameters, const std::vector<Sample>& slices)
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

  void sort() { sort_by_share(trials_); }

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
void try_bitshuffle(FirstRound& round) {
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

/// The second round.
class SecondRound {
 public:
  SecondRound(codec::EncodeContext& context, std::int64_t chunksize, const DataSamples& samples)
      : context_(context), chunksize_(chunksize), samples_(samples) {}

  /// Returns the finalists in the order of their result with the usual blocks; the first one has the least share.
  std::vector<Trial> ranked(const std::vector<EncodeParameters>& finalists) const {
    std::vector<Trial> trials;
    for (const EncodeParameters& finalist : finalists) {
      trials.push_back({finalist, 0});
      if (finalists.size() == 1) break;
      const auto bytes = joined(samples_.slices, finalist.typesize, 1);
      trials.back().share = share_of(finalist, whole_blocks(bytes, usual_blocksize(finalist)));
    }
    sort_by_share(trials);
    return trials;
  }

  /// Returns the parameters of the best trial, with longer blocks if those shorten the result enough.
  EncodeParameters with_best_blocks(const std::vector<Trial>& trials) const {
    EncodeParameters best = trials.front().parameters;
    const std::int32_t longer = longer_blocks(best);
    if (longer == 0) return best;
    best.blocksize = rounded_down(longer, best.typesize);
    // Filters gain differently by longer blocks.
    const Sample& run = samples_.runs.front();
    double least = 0;
    for (const Trial& trial : trials) {
      if (trials.size() == 1 || trial.share > kCloseRival * trials.front().share) break;
      EncodeParameters rival = trial.parameters;
      rival.blocksize = rounded_down(longer, rival.typesize);
      if (rival.blocksize <= usual_blocksize(trial.parameters)) rival.blocksize = 0;
      const double share = share_of(rival, whole_items(from_first_item(run, rival.typesize), rival.typesize));
      if (least > 0 && share >= least) continue;
      least = share;
      best = rival;
    }
    return best;
  }

 private:
  /// Cuts off what follows the last whole block, if there is one: a codec gains less or more by blocks of another
  /// length, and not with all filters alike.
  static ByteView whole_blocks(ByteView bytes, std::int32_t blocksize) {
    const auto length = static_cast<std::size_t>(blocksize);
    return bytes.size() < length ? bytes : bytes.first(bytes.size() - bytes.size() % length);
  }
  std::int32_t usual_blocksize(const EncodeParameters& parameters) const {
    return codec::choose_blocksize(parameters, choose_chunksize(parameters.typesize, chunksize_));
  }
  double share_of(const EncodeParameters& parameters, ByteView bytes) const {
    EncodeParameters trial = parameters;
    trial.clevel = std::min(trial.clevel, kMaxTrialLevel);
    return encoded_length(context_, trial, bytes) * handicap_of(parameters) / static_cast<double>(bytes.size());
  }
  /// Returns the length of longer blocks that shorten the result enough, one of kLongerBlocks; otherwise 0.
  std::int32_t longer_blocks(const EncodeParameters& parameters) const;

  codec::EncodeContext& context_;
  std::int64_t chunksize_;
  const DataSamples& samples_;
};

std::int32_t SecondRound::longer_blocks(const EncodeParameters& parameters) const {
  const std::int32_t chunksize = choose_chunksize(parameters.typesize, chunksize_);
  const auto share_with = [&](std::int32_t blocksize, std::int32_t longest) {
    EncodeParameters trial = parameters;
    trial.blocksize = blocksize;
    double share = 0;
    for (const Sample& run : samples_.runs)
      share += share_of(trial, whole_blocks(from_first_item(run, trial.typesize), longest));
    return share;
  };
  std::int32_t best = 0;
  std::int32_t longest = 0;
  double least = 0;
  // Longest first: if it does not gain enough, no other one does.
  for (const std::int32_t longer : kLongerBlocks) {
    const std::int32_t blocksize = rounded_down(longer, parameters.typesize);
    const bool is_shown =
        !samples_.runs.empty() &&
        from_first_item(samples_.runs.front(), parameters.typesize).size() >= static_cast<std::size_t>(blocksize);
    if (blocksize <= usual_blocksize(parameters) || blocksize > chunksize || !is_shown) continue;
    if (best == 0) {
      longest = blocksize;
      const double usual = share_with(0, longest);
      least = share_with(blocksize, longest);
      if (least > kLongerBlockGain * usual) break;
      best = longer;
    } else if (share_with(blocksize, longest) < least * (2 - kLongerBlockGain)) {
      best = longer;
    }
  }
  return best;
}

}  // namespace

std::vector<EncodeParameters> rank_pipelines(codec::EncodeContext& context, const EncodeParameters& parameters,
                                             Filters filters, const DataSamples& samples, std::size_t most) {
  const std::vector<std::int32_t> typesizes = typesizes_to_try(parameters, samples);
  FirstRound round(context, parameters, samples.slices);
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
  const bool has_open_blocks = encode.blocksize == 0 && encode.clevel > 0;
  const bool has_open_pipeline = encode.typesize == 0 || (filters == Filters::open && !samples.slices.empty());
  std::vector<EncodeParameters> finalists{encode};
  if (has_open_pipeline) finalists = rank_pipelines(context, encode, filters, samples, kFinalists);
  const SecondRound round(context, chunksize, samples);
  const std::vector<Trial> trials = round.ranked(finalists);
  NewFrame frame;
  frame.encode = has_open_blocks ? round.with_best_blocks(trials) : trials.front().parameters;
  frame.chunksize = choose_chunksize(frame.encode.typesize, chunksize);
  return frame;
}

}  // namespace cframefs::frame
