#include "tests/support/frame_model.h"

#include <algorithm>

#include "frame/write/frame_metalayers.h"
#include "tests/support/frame_builder.h"
#include "tests/support/reading.h"

namespace cframefs::test {

using codec::ByteView;
using codec::Result;

codec::EncodedChunk encoded(ByteView plain) {
  codec::EncodedChunk chunk;
  chunk.nbytes = static_cast<std::int32_t>(plain.size());
  if (std::all_of(plain.begin(), plain.end(), [](std::uint8_t byte) { return byte == 0; })) {
    chunk.special = codec::SpecialValue::zeros;
  } else {
    const Bytes stored = plain_chunk(plain);
    chunk.bytes.assign(stored.begin(), stored.end());
  }
  return chunk;
}

std::vector<std::uint8_t> pattern(std::size_t size, unsigned seed) {
  std::vector<std::uint8_t> bytes(size);
  std::uint32_t state = seed * 2654435761U + 1;
  for (std::uint8_t& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return bytes;
}

Result<void> FrameModel::store(frame::FrameWriter& writer, std::size_t chunk) {
  const auto size = static_cast<std::size_t>(chunksize);
  const std::size_t begin = chunk * size;
  const auto piece = ByteView(plain).subspan(begin, std::min(size, plain.size() - begin));
  return writer.store(frame::ChunkNumber{static_cast<std::int64_t>(chunk)}, encoded(piece));
}

Result<void> FrameModel::write(frame::FrameWriter& writer, std::size_t at, ByteView bytes) {
  if (bytes.empty()) return {};
  plain.resize(std::max(plain.size(), at + bytes.size()));
  std::copy(bytes.begin(), bytes.end(), plain.begin() + static_cast<std::ptrdiff_t>(at));
  const auto size = static_cast<std::size_t>(chunksize);
  for (std::size_t chunk = at / size; chunk <= (at + bytes.size() - 1) / size; ++chunk) {
    if (auto stored = store(writer, chunk); !stored) return stored;
  }
  return {};
}

Result<void> FrameModel::resize(frame::FrameWriter& writer, std::size_t new_size) {
  const std::size_t before = plain.size();
  plain.resize(new_size);
  if (auto done = writer.resize(new_size); !done) return done;
  // The last chunk of the shorter of the two changes its length, unless it is whole.
  const std::size_t shorter = std::min(before, new_size);
  const auto size = static_cast<std::size_t>(chunksize);
  if (shorter == 0 || shorter % size == 0) return {};
  return store(writer, (shorter - 1) / size);
}

void FrameModel::zero(frame::FrameWriter& writer, std::size_t begin, std::size_t end) {
  const auto count = static_cast<std::size_t>(writer.pending().chunk_count());
  end = std::min(end, count);
  begin = std::min(begin, end);
  const auto size = static_cast<std::size_t>(chunksize);
  const auto at = [&](std::size_t chunk) {
    return plain.begin() + static_cast<std::ptrdiff_t>(std::min(chunk * size, plain.size()));
  };
  std::fill(at(begin), at(end), std::uint8_t{0});
  writer.store_zeros(frame::ChunkNumber{static_cast<std::int64_t>(begin)},
                     frame::ChunkNumber{static_cast<std::int64_t>(end)});
}

Result<void> FrameModel::set_vlmetalayer(frame::FrameWriter& writer, const std::string& name, ByteView content) {
  auto done = frame::FrameMetalayers(writer).set_variable(name, content);
  if (done) vlmetalayers[name] = {content.begin(), content.end()};
  return done;
}

Result<void> FrameModel::remove_vlmetalayer(frame::FrameWriter& writer, const std::string& name) {
  vlmetalayers.erase(name);
  return frame::FrameMetalayers(writer).remove_variable(name);
}

Result<void> FrameModel::set_metalayer(frame::FrameWriter& writer, const std::string& name, ByteView content) {
  metalayers[name] = {content.begin(), content.end()};
  return frame::FrameMetalayers(writer).set_fixed(name, content);
}

Result<FrameModel> read_model(const frame::Container& container) {
  FrameModel model;
  model.chunksize = container.parameters().chunksize;
  for (std::int64_t chunk = 0; chunk < container.chunk_count(); ++chunk) {
    const auto plain = read_chunk(container, chunk);
    if (!plain) return codec::Failure(plain.error());
    model.plain.insert(model.plain.end(), plain->begin(), plain->end());
  }
  if (container.metalayer_damage()) return codec::Failure(*container.metalayer_damage());
  const auto layers = container.metalayers();
  if (!layers) return codec::Failure(layers.error());
  for (const frame::Metalayer& layer : *layers)
    model.metalayers[layer.name] = layer.content;
  if (container.vlmetalayer_damage()) return codec::Failure(*container.vlmetalayer_damage());
  for (const std::string& name : container.vlmetalayer_names()) {
    auto content = container.vlmetalayer(name);
    if (!content) return codec::Failure(content.error());
    model.vlmetalayers[name] = std::move(*content);
  }
  return model;
}

}  // namespace cframefs::test
