// What holds of every container, whatever its bytes: metalayers, holes, every chunk, and the flat file over them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "frame/array/flat_view.h"
#include "frame/container/chunk_reader.h"
#include "frame/open/container_info.h"
#include "tests/fuzz/fuzz_check.h"

namespace cframefs::test {

using codec::ByteSpan;
using frame::ChunkNumber;
using frame::FlatOffset;

// Plain bytes decoded per input; a few bytes may honestly stand for terabytes.
inline constexpr std::uint64_t kBudget = 1 << 20;
inline constexpr std::int64_t kChunks = 64;

inline void check_metalayers(const frame::Container& container) {
  static_cast<void>(frame::info_json(container));
  static_cast<void>(container.metalayers());
  for (const std::string& name : container.vlmetalayer_names())
    static_cast<void>(container.vlmetalayer(name));
}

inline void check_holes(const frame::Container& container) {
  const std::int64_t count = container.chunk_count();
  for (const bool hole : {true, false}) {
    const auto next = container.next_chunk(ChunkNumber{0}, hole);
    if (!next) continue;
    FUZZ_CHECK(next->value >= 0 && next->value <= count);
    if (next->value == count) continue;
    const auto location = container.locate_chunk(*next);
    if (!location || container.parameters().variable_chunks) continue;
    const bool zeros =
        location->special == codec::SpecialValue::zeros || location->special == codec::SpecialValue::uninitialised;
    FUZZ_CHECK(zeros == hole);
  }
}

// The blocks of one chunk one by one must be those of the whole.
inline void check_blocks(codec::DecodeContext& context, const frame::ChunkReader& reader,
                         const std::vector<std::uint8_t>& plain) {
  const codec::ChunkDecoder& decoder = reader.decoder();
  if (decoder.block_count() > 64) return;
  codec::ByteView reference;
  if (decoder.needs_reference()) reference = codec::ByteView(plain).first(decoder.block_range(0).size());
  for (std::uint32_t block = 0; block < decoder.block_count(); ++block) {
    const codec::ByteRange range = decoder.block_range(block);
    std::vector<std::uint8_t> bytes(range.size());
    const std::vector<ByteSpan> outs = {bytes};
    FUZZ_CHECK(reader.decode(context, block, outs, reference));
    FUZZ_CHECK(std::equal(bytes.begin(), bytes.end(), plain.begin() + static_cast<std::ptrdiff_t>(range.begin)));
  }
}

inline void check_chunks(const frame::Container& container) {
  codec::DecodeContext context;
  std::uint64_t budget = kBudget;
  const std::int64_t count = std::min(container.chunk_count(), kChunks);
  for (std::int64_t chunk = 0; chunk < count; ++chunk) {
    const auto reader = frame::ChunkReader::open(container, ChunkNumber{chunk});
    if (!reader) {
      FUZZ_CHECK(!reader.error().reason.empty());
      continue;
    }
    const std::uint32_t nbytes = (*reader)->decoder().nbytes();
    if (nbytes > budget) continue;
    budget -= nbytes;
    std::vector<std::uint8_t> plain(nbytes);
    if (frame::decode_whole(context, **reader, plain)) check_blocks(context, **reader, plain);
  }
}

inline void check_view(std::shared_ptr<const frame::Container> container) {
  const frame::FlatView view(std::move(container));
  const std::uint64_t size = view.size();
  for (const std::uint64_t begin : {std::uint64_t{0}, size / 3, size - std::min<std::uint64_t>(size, 100)}) {
    std::vector<frame::Piece> pieces;
    const std::uint64_t length = std::min<std::uint64_t>(size - begin, 100);
    if (!view.chunk_order()->map(FlatOffset{begin}, length, pieces)) continue;
    std::uint64_t out = 0;
    for (const frame::Piece& piece : pieces) {
      FUZZ_CHECK(piece.out == out && piece.length > 0);
      out += piece.length;
    }
    FUZZ_CHECK(out == length);
    for (const bool hole : {true, false}) {
      const auto found = view.seek(FlatOffset{begin}, hole);
      if (found) FUZZ_CHECK(found->value >= begin && found->value <= size);
    }
  }
}
inline void check_container(const codec::Result<std::shared_ptr<const frame::Container>>& opened) {
  if (!opened) {
    FUZZ_CHECK(!opened.error().reason.empty());
    return;
  }
  check_metalayers(**opened);
  check_holes(**opened);
  check_chunks(**opened);
  check_view(*opened);
}

}  // namespace cframefs::test
