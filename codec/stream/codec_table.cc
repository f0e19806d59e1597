#include "codec/stream/codec_table.h"

#include <fmt/core.h>

#include "codec/format/encode_parameters.h"
#include "codec/stream/blosclz.h"
#include "codec/stream/blosclz_encoder.h"
#include "codec/stream/lz4_streams.h"
#include "codec/stream/ndlz.h"
#include "codec/stream/snappy_streams.h"
#include "codec/stream/zfp_streams.h"
#include "codec/stream/zlib_streams.h"
#include "codec/stream/zstd_streams.h"

namespace cframefs::codec {
namespace {

// A byte that extends a match adds at most 255 bytes; any other byte adds fewer.
std::uint64_t limit_of_matches(std::uint64_t stored) {
  return 255 * stored;
}
// Two codes of one bit each give 258 bytes: 4 * 258 per byte.
std::uint64_t limit_of_deflate(std::uint64_t stored) {
  return 1032 * stored;
}
// Four stored bytes can give a block of 128 KiB of one repeated byte.
std::uint64_t limit_of_zstd(std::uint64_t stored) {
  return 131072 * (stored / 4 + 1);
}

// The levels of codecs.md section 4.
constexpr Levels kSameLevels{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
constexpr Levels kLz4Accelerations{0, 9, 8, 7, 6, 5, 4, 3, 2, 1};
// Levels 5 and 6 of libdeflate compress worse than those of zlib-ng, which the reference library uses; other levels do
// not.
constexpr Levels kDeflateLevels{0, 1, 2, 3, 4, 6, 7, 7, 8, 9};
constexpr Levels kZstdLevels{0, 1, 3, 5, 7, 9, 11, 13, 15, 22};

constexpr std::array kCodecs = {
    CodecInfo{.id = 0,
              .format = CodecFormat::blosclz,
              .name = "blosclz",
              .decode = decode_blosclz_stream,
              .expansion_limit = limit_of_matches,
              .encode = encode_blosclz_stream,
              .levels = kSameLevels,
              .split = SplitRule::always},
    CodecInfo{.id = kLz4,
              .format = CodecFormat::lz4,
              .name = "lz4",
              .decode = decode_lz4,
              .expansion_limit = limit_of_matches,
              .decoder_dictionary = lz4_decoder_dictionary,
              .encode = encode_lz4,
              .encoder_dictionary = lz4_encoder_dictionary,
              .levels = kLz4Accelerations,
              .split = SplitRule::always,
              .tuned_levels = {5}},
    CodecInfo{.id = 2,
              .format = CodecFormat::lz4,
              .name = "lz4hc",
              .decode = decode_lz4,
              .expansion_limit = limit_of_matches,
              .decoder_dictionary = lz4_decoder_dictionary,
              .encode = encode_lz4hc,
              .encoder_dictionary = lz4hc_encoder_dictionary,
              .levels = kSameLevels,
              .long_blocks = true,
              .tuned_levels = {9}},
    CodecInfo{.id = 3,
              .format = CodecFormat::snappy,
              .name = "snappy",
              .decode = decode_snappy,
              .expansion_limit = limit_of_matches},
    CodecInfo{.id = 4,
              .format = CodecFormat::zlib,
              .name = "zlib",
              .decode = decode_zlib,
              .expansion_limit = limit_of_deflate,
              .encode = encode_zlib,
              .levels = kDeflateLevels,
              .long_blocks = true},
    CodecInfo{.id = kZstd,
              .format = CodecFormat::zstd,
              .name = "zstd",
              .decode = decode_zstd,
              .expansion_limit = limit_of_zstd,
              .decoder_dictionary = zstd_decoder_dictionary,
              .encode = encode_zstd,
              .encoder_dictionary = zstd_encoder_dictionary,
              .train_dictionary = train_zstd_dictionary,
              .levels = kZstdLevels,
              .split = SplitRule::to_level_5,
              .long_blocks = true,
              .tuned_levels = {1, 5}},
    CodecInfo{.id = 32, .format = CodecFormat::registered, .name = "ndlz", .decode = decode_ndlz_stream},
    CodecInfo{.id = 33, .format = CodecFormat::registered, .name = "zfp_acc", .decode = kZfpDecoder<ZfpMode::accuracy>},
    CodecInfo{
        .id = 34, .format = CodecFormat::registered, .name = "zfp_prec", .decode = kZfpDecoder<ZfpMode::precision>},
    CodecInfo{.id = 35, .format = CodecFormat::registered, .name = "zfp_rate", .decode = kZfpDecoder<ZfpMode::rate>},
    CodecInfo{.id = 36, .format = CodecFormat::registered, .name = "openhtj2k"},
    CodecInfo{.id = 37, .format = CodecFormat::registered, .name = "grok"},
    CodecInfo{.id = 38, .format = CodecFormat::registered, .name = "openzl"},
    CodecInfo{.id = 39, .format = CodecFormat::registered, .name = "j2k"},
    CodecInfo{.id = 40, .format = CodecFormat::registered, .name = "htj2k"},
};

// Lookups happen once per stream, so they are indexed.
constexpr std::size_t kIds = 256;
constexpr std::size_t kFormats = 8;

constexpr std::array<const CodecInfo*, kIds> kById = [] {
  std::array<const CodecInfo*, kIds> rows{};
  for (const CodecInfo& codec : kCodecs)
    rows[codec.id] = &codec;
  return rows;
}();

constexpr std::array<const CodecInfo*, kFormats> kFirstOfFormat = [] {
  std::array<const CodecInfo*, kFormats> rows{};
  for (const CodecInfo& codec : kCodecs) {
    const CodecInfo*& first = rows[static_cast<std::size_t>(codec.format)];
    // The format does not tell which codec it is.
    if (codec.format != CodecFormat::registered && first == nullptr) first = &codec;
  }
  return rows;
}();

}  // namespace

std::span<const CodecInfo> codec_table() {
  return kCodecs;
}

const CodecInfo* codec_info(std::uint8_t compcode) {
  return kById[compcode];
}

const CodecInfo* stream_codec_info(CodecFormat format, std::uint8_t compcode) {
  const CodecInfo* const codec = kById[compcode];
  return codec != nullptr && codec->format == format ? codec : kFirstOfFormat[static_cast<std::size_t>(format)];
}

std::string codec_name(std::uint8_t compcode) {
  const CodecInfo* const codec = codec_info(compcode);
  return codec != nullptr ? std::string(codec->name) : fmt::format("codec {}", compcode);
}

Result<std::uint8_t> find_codec(std::string_view name) {
  for (const CodecInfo& codec : kCodecs) {
    if (codec.encode != nullptr && codec.name == name) return codec.id;
  }
  return invalid("must be one of " + writable_codec_names());
}

Result<const CodecInfo*> check_writable(std::uint8_t compcode) {
  const CodecInfo* const codec = codec_info(compcode);
  if (codec != nullptr && codec->encode != nullptr) return codec;
  return unsupported(fmt::format("codec {} ({}) cannot be written; codecs that can: {}", compcode,
                                 std::string(codec ? codec->name : "unknown"), writable_codec_names()));
}

std::string writable_codec_names(std::string_view last) {
  std::vector<std::string_view> names;
  for (const CodecInfo& codec : kCodecs) {
    if (codec.encode != nullptr) names.push_back(codec.name);
  }
  std::string text(names.front());
  for (std::size_t i = 1; i < names.size(); ++i) {
    text += i + 1 < names.size() ? ", " : last;
    text += names[i];
  }
  return text;
}

CodecStates::CodecStates() : slots_(kCodecs.size()) {}

StateSlot& CodecStates::slot(const CodecInfo& codec) {
  return slots_[static_cast<std::size_t>(&codec - kCodecs.data())];
}

void CodecStates::trim(std::size_t most) {
  for (StateSlot& slot : slots_) {
    if (slot && slot->variable_bytes() > most) slot.reset();
  }
}

}  // namespace cframefs::codec
