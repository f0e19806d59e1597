#include "codec/stream/streams.h"

#include <algorithm>
#include <cstring>
#include <string>

#include <fmt/core.h>

#include "codec/stream/codec_table.h"

namespace cframefs::codec {
namespace {

constexpr std::size_t kLengthField = 4;
constexpr std::uint8_t kRunToken = 0x01;

using ExpansionLimit = decltype(CodecInfo::expansion_limit);

// A stream that would expand beyond the limit is corrupt, which is known before memory is touched for it. Returns
// nullptr if there is no limit.
ExpansionLimit expansion_limit(const StreamCodec& codec) {
  const CodecInfo* const known = stream_codec_info(codec.format, codec.compcode);
  return known != nullptr ? known->expansion_limit : nullptr;
}

Failure at_stream(std::uint32_t stream, const std::string& reason) {
  return corrupt(fmt::format("stream {} {}", stream, reason));
}

}  // namespace

Result<void> BlockStreams::parse(ByteView stored, std::uint32_t count, std::uint32_t plain, bool runs,
                                 const StreamCodec& codec) {
  count_ = count;
  length_ = plain / count;
  if (length_ == 0 || length_ * count != plain) {
    return corrupt(fmt::format("{} streams cannot share a block of {} bytes", count, plain));
  }
  const ExpansionLimit limit = expansion_limit(codec);
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (stored.size() - at < kLengthField) return at_stream(i, "is missing");
    const auto length = load_le<std::int32_t>(&stored[at]);
    at += kLengthField;
    if (length <= 0) {
      if (!runs || length < -255) return at_stream(i, fmt::format("has invalid length {}", length));
      if (length < 0) {
        if (at == stored.size()) return at_stream(i, "has no token byte");
        if (!(stored[at] & kRunToken)) return at_stream(i, fmt::format("has unknown token {}", stored[at]));
        ++at;
      }
      streams_[i] = {Stream::Kind::run, static_cast<std::uint8_t>(-length), nullptr, 0};
      continue;
    }
    const auto size = static_cast<std::uint32_t>(length);
    if (stored.size() - at < size) return at_stream(i, fmt::format("of {} bytes extends past its block", size));
    const Stream::Kind kind = size == length_ ? Stream::Kind::raw : Stream::Kind::coded;
    if (kind == Stream::Kind::coded && limit != nullptr && length_ > limit(size)) {
      return at_stream(i, fmt::format("of {} bytes cannot hold {}", size, length_));
    }
    streams_[i] = {kind, 0, &stored[at], size};
    at += size;
  }
  return {};
}

Result<void> BlockStreams::parse_vl(ByteView stored, std::uint32_t plain, const StreamCodec& codec) {
  if (stored.size() <= kLengthField) return corrupt("the block has no data");
  count_ = 1;
  length_ = plain;
  const auto size = static_cast<std::uint32_t>(stored.size() - kLengthField);
  const Stream::Kind kind = size == plain ? Stream::Kind::raw : Stream::Kind::coded;
  const ExpansionLimit limit = expansion_limit(codec);
  if (kind == Stream::Kind::coded && limit != nullptr && plain > limit(size)) {
    return corrupt(fmt::format("{} bytes cannot hold {}", size, plain));
  }
  streams_[0] = {kind, 0, &stored[kLengthField], size};
  return {};
}

bool BlockStreams::all_zeros() const {
  return std::all_of(streams_.begin(), streams_.begin() + count_,
                     [](const Stream& stream) { return stream.kind == Stream::Kind::run && stream.value == 0; });
}

std::vector<std::uint8_t> BlockStreams::run_values() const {
  std::vector<std::uint8_t> values;
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (streams_[i].kind != Stream::Kind::run) return {};
    values.push_back(streams_[i].value);
  }
  return values;
}

Result<void> BlockStreams::decode_coded(CodecStates& states, const StreamCodec& codec, std::uint32_t stream,
                                        ByteSpan place) const {
  Result<void> decoded = decode_stream(states, codec, {streams_[stream].payload, streams_[stream].size}, place);
  if (!decoded && count_ > 1) {
    decoded.error().reason = fmt::format("stream {}: {}", stream, decoded.error().reason);
  }
  return decoded;
}

Result<void> BlockStreams::decode_planes(CodecStates& states, const StreamCodec& codec, ByteSpan scratch,
                                         std::span<Plane> planes) const {
  for (std::uint32_t i = 0; i < count_; ++i) {
    const Stream& stream = streams_[i];
    const ByteSpan place = scratch.subspan(std::size_t{i} * length_, length_);
    switch (stream.kind) {
      case Stream::Kind::run:
        planes[i] = Plane::constant(stream.value);
        break;
      case Stream::Kind::raw:
        planes[i] = Plane(stream.payload);
        break;
      case Stream::Kind::coded:
        if (Result<void> decoded = decode_coded(states, codec, i, place); !decoded) return decoded;
        planes[i] = Plane(place.data());
        break;
    }
  }
  return {};
}

Result<void> BlockStreams::decode(CodecStates& states, const StreamCodec& codec, ByteSpan out) const {
  for (std::uint32_t i = 0; i < count_; ++i) {
    const Stream& stream = streams_[i];
    const ByteSpan place = out.subspan(std::size_t{i} * length_, length_);
    switch (stream.kind) {
      case Stream::Kind::run:
        std::memset(place.data(), stream.value, place.size());
        break;
      case Stream::Kind::raw:
        std::memcpy(place.data(), stream.payload, place.size());
        break;
      case Stream::Kind::coded:
        if (Result<void> decoded = decode_coded(states, codec, i, place); !decoded) return decoded;
        break;
    }
  }
  return {};
}

}  // namespace cframefs::codec
