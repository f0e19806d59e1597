#include "tools/stream/array_input.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "frame/array/strided_copy.h"

namespace cframefs::tools {

using codec::Failure;
using codec::Result;

namespace {

Result<void> read_all(Input& input, codec::ByteSpan into) {
  const auto got = input.read(into);
  if (!got) return Failure(got.error());
  if (*got < into.size()) return codec::corrupt("the array ends before its last item");
  return {};
}

/// Returns the C-order bytes of one line of chunks: of the last dimension that chunks divide and those after it.
std::uint64_t stretch_of(const frame::B2ndMeta& layer, std::uint64_t itemsize) {
  std::uint64_t bytes = itemsize;
  std::size_t d = layer.shape.size();
  while (d > 0) {
    --d;
    bytes *= static_cast<std::uint64_t>(layer.shape[d]);
    if (layer.chunkshape[d] != layer.shape[d]) break;
  }
  return bytes;
}

}  // namespace

Result<std::unique_ptr<ArrayInput>> ArrayInput::create(std::unique_ptr<Input> items, const frame::B2ndMeta& layer,
                                                       std::uint64_t itemsize) {
  frame::FrameParameters parameters;
  parameters.typesize = static_cast<std::int32_t>(itemsize);
  parameters.chunksize = static_cast<std::int32_t>(frame::chunk_items(layer) * itemsize);
  parameters.nbytes = static_cast<std::uint64_t>(parameters.chunksize);
  for (std::size_t d = 0; d < layer.shape.size(); ++d) {
    const auto chunk = static_cast<std::uint64_t>(layer.chunkshape[d]);
    const std::uint64_t chunks = (static_cast<std::uint64_t>(layer.shape[d]) + chunk - 1) / chunk;
    if (__builtin_mul_overflow(parameters.nbytes, chunks, &parameters.nbytes)) {
      return codec::unsupported("the array and its padding exceed 2^64 bytes");
    }
  }
  auto geometry = frame::ArrayGeometry::make(layer, parameters);
  if (!geometry) return Failure(geometry.error());
  const std::uint64_t stretch = stretch_of(layer, itemsize);
  auto input = std::unique_ptr<ArrayInput>(new ArrayInput(std::move(items), std::move(*geometry), stretch));
  std::uint64_t piece = itemsize;
  for (const std::int32_t extent : layer.chunkshape)
    piece *= static_cast<std::uint64_t>(extent);
  input->plain_.resize(static_cast<std::size_t>(piece));
  input->chunk_.resize(static_cast<std::size_t>(parameters.chunksize));
  input->taken_ = input->chunk_.size();
  return input;
}

/// Builds the next chunk. Its items are contiguous in the C-order bytes.
Result<void> ArrayInput::make_chunk() {
  const std::uint64_t left = stretch_ - at_ % stretch_;
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(plain_.size(), left));
  const codec::ByteSpan plain = codec::ByteSpan(plain_).first(size);
  if (auto done = read_all(*items_, plain); !done) return done;
  std::fill(chunk_.begin(), chunk_.end(), std::uint8_t{0});
  auto done = geometry_.for_each_part(at_, size, [&](const frame::ArrayGeometry::Part& part) {
    return geometry_.for_each_tile(part, [&](const frame::ArrayGeometry::Tile& tile) -> Result<void> {
      frame::for_each_run(tile.box, [&](std::uint64_t inner, std::uint64_t out) {
        std::memcpy(&chunk_[tile.inner + inner], &plain[tile.out + out], tile.box.run);
        return true;
      });
      return {};
    });
  });
  at_ += size;
  taken_ = 0;
  return done;
}

Result<std::size_t> ArrayInput::read(codec::ByteSpan into) {
  std::size_t filled = 0;
  while (filled < into.size()) {
    if (taken_ == chunk_.size()) {
      if (at_ == geometry_.nbytes()) break;
      if (auto made = make_chunk(); !made) return Failure(made.error());
    }
    const std::size_t size = std::min(into.size() - filled, chunk_.size() - taken_);
    std::copy_n(chunk_.begin() + static_cast<std::ptrdiff_t>(taken_), size,
                into.begin() + static_cast<std::ptrdiff_t>(filled));
    taken_ += size;
    filled += size;
  }
  return filled;
}

}  // namespace cframefs::tools
