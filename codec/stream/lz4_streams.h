// Decoder and encoders of lz4 and lz4hc, which write the same stream format (codecs.md section 1), by liblz4.
//
// The functions are those of rows of the codec table (codec_table.h).
// Thread safety: one thread per StateSlot. Errors: corruption; io (out of memory).
#pragma once

#include <cstddef>
#include <memory>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/stream/codec_states.h"

namespace cframefs::codec {

struct StreamCodec;

Result<void> decode_lz4(StateSlot& slot, const StreamCodec& codec, ByteView stream, ByteSpan out);
Result<std::shared_ptr<const Dictionary>> lz4_decoder_dictionary(ByteView bytes);

/// `level`: the acceleration, 1 is the slowest.
Result<std::size_t> encode_lz4(StateSlot& slot, int level, const Dictionary* dictionary, ByteView plain, ByteSpan out);
Result<std::shared_ptr<const Dictionary>> lz4_encoder_dictionary(int level, ByteView bytes);

Result<std::size_t> encode_lz4hc(StateSlot& slot, int level, const Dictionary* dictionary, ByteView plain,
                                 ByteSpan out);
Result<std::shared_ptr<const Dictionary>> lz4hc_encoder_dictionary(int level, ByteView bytes);

}  // namespace cframefs::codec
