#include "tests/support/reading.h"

#include <algorithm>
#include <array>
#include <utility>

#include "frame/cframe/cframe.h"
#include "frame/container/chunk_reader.h"
#include "frame/io/file_ops.h"
#include "frame/open/open.h"

namespace cframefs::test {

using codec::ByteSpan;
using codec::ByteView;
using codec::Failure;
using codec::Result;

Result<std::shared_ptr<const frame::Container>> open_frame(const std::string& path, std::uint64_t offset) {
  return frame::open_path(frame::system_files(), path, std::make_shared<frame::IndexCache>(),
                          frame::FileOffset{offset});
}

Result<std::shared_ptr<const frame::Container>> open_frame(std::vector<std::uint8_t> bytes) {
  return frame::open_container(frame::memory_source(std::move(bytes)));
}

Result<std::vector<std::uint8_t>> read_chunk(const frame::Container& container, std::int64_t chunk) {
  const auto reader = frame::ChunkReader::open(container, frame::ChunkNumber{chunk});
  if (!reader) return Failure(reader.error());
  std::vector<std::uint8_t> plain((*reader)->decoder().nbytes());
  codec::DecodeContext context;
  if (auto done = frame::decode_whole(context, **reader, plain); !done) return Failure(done.error());
  return plain;
}

namespace {

/// Reads pieces, and keeps the chunk and the blocks of the last one: with arrays, the next may lie in them, too.
class PieceReader {
 public:
  explicit PieceReader(const frame::Container& container) : container_(container) {}

  Result<void> read(const frame::Piece& piece, ByteSpan out) {
    if (!reader_ || chunk_.value != piece.chunk.value) {
      auto reader = frame::ChunkReader::open(container_, piece.chunk);
      if (!reader) return Failure(reader.error());
      reader_ = std::move(*reader);
      chunk_ = piece.chunk;
      plain_.clear();
    }
    const codec::ChunkDecoder& decoder = reader_->decoder();
    const std::uint32_t first = decoder.block_at(piece.inner);
    const std::uint32_t last = decoder.block_at(piece.inner + piece.length - 1);
    if (plain_.empty() || first != first_ || last != last_) {
      if (auto done = decode(first, last); !done) return done;
    }
    const std::uint64_t begin = decoder.block_range(first).begin;
    std::copy_n(plain_.begin() + static_cast<std::ptrdiff_t>(piece.inner - begin), piece.length, out.begin());
    return {};
  }

 private:
  Result<void> decode(std::uint32_t first, std::uint32_t last) {
    const codec::ChunkDecoder& decoder = reader_->decoder();
    std::vector<std::uint8_t> reference;
    if (decoder.needs_reference() && first > 0) {
      reference.resize(decoder.block_range(0).size());
      const std::array<ByteSpan, 1> outs = {ByteSpan(reference)};
      if (auto done = reader_->decode(context_, 0, outs, {}); !done) return done;
    }
    const std::uint64_t begin = decoder.block_range(first).begin;
    std::vector<std::uint8_t> plain(decoder.block_range(last).end - begin);
    std::vector<ByteSpan> outs;
    for (std::uint32_t block = first; block <= last; ++block) {
      const codec::ByteRange range = decoder.block_range(block);
      outs.push_back(ByteSpan(plain).subspan(range.begin - begin, range.size()));
    }
    if (auto done = reader_->decode(context_, first, outs, reference); !done) return done;
    plain_ = std::move(plain);
    first_ = first;
    last_ = last;
    return {};
  }

  const frame::Container& container_;
  codec::DecodeContext context_;
  std::shared_ptr<const frame::ChunkReader> reader_;
  frame::ChunkNumber chunk_{-1};
  std::vector<std::uint8_t> plain_;  // of blocks first_ to last_
  std::uint32_t first_ = 0;
  std::uint32_t last_ = 0;
};

}  // namespace

namespace {

Result<void> read_chunk_order(const frame::FlatView& view, std::uint64_t offset, ByteSpan plain) {
  std::vector<frame::Piece> pieces;
  if (auto done = view.chunk_order()->map(frame::FlatOffset{offset}, plain.size(), pieces); !done) return done;
  PieceReader reader(view.container());
  for (const frame::Piece& piece : pieces) {
    if (auto done = reader.read(piece, plain.subspan(piece.out, piece.length)); !done) return done;
  }
  return {};
}

/// `at`: offset in the items of the array.
Result<void> read_array(const frame::FlatView& view, std::uint64_t at, ByteSpan plain) {
  const frame::ArrayGeometry& array = *view.array();
  PieceReader reader(view.container());
  std::vector<std::uint8_t> block(array.block_bytes());
  return array.for_each_part(at, plain.size(), [&](const frame::ArrayGeometry::Part& part) {
    return array.for_each_tile(part, [&](const frame::ArrayGeometry::Tile& tile) -> Result<void> {
      const frame::Piece span{part.chunk, tile.inner, static_cast<std::uint32_t>(tile.box.from_span()), 0};
      const ByteSpan bytes = ByteSpan(block).first(span.length);
      if (auto done = reader.read(span, bytes); !done) return done;
      frame::copy_box(tile.box, bytes.data(), plain.data() + tile.out);
      return {};
    });
  });
}

}  // namespace

Result<std::vector<std::uint8_t>> read_range(const frame::FlatView& view, std::uint64_t offset, std::uint64_t length) {
  if (offset > view.size() || length > view.size() - offset) return codec::invalid("range past the end of the view");
  std::vector<std::uint8_t> plain(length);
  const ByteView head = view.head();
  const std::uint64_t before = std::min(length, head.size() - std::min<std::uint64_t>(offset, head.size()));
  std::copy_n(head.begin() + static_cast<std::ptrdiff_t>(before == 0 ? 0 : offset), before, plain.begin());
  const ByteSpan rest = ByteSpan(plain).subspan(before);
  if (rest.empty()) return plain;
  auto done = view.array() != nullptr ? read_array(view, offset + before - head.size(), rest)
                                      : read_chunk_order(view, offset + before, rest);
  if (!done) return Failure(done.error());
  return plain;
}

Result<void> read_all(const frame::FlatView& view, const std::function<void(ByteView)>& take) {
  for (std::int64_t chunk = 0; chunk < view.container().chunk_count(); ++chunk) {
    const auto plain = read_chunk(view.container(), chunk);
    if (!plain) return Failure(plain.error());
    take(*plain);
  }
  return {};
}

}  // namespace cframefs::test
