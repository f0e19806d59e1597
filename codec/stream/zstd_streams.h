// Decoder and encoder of zstd streams, each one zstd frame (codecs.md section 2), by libzstd.
//
// The functions are those of rows of the codec table (codec_table.h).
// Thread safety: one thread per StateSlot. Errors: corruption; io (out of memory).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/stream/codec_states.h"

namespace cframefs::codec {

struct StreamCodec;

Result<void> decode_zstd(StateSlot& slot, const StreamCodec& codec, ByteView stream, ByteSpan out);
Result<std::shared_ptr<const Dictionary>> zstd_decoder_dictionary(ByteView bytes);

/// `level`: of libzstd, without a dictionary; a dictionary has the level that it was made for.
Result<std::size_t> encode_zstd(StateSlot& slot, int level, const Dictionary* dictionary, ByteView plain, ByteSpan out);
Result<std::shared_ptr<const Dictionary>> zstd_encoder_dictionary(int level, ByteView bytes);

/// Trains a dictionary of at most `most` bytes on `samples`, which are concatenated and have `sizes[i]` bytes each.
/// Returns an empty one if the samples are too few.
std::vector<std::uint8_t> train_zstd_dictionary(ByteView samples, const std::vector<std::size_t>& sizes,
                                                std::size_t most);

}  // namespace cframefs::codec
