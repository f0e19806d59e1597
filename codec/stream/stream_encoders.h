// The codecs, forward: plain bytes in, one compressed stream out, or none where it would not be shorter.
//
// Format: codecs.md. stream_decoders.h decodes. All encoders work in one shot into the caller's memory.
//
// Thread safety: an EncodeDictionary is immutable and may be shared; DecoderState serve one thread at a time.
// Errors: io (out of memory).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/stream/encode_context.h"

namespace cframefs::codec {

/// The dictionary of a chunk that is being made (chunk.md section 3), digested for its codec.
class EncodeDictionary {
 public:
  /// Copies `bytes`. REQUIRES: compcode is kLz4, kLz4hc or kZstd.
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

/// A dictionary for streams like `samples`, which lie one behind the other, `sizes[i]` bytes each; empty where they are
/// too few to make one of. At most `most` bytes.
std::vector<std::uint8_t> train_dictionary(std::uint8_t compcode, ByteView samples,
                                           const std::vector<std::size_t>& sizes, std::size_t most);

/// Encodes `plain` into `out` and returns the stream's length; 0 where it does not fit.
Result<std::size_t> encode_stream(EncodeContext::DecoderState& states, const StreamEncoder& encoder, ByteView plain,
                                  ByteSpan out);

}  // namespace cframefs::codec
