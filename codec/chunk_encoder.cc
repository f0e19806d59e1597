#include "codec/chunk_encoder.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "codec/filter/filter_encoder.h"
#include "codec/stream/block_sizes.h"
#include "codec/stream/codec_table.h"
#include "codec/stream/stream_encoders.h"

namespace cframefs::codec {
namespace {

constexpr std::uint8_t kVersion = 5;
constexpr std::uint8_t kFormatVersion = 1;
constexpr std::uint8_t kExtendedMark = 0x05;
constexpr std::uint8_t kMemcpyed = 0x02;
constexpr std::uint8_t kDontSplit = 0x10;
constexpr std::uint8_t kDictionary = 0x01;
constexpr std::uint8_t kRunToken = 0x01;

constexpr std::size_t kMinCompressed = 32;  // shorter chunks are stored uncompressed
constexpr std::size_t kMinDictionary = 256;
constexpr std::size_t kDictionaryPiece = 1024;   // bytes per training sample; every fourth piece is one
constexpr std::size_t kPlainPerDictionary = 64;  // plain bytes per dictionary byte; more bytes cost more than they save

using Slot = EncodeContext::Slot;

// Returns true if `bytes` repeats its first `width` bytes.
bool repeats(ByteView bytes, std::size_t width) {
  return bytes.size() <= width || std::memcmp(bytes.data(), bytes.data() + width, bytes.size() - width) == 0;
}

bool is_quiet_nan(std::int32_t typesize, ByteView item) {
  if (typesize == 4) return load_le<std::uint32_t>(item.data()) == 0x7fc00000;
  return typesize == 8 && load_le<std::uint64_t>(item.data()) == 0x7ff8000000000000;
}

SpecialValue special_value(std::int32_t typesize, ByteView plain) {
  const auto width = static_cast<std::size_t>(typesize);
  if (plain.empty() || plain.size() % width != 0) return SpecialValue::none;
  if (plain[0] == 0 && repeats(plain, 1)) return SpecialValue::zeros;
  if (is_quiet_nan(typesize, plain) && repeats(plain, width)) return SpecialValue::nan;
  return SpecialValue::none;
}

// The header fields that differ from chunk to chunk.
struct HeaderFields {
  std::uint8_t flags = 0;  // without the mark of a 32-byte header
  std::int32_t nbytes = 0;
  std::int32_t blocksize = 1;
  std::int32_t cbytes = 0;
  bool dictionary = false;
};

void write_header(const EncodeParameters& parameters, const FilterEncoder& pipeline, const HeaderFields& fields,
                  ByteSpan out) {
  std::fill_n(out.begin(), kExtendedHeaderLength, std::uint8_t{0});
  out[0x00] = kVersion;
  out[0x01] = kFormatVersion;
  out[0x02] = fields.flags | kExtendedMark;
  out[0x03] = static_cast<std::uint8_t>(header_typesize(parameters));
  store_le(&out[0x04], fields.nbytes);
  store_le(&out[0x08], fields.blocksize);
  store_le(&out[0x0c], fields.cbytes);
  std::copy(pipeline.filters().begin(), pipeline.filters().end(), out.begin() + 0x10);
  out[0x16] = parameters.compcode;
  out[0x17] = parameters.compcode_meta;
  std::copy(pipeline.metas().begin(), pipeline.metas().end(), out.begin() + 0x18);
  out[0x1f] = fields.dictionary ? kDictionary : 0;
}

// Builds a chunk: filters the blocks, splits them into streams and encodes these one after another.
class ChunkBuilder {
 public:
  ChunkBuilder(EncodeContext& context, const EncodeParameters& parameters, ByteView plain,
               std::span<const ByteView> kept = {});

  /// Builds the chunk in `out`, which has longest_chunk() bytes, and returns its length; 0 if it would not be shorter
  /// than a memcpyed chunk.
  Result<std::size_t> build(ByteSpan out);

