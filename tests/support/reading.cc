#include "tests/support/reading.h"

#include <algorithm>
#include <array>

#include "frame/cframe.h"
#include "frame/chunk_reader.h"
#include "frame/open.h"

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
  return frame::open_cframe(frame::memory_source(std::move(bytes)), std::make_shared<frame::IndexCache>());
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

Result<void> read_piece(codec::DecodeContext& context, const frame::Container& container, const frame::Piece& piece,
                        ByteSpan out) {
  const auto reader = frame::ChunkReader::open(container, piece.chunk);
  if (!reader) return Failure(reader.error());
  const codec::ChunkDecoder& decoder = (*reader)->decoder();
  std::vector<std::uint8_t> reference;
  std::vector<std::uint8_t> plain;
  const std::uint32_t first = decoder.block_at(piece.inner);
  const std::uint32_t last = decoder.block_at(piece.inner + piece.length - 1);
  if (decoder.needs_reference() && first > 0) {
    reference.resize(decoder.block_range(0).size());
    const std::array<ByteSpan, 1> outs = {ByteSpan(reference)};
    if (auto done = (*reader)->decode(context, 0, outs, {}); !done) return done;
  }
  const std::uint64_t begin = decoder.block_range(first).begin;
  plain.resize(decoder.block_range(last).end - begin);
  std::vector<ByteSpan> outs;
  for (std::uint32_t block = first; block <= last; ++block) {
    const codec::ByteRange range = decoder.block_range(block);
    outs.push_back(ByteSpan(plain).subspan(range.begin - begin, range.size()));
  }
  if (auto done = (*reader)->decode(context, first, outs, reference); !done) return done;
  std::copy_n(plain.begin() + static_cast<std::ptrdiff_t>(piece.inner - begin), piece.length, out.begin());
  return {};
}

}  // namespace

Result<std::vector<std::uint8_t>> read_range(const frame::FlatView& view, std::uint64_t offset, std::uint64_t length) {
  std::vector<frame::Piece> pieces;
  if (auto done = view.map(frame::FlatOffset{offset}, length, pieces); !done) return Failure(done.error());
  std::vector<std::uint8_t> plain(length);
  const ByteView head = view.head();
  for (std::uint64_t i = offset; i < std::min<std::uint64_t>(offset + length, head.size()); ++i)
    plain[i - offset] = head[i];
  codec::DecodeContext context;
  for (const frame::Piece& piece : pieces) {
    const ByteSpan out = ByteSpan(plain).subspan(piece.out, piece.length);
    if (auto done = read_piece(context, view.container(), piece, out); !done) return Failure(done.error());
  }
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
