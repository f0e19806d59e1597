// Encoders of all codecs: uncompressed bytes in, one compressed stream out, or none if it does not fit.
//
// Format: codecs.md. stream_decoders.h decodes. All encoders write in one call to the caller's memory.
//
// Thread safety: an EncodeDictionary is immutable and may be shared; an EncoderState serves one thread at a time.
// Errors: io (out of memory).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/stream/encode_context.h"

namespace cframefs::codec {

/// The dictionary of a chunk that is being encoded (chunk.md section 3), preprocessed for its codec.
class EncodeDictionary {
 public:
  /// Makes a dictionary of a copy of `bytes`. REQUIRES: compcode is kLz4, kLz4hc or kZstd.
  static Result<EncodeDictionary> create(std::uint8_t compcode, int clevel, ByteView bytes);
  EncodeDictionary(EncodeDictionary&&) noexcept;
  EncodeDictionary& operator=(EncodeDictionary&&) noexcept;
  ~EncodeDictionary();

  ByteView bytes() const { return bytes_; }

  struct Digest;
  const Digest& digest() const { return *digest_; }

 private:
  EncodeDictionary();
  std::vector<std::uint8_t> bytes_;
  std::unique_ptr<Digest> digest_;
};

struct StreamEncoder {
  std::uint8_t compcode = 0;
  int clevel = 5;  // 1..9
  const EncodeDictionary* dictionary = nullptr;
};

/// Returns a dictionary of at most `most` bytes for streams like `samples`, which are concatenated and have `sizes[i]`
/// bytes each. Empty if the samples are too few.
std::vector<std::uint8_t> train_dictionary(std::uint8_t compcode, ByteView samples,
                                           const std::vector<std::size_t>& sizes, std::size_t most);

/// Encodes `plain` into `out`. Returns the stream's length; 0 if the stream does not fit or does not shrink.
Result<std::size_t> encode_stream(EncodeContext::EncoderState& states, const StreamEncoder& encoder, ByteView plain,
                                  ByteSpan out);

}  // namespace cframefs::codec
