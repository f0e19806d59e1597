// The table of codecs: one row per codec has all that decoder, encoder, options and reports know about it.
//
// No other code lists codecs or branches on their ids. A row's functions are called once per stream.
//
// Thread safety: constants and pure functions. Format: codecs.md sections 1 and 4 to 6.
// Errors: unsupported (check_writable), invalid (find_codec; the reason says what was expected, to follow the
// name of the option).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/format/chunk_header.h"
#include "codec/stream/codec_states.h"

namespace cframefs::codec {

struct StreamCodec;

/// Whether the automatic split modes divide the shuffled blocks of a codec into streams (codecs.md section 6).
enum class SplitRule : std::uint8_t { never, always, to_level_5 };

inline constexpr int kMaxLevel = 9;
using Levels = std::array<int, kMaxLevel + 1>;

struct CodecInfo {
  std::uint8_t id = 0;                        // compressor code
  CodecFormat format = CodecFormat::blosclz;  // of its streams; rows of equal format have the same decoder
  std::string_view name;

  // Reading. Without `decode` this build knows the codec by name only.
  Result<void> (*decode)(StateSlot&, const StreamCodec&, ByteView stream, ByteSpan out) = nullptr;
  // The greatest uncompressed length of a stream of `stored` bytes; null: there is no bound.
  std::uint64_t (*expansion_limit)(std::uint64_t stored) = nullptr;
  // Preprocesses a copy of `bytes`; null: the codec has no dictionaries.
  Result<std::shared_ptr<const Dictionary>> (*decoder_dictionary)(ByteView bytes) = nullptr;

  // Writing. Without `encode` the codec is read-only. `level` is one of `levels`. Returns the stream's length; 0 if the
  // stream does not fit into `out` or does not shrink.
  Result<std::size_t> (*encode)(StateSlot&, int level, const Dictionary*, ByteView plain, ByteSpan out) = nullptr;
  // Preprocesses a copy of `bytes`; null: the codec has no dictionaries.
  Result<std::shared_ptr<const Dictionary>> (*encoder_dictionary)(int level, ByteView bytes) = nullptr;
  // Makes a dictionary of at most `most` bytes from `samples`, which are concatenated and have `sizes[i]` bytes each;
  // empty if the samples are too few. Null: the first bytes of a chunk are its dictionary.
  std::vector<std::uint8_t> (*train_dictionary)(ByteView samples, const std::vector<std::size_t>& sizes,
                                                std::size_t most) = nullptr;
  Levels levels{};  // the codec's own level for each clevel; that of 0 has no meaning, as such chunks are stored
  SplitRule split = SplitRule::never;
  bool long_blocks = false;           // its ratio improves with longer blocks (codecs.md section 5)
  std::array<int, 2> tuned_levels{};  // clevels that a tuner tries, as the codec decodes fast; 0: none
};

std::span<const CodecInfo> codec_table();

/// Returns the row of a compressor code, or nullptr for an unknown one.
const CodecInfo* codec_info(std::uint8_t compcode);

/// Returns the row of a chunk's codec, or nullptr for an unknown one. `compcode`: selects among the registered codecs
/// and among those that share a format; else ignored.
const CodecInfo* stream_codec_info(CodecFormat format, std::uint8_t compcode);

/// Returns the name of a compressor code: "blosclz", "lz4", "zfp_acc", or "codec 170" for an unknown one.
std::string codec_name(std::uint8_t compcode);

/// Returns the compressor code of a codec that the encoder supports.
Result<std::uint8_t> find_codec(std::string_view name);

/// Returns the row of `compcode`. Error unsupported, naming the codec and those that can be written: the encoder does
/// not support it.
Result<const CodecInfo*> check_writable(std::uint8_t compcode);

/// Returns the names of the codecs that the encoder supports, separated by commas, `last` before the last of them.
std::string writable_codec_names(std::string_view last = ", ");

}  // namespace cframefs::codec