  const FilterEncoder& pipeline() const { return pipeline_; }
  std::int32_t blocksize() const { return blocksize_; }

 private:
  ByteView plain_block(std::size_t block) const;
  ByteView filtered_block(std::size_t block) const;
  Result<void> make_dictionary();
  std::vector<std::uint8_t> train() const;
  Result<bool> add_block(std::size_t block);
  bool keep_block(ByteView stored);
  Result<bool> add_stream(ByteView stream);
  bool fits(std::size_t more) const { return more <= out_.size() - at_; }
  void put_length(std::int32_t length);
  void put_raw(ByteView stream);
  void finish();

  EncodeContext& context_;
  const EncodeParameters& parameters_;
  const CodecInfo& codec_;
  const ByteView plain_;
  const std::span<const ByteView> kept_;  // stored bytes of blocks; without them all blocks are encoded
  const std::int32_t blocksize_;
  const FilterEncoder pipeline_;
  const std::size_t blocks_;
  const bool split_;
  std::shared_ptr<const Dictionary> dictionary_;
  StreamEncoder encoder_;
  ByteSpan first_, second_;                            // for the filters
  ByteSpan out_;                                       // longest_chunk() bytes
  std::size_t at_ = 0;                                 // bytes of out_ in use
  std::vector<std::pair<std::size_t, ByteView>> raw_;  // offset in out_ and bytes of streams that finish() copies
};

bool uses_dictionary(const EncodeParameters& parameters) {
  return parameters.use_dict && codec_info(parameters.compcode)->encoder_dictionary != nullptr;
}

std::int32_t length_of(ByteView plain) {
  return static_cast<std::int32_t>(plain.size());
}

// Returns the greatest length that is shorter than a memcpyed chunk.
std::size_t longest_chunk(ByteView plain) {
  return plain.size() + kExtendedHeaderLength - 1;
}

// REQUIRES: the codec is writable, and plain is not empty.
ChunkBuilder::ChunkBuilder(EncodeContext& context, const EncodeParameters& parameters, ByteView plain,
                           std::span<const ByteView> kept)
    : context_(context),
      parameters_(parameters),
      codec_(*codec_info(parameters.compcode)),
      plain_(plain),
      kept_(kept),
      blocksize_(choose_blocksize(parameters, length_of(plain))),
      pipeline_(parameters, length_of(plain), blocksize_),
      blocks_((plain.size() + static_cast<std::size_t>(blocksize_) - 1) / static_cast<std::size_t>(blocksize_)),
      split_(choose_split(parameters, blocksize_)) {
  encoder_.compcode = parameters.compcode;
  encoder_.clevel = parameters.clevel;
}

ByteView ChunkBuilder::plain_block(std::size_t block) const {
  const std::size_t begin = block * static_cast<std::size_t>(blocksize_);
  return plain_.subspan(begin, std::min(static_cast<std::size_t>(blocksize_), plain_.size() - begin));
}

ByteView ChunkBuilder::filtered_block(std::size_t block) const {
  return pipeline_.apply(plain_block(block), block == 0 ? ByteView() : plain_block(0), first_, second_);
}

Result<std::size_t> ChunkBuilder::build(ByteSpan out) {
  const std::size_t starts = kExtendedHeaderLength + 4 * blocks_;
  if (starts > out.size()) return 0;
  const auto block_length = static_cast<std::size_t>(blocksize_);
  if (pipeline_.buffers() > 0) first_ = context_.scratch(Slot::filtered, block_length);
  if (pipeline_.buffers() > 1) second_ = context_.scratch(Slot::other, block_length);
  out_ = out;
  at_ = starts;
  if (uses_dictionary(parameters_)) {
    if (Result<void> made = make_dictionary(); !made) return Failure(made.error());
  }
  for (std::size_t block = 0; block < blocks_; ++block) {
    const Result<bool> added = add_block(block);
    if (!added) return Failure(added.error());
    if (!*added) return 0;
  }
  finish();
  return at_;
}

// Makes a dictionary from pieces of all filtered blocks, or from their beginning if the codec trains none (chunk.md
// section 3). Returns an empty vector if the chunk is too short for one.
std::vector<std::uint8_t> ChunkBuilder::train() const {
  const std::size_t most = std::min<std::size_t>(kMaxDictionaryBytes, plain_.size() / kPlainPerDictionary);
  if (most < kMinDictionary) return {};
  const bool pieces = codec_.train_dictionary != nullptr;
  const ByteSpan samples = context_.scratch(Slot::samples, plain_.size());
  std::vector<std::size_t> sizes;
  std::size_t taken = 0;
  for (std::size_t block = 0; block < blocks_ && (pieces || taken < most); ++block) {
    const ByteView filtered = filtered_block(block);
    const std::size_t piece = pieces ? std::min(kDictionaryPiece, filtered.size()) : filtered.size();
    for (std::size_t at = 0; at < filtered.size(); at += 4 * piece) {
      const std::size_t length = std::min(piece, filtered.size() - at);
      std::copy_n(filtered.data() + at, length, samples.data() + taken);
      taken += length;
      sizes.push_back(length);
    }
  }
  if (pieces) return codec_.train_dictionary(samples.first(taken), sizes, most);
  const ByteView prefix = samples.first(std::min(most, taken));
  return {prefix.begin(), prefix.end()};
}

// Stores a dictionary after the block starts, if one can be made.
Result<void> ChunkBuilder::make_dictionary() {
  const std::vector<std::uint8_t> bytes = train();
  if (bytes.empty() || !fits(4 + bytes.size())) return {};
  auto made = codec_.encoder_dictionary(codec_.levels[static_cast<std::size_t>(parameters_.clevel)], bytes);
  if (!made) return Failure(made.error());
  dictionary_ = *std::move(made);
  encoder_.dictionary = dictionary_.get();
  put_length(static_cast<std::int32_t>(bytes.size()));
  std::copy(bytes.begin(), bytes.end(), out_.begin() + static_cast<std::ptrdiff_t>(at_));
  at_ += bytes.size();
  return {};
}

void ChunkBuilder::put_length(std::int32_t length) {
  store_le(&out_[at_], length);
  at_ += 4;
}

// Returns false if the chunk becomes too long; so does add_stream().
Result<bool> ChunkBuilder::add_block(std::size_t block) {
  store_le(&out_[kExtendedHeaderLength + 4 * block], static_cast<std::int32_t>(at_));
  if (!kept_.empty() && !kept_[block].empty()) return keep_block(kept_[block]);
  const ByteView filtered = filtered_block(block);
  const bool whole = filtered.size() == static_cast<std::size_t>(blocksize_);
  const std::size_t count = split_ && whole ? static_cast<std::size_t>(parameters_.typesize) : 1;
  const std::size_t length = filtered.size() / count;
  for (std::size_t stream = 0; stream < count; ++stream) {
    Result<bool> added = add_stream(filtered.subspan(stream * length, length));
    if (!added || !*added) return added;
  }
  return true;
}

bool ChunkBuilder::keep_block(ByteView stored) {
  if (!fits(stored.size())) return false;
  std::copy(stored.begin(), stored.end(), out_.begin() + static_cast<std::ptrdiff_t>(at_));
  at_ += stored.size();
  return true;
}

Result<bool> ChunkBuilder::add_stream(ByteView stream) {
  if (!fits(5)) return false;
  if (repeats(stream, 1)) {
    put_length(-std::int32_t{stream[0]});
    if (stream[0] != 0) out_[at_++] = kRunToken;
    return true;
  }
  // Readers take a stream of exactly the plain length for uncompressed bytes, so the output must be shorter.
  const std::size_t room = std::min(stream.size() - 1, out_.size() - at_ - 4);
  const Result<std::size_t> encoded = encode_stream(context_.states(), encoder_, stream, out_.subspan(at_ + 4, room));
  if (!encoded) return Failure(encoded.error());
  std::size_t length = *encoded;
  if (length == 0) {
    length = stream.size();
    if (!fits(4 + length)) return false;
    put_raw(stream);
  }
  put_length(static_cast<std::int32_t>(length));
  at_ += length;
  return true;
}

// Stores a stream uncompressed. Without filters it points into the plain bytes, and finish() copies it only once the
// chunk is known to be short enough.
void ChunkBuilder::put_raw(ByteView stream) {
  if (pipeline_.buffers() == 0) {
    raw_.emplace_back(at_ + 4, stream);
  } else {
    std::copy(stream.begin(), stream.end(), out_.begin() + static_cast<std::ptrdiff_t>(at_ + 4));
  }
}

void ChunkBuilder::finish() {
  for (const auto& [at, stream] : raw_)
    std::copy(stream.begin(), stream.end(), out_.begin() + static_cast<std::ptrdiff_t>(at));
  HeaderFields fields;
  fields.flags = static_cast<std::uint8_t>(static_cast<unsigned>(codec_.format) << 5);
  if (!split_) fields.flags |= kDontSplit;
  fields.nbytes = length_of(plain_);
  fields.blocksize = blocksize_;
  fields.cbytes = static_cast<std::int32_t>(at_);
  fields.dictionary = dictionary_ != nullptr;
  write_header(parameters_, pipeline_, fields, out_);
}

// Makes a memcpyed chunk: a header, then the plain bytes.
void put_memcpyed(const EncodeParameters& parameters, ByteView plain, UninitializedBytes& bytes) {
  HeaderFields fields;
  fields.flags = kMemcpyed;
  fields.nbytes = length_of(plain);
  if (!plain.empty()) fields.blocksize = choose_blocksize(parameters, fields.nbytes);
  fields.cbytes = fields.nbytes + static_cast<std::int32_t>(kExtendedHeaderLength);
  bytes.resize(kExtendedHeaderLength + plain.size());
  write_header(parameters, FilterEncoder(parameters, fields.nbytes, fields.blocksize), fields, bytes);
  std::copy(plain.begin(), plain.end(), bytes.begin() + kExtendedHeaderLength);
}

Result<void> check_chunk(const EncodeParameters& parameters, ByteView plain) {
  if (Result<void> checked = check_encodable(parameters); !checked) return checked;
  if (plain.size() > static_cast<std::size_t>(kMaxChunkBytes)) {
    return invalid(fmt::format("chunk of {} bytes, at most {} are allowed", plain.size(), kMaxChunkBytes));
  }
  return {};
}

// Sets nbytes and special of `chunk`. Returns true if the bytes must be encoded, false if `chunk` is special and
// complete.
bool begin_chunk(const EncodeParameters& parameters, ByteView plain, EncodedChunk& chunk) {
  chunk.nbytes = length_of(plain);
  chunk.special = special_value(parameters.typesize, plain);
  return chunk.special == SpecialValue::none;
}

bool is_worth_trying(const EncodeParameters& parameters, ByteView plain) {
  return parameters.clevel > 0 && plain.size() >= kMinCompressed;
}

// Encodes into scratch memory and copies, so that the result has no spare capacity: a commit holds many chunks. `bytes`
// stays empty if the chunk would not shrink.
Result<void> build_in_scratch(EncodeContext& context, const EncodeParameters& parameters, ByteView plain,
                              std::span<const ByteView> kept, UninitializedBytes& bytes) {
  const ByteSpan out = context.scratch(Slot::chunk, longest_chunk(plain)).first(longest_chunk(plain));
  const Result<std::size_t> length = ChunkBuilder(context, parameters, plain, kept).build(out);
  if (!length) return Failure(length.error());
  bytes.assign(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(*length));
  return {};
}

}  // namespace

bool can_keep_blocks(const EncodeParameters& parameters, const ChunkHeader& earlier, std::int32_t nbytes) {
  if (!check_encodable(parameters) || parameters.clevel == 0 || nbytes <= 0 || uses_dictionary(parameters))
    return false;
  if (earlier.version != kVersion || !earlier.extended() || earlier.special != SpecialValue::none || earlier.memcpyed ||
      earlier.dictionary || earlier.vl_blocks || earlier.instrumented)
    return false;
  const std::int32_t blocksize = choose_blocksize(parameters, nbytes);
  const FilterEncoder pipeline(parameters, nbytes, blocksize);
  const auto is_delta = [](std::uint8_t filter) { return filter == static_cast<std::uint8_t>(FilterId::delta); };
  return earlier.format == codec_info(parameters.compcode)->format && earlier.compcode == parameters.compcode &&
         earlier.compcode_meta == parameters.compcode_meta && earlier.typesize == header_typesize(parameters) &&
         earlier.blocksize == blocksize && earlier.dont_split != choose_split(parameters, blocksize) &&
         earlier.filters == pipeline.filters() && earlier.filters_meta == pipeline.metas() &&
         std::none_of(earlier.filters.begin(), earlier.filters.end(), is_delta);
}

Result<EncodedChunk> encode_with_kept_blocks(EncodeContext& context, const EncodeParameters& parameters, ByteView plain,
                                             std::span<const ByteView> kept) {
  if (Result<void> checked = check_chunk(parameters, plain); !checked) return Failure(checked.error());
  EncodedChunk chunk;
  chunk.nbytes = length_of(plain);
  if (Result<void> built = build_in_scratch(context, parameters, plain, kept, chunk.bytes); !built)
    return Failure(built.error());
  return chunk;
}

Result<void> check_encodable(const EncodeParameters& parameters) {
  if (const auto codec = check_writable(parameters.compcode); !codec) return Failure(codec.error());
  if (parameters.clevel < 0 || parameters.clevel > kMaxLevel) {
    return invalid(fmt::format("clevel {} is not 0 to 9", parameters.clevel));
  }
  if (parameters.typesize < 1) return invalid(fmt::format("typesize {} is less than 1", parameters.typesize));
  if (parameters.blocksize < 0 || parameters.blocksize > kMaxBlockBytes) {
    return invalid(fmt::format("blocksize {} is not 0 to {}", parameters.blocksize, kMaxBlockBytes));
  }
  if (parameters.split_mode > 4) return invalid(fmt::format("split mode {} is not 0 to 4", parameters.split_mode));
  return FilterEncoder::check(parameters);
}

Result<void> encode_into(EncodeContext& context, const EncodeParameters& parameters, ByteView plain,
                         EncodedChunk& chunk) {
  if (Result<void> checked = check_chunk(parameters, plain); !checked) return checked;
  std::size_t built = 0;
  if (begin_chunk(parameters, plain, chunk) && is_worth_trying(parameters, plain)) {
    chunk.bytes.resize(longest_chunk(plain));
    const Result<std::size_t> length = ChunkBuilder(context, parameters, plain).build(chunk.bytes);
    if (!length) return Failure(length.error());
    built = *length;
  }
  chunk.bytes.resize(built);
  if (chunk.special == SpecialValue::none && built == 0) put_memcpyed(parameters, plain, chunk.bytes);
  return {};
}

Result<EncodedChunk> encode_chunk(EncodeContext& context, const EncodeParameters& parameters, ByteView plain) {
  if (Result<void> checked = check_chunk(parameters, plain); !checked) return Failure(checked.error());
  EncodedChunk chunk;
  if (!begin_chunk(parameters, plain, chunk)) return chunk;
  if (is_worth_trying(parameters, plain)) {
    if (Result<void> built = build_in_scratch(context, parameters, plain, {}, chunk.bytes); !built)
      return Failure(built.error());
  }
  if (chunk.bytes.empty()) put_memcpyed(parameters, plain, chunk.bytes);
  return chunk;
}

}  // namespace cframefs::codec
