// The flat view of an array: the items in C order, for any shape, chunk shape and block shape.
#include "frame/array/array_view.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "frame/numpy/npy_header.h"
#include "tests/support/array_builder.h"
#include "tests/support/reading.h"

namespace cframefs::frame {
namespace {

using test::ArrayChunk;
using test::ArraySpec;
using test::Bytes;

Result<std::shared_ptr<const FlatView>> view_of(Bytes frame, ArrayForm form, bool is_array = true) {
  auto container = test::open_frame(std::move(frame));
  if (!container) return codec::Failure(container.error());
  return make_view(std::move(*container), form, is_array);
}

std::shared_ptr<const FlatView> good_view(const test::FrameBuilder& frame, ArrayForm form) {
  const auto view = view_of(frame.build(), form);
  EXPECT_TRUE(view) << describe(view.error());
  return view ? *view : nullptr;
}

/// Generates shapes of 0 to 16 dimensions with few items, so that all items can be compared.
ArraySpec any_spec() {
  ArraySpec spec;
  const int ndim = *rc::gen::weightedElement<int>({{1, 0}, {4, 1}, {6, 2}, {6, 3}, {3, 4}, {2, 6}, {1, 16}});
  const int most = ndim <= 1 ? 60 : ndim == 2 ? 14 : ndim == 3 ? 7 : ndim == 4 ? 4 : ndim == 6 ? 3 : 2;
  // Of 16 dimensions, at most five have an extent above 1.
  int wide = 5;
  for (int d = 0; d < ndim; ++d) {
    const int limit = ndim < 16 || (wide > 0 && *rc::gen::inRange(0, 3) == 0) ? most : 1;
    if (limit > 1) --wide;
    spec.shape.push_back(*rc::gen::inRange(*rc::gen::inRange(0, 25) == 0 ? 0 : 1, limit + 1));
    // A chunk may be larger than the array.
    spec.chunkshape.push_back(*rc::gen::inRange(1, limit + 3));
    spec.blockshape.push_back(*rc::gen::inRange(1, spec.chunkshape.back() + 1));
    if (*rc::gen::inRange(0, 3) == 0 && spec.shape.back() > 0) {
      // A dimension that is neither cut nor padded: ArrayGeometry merges it with the dimension before.
      spec.chunkshape.back() = static_cast<std::int32_t>(spec.shape.back());
      spec.blockshape.back() = spec.chunkshape.back();
    }
  }
  spec.typesize = *rc::gen::element(1, 2, 3, 4, 8, 13, 300);
  if (*rc::gen::inRange(0, 4) != 0) spec.dtype = "|V" + std::to_string(spec.typesize);
  return spec;
}

/// An array with some chunks of zeros, and its frame.
struct AnyArray {
  ArraySpec spec;
  Bytes items;
  test::FrameBuilder frame;
};

AnyArray any_array() {
  AnyArray array;
  array.spec = any_spec();
  if (static_cast<std::uint64_t>(array.spec.chunk_bytes()) > (1U << 22)) RC_DISCARD("chunks too large for a test");
  array.items = test::varied_items(array.spec.nbytes(), *rc::gen::arbitrary<std::uint64_t>());
  const std::size_t zeros = *rc::gen::inRange<std::size_t>(0, array.items.size() + 1);
  if (*rc::gen::arbitrary<bool>()) std::fill_n(array.items.begin(), zeros, std::uint8_t{0});
  const std::vector<Bytes> chunks = test::array_chunks(array.spec, array.items);
  std::vector<ArrayChunk> kinds;
  for (const Bytes& chunk : chunks) {
    const bool zero = std::all_of(chunk.begin(), chunk.end(), [](std::uint8_t b) { return b == 0 || b == 0xcc; });
    kinds.push_back(zero ? *rc::gen::element(ArrayChunk::zeros, ArrayChunk::blocks)
                         : *rc::gen::element(ArrayChunk::blocks, ArrayChunk::plain));
  }
  // 0xcc is padding, but may also be a byte of an item.
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    if (kinds[c] == ArrayChunk::zeros && array.items.size() > zeros) kinds[c] = ArrayChunk::blocks;
  }
  array.frame = test::array_frame(array.spec, array.items,
                                  [&](std::int64_t chunk) { return kinds[static_cast<std::size_t>(chunk)]; });
  return array;
}

RC_GTEST_PROP(ArrayView, ItemsComeInCOrder, ()) {
  const AnyArray array = any_array();
  const auto view = view_of(array.frame.build(), ArrayForm::flat);
  if (!view) RC_FAIL(describe(view.error()));
  RC_ASSERT((*view)->size() == array.items.size());
  const auto all = test::read_range(**view, 0, array.items.size());
  if (!all) RC_FAIL(describe(all.error()));
  RC_ASSERT(*all == array.items);
  const std::uint64_t begin = *rc::gen::inRange<std::uint64_t>(0, array.items.size() + 1);
  const std::uint64_t length = *rc::gen::inRange<std::uint64_t>(0, array.items.size() - begin + 1);
  const auto part = test::read_range(**view, begin, length);
  RC_ASSERT(part.has_value());
  RC_ASSERT(std::equal(part->begin(), part->end(), array.items.begin() + static_cast<std::ptrdiff_t>(begin)));
}

RC_GTEST_PROP(ArrayView, TilesCopiedAsBoxesGiveTheSameBytes, ()) {
  const AnyArray array = any_array();
  const auto view = view_of(array.frame.build(), ArrayForm::flat);
  if (!view) RC_FAIL(describe(view.error()));
  const std::vector<Bytes> chunks = test::array_chunks(array.spec, array.items);
  const std::uint64_t begin = *rc::gen::inRange<std::uint64_t>(0, array.items.size() + 1);
  const std::uint64_t length = *rc::gen::inRange<std::uint64_t>(0, array.items.size() - begin + 1);
  Bytes out(length, 0xaa);
  Bytes cleared(length, 0xaa);
  std::uint64_t copied = 0;
  const ArrayGeometry& tiles = *(*view)->array();
  const auto done = tiles.for_each_part(begin, length, [&](const ArrayGeometry::Part& part) {
    clear_box(part.to, cleared.data() + part.out);
    std::int64_t last = -1;
    return tiles.for_each_tile(part, [&](const ArrayGeometry::Tile& tile) -> Result<void> {
      RC_ASSERT(std::int64_t{tile.block} > last);
      last = tile.block;
      const Bytes& chunk = chunks[static_cast<std::size_t>(part.chunk.value)];
      RC_ASSERT(tile.inner / tiles.block_bytes() == tile.block);
      RC_ASSERT(tile.inner % tiles.block_bytes() + tile.box.from_span() <= tiles.block_bytes());
      copy_box(tile.box, chunk.data() + tile.inner, out.data() + tile.out);
      copied += tile.box.volume();
      return {};
    });
  });
  RC_ASSERT(done.has_value());
  RC_ASSERT(copied == length);
  RC_ASSERT(std::equal(out.begin(), out.end(), array.items.begin() + static_cast<std::ptrdiff_t>(begin)));
  RC_ASSERT(cleared == Bytes(length, 0));
}

RC_GTEST_PROP(ArrayView, ItemBytesOfAllBlocksAreTheItems, ()) {
  const ArraySpec spec = any_spec();
  if (static_cast<std::uint64_t>(spec.chunk_bytes()) > (1U << 22)) RC_DISCARD("chunks too large for a test");
  const auto view = view_of(test::array_frame(spec, test::varied_items(spec.nbytes())).build(), ArrayForm::flat);
  if (!view) RC_FAIL(describe(view.error()));
  const ArrayGeometry& tiles = *(*view)->array();
  std::uint64_t bytes = 0;
  std::int64_t last = -1;
  const auto done = tiles.for_each_part(0, tiles.nbytes(), [&](const ArrayGeometry::Part& part) -> Result<void> {
    RC_ASSERT(part.chunk.value > last);
    last = part.chunk.value;
    const std::uint32_t blocks = tiles.chunk_bytes() / tiles.block_bytes();
    const std::uint32_t row = tiles.row_blocks();
    RC_ASSERT(blocks % row == 0);
    for (std::uint32_t block = 0; block < blocks; block += row)
      bytes += tiles.item_bytes(part.origin, block, row);
    return {};
  });
  RC_ASSERT(done.has_value());
  RC_ASSERT(bytes == tiles.nbytes());
}

TEST(ArrayView, TheNpyHeaderPrecedesTheItems) {
  const ArraySpec spec{{10, 7, 5}, {4, 3, 5}, {2, 2, 3}, 4, "<i4"};
  const Bytes items = test::varied_items(spec.nbytes());
  const auto view = good_view(test::array_frame(spec, items), ArrayForm::npy);
  Bytes expected = npy_header({"'<i4'", 4}, spec.shape);
  const std::size_t head = expected.size();
  expected.insert(expected.end(), items.begin(), items.end());
  ASSERT_EQ(view->size(), expected.size());
  const auto across = test::read_range(*view, head - 5, 20);
  ASSERT_TRUE(across);
  EXPECT_TRUE(std::equal(across->begin(), across->end(), expected.begin() + static_cast<std::ptrdiff_t>(head - 5)));
  EXPECT_EQ(*test::read_range(*view, 0, expected.size()), expected);
}

TEST(ArrayView, ChunkOrderIsThatOfTheFrame) {
  const ArraySpec spec{{10, 7}, {4, 3}, {2, 2}, 4, "<i4"};
  const Bytes items = test::varied_items(spec.nbytes());
  const auto view = good_view(test::array_frame(spec, items), ArrayForm::chunks);
  Bytes chunks;
  for (const Bytes& chunk : test::array_chunks(spec, items))
    chunks.insert(chunks.end(), chunk.begin(), chunk.end());
  EXPECT_EQ(*test::read_range(*view, 0, view->size()), chunks);
}

TEST(ArrayView, ADtypeOfAnotherSizeIsIgnored) {
  // C-Blosc2 writes '|u1' if the program sets no dtype.
  const ArraySpec spec{{6}, {4}, {2}, 4, "|u1"};
  const auto view = good_view(test::array_frame(spec, test::varied_items(spec.nbytes())), ArrayForm::npy);
  const Bytes expected = npy_header(opaque_type(4), spec.shape);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), view->head().begin(), view->head().end()));
}

TEST(ArrayView, AnArrayWithADamagedMetalayerIsRefused) {
  const ArraySpec spec{{10, 7}, {4, 3}, {2, 2}, 4, "<i4"};
  const test::FrameBuilder good = test::array_frame(spec, test::varied_items(spec.nbytes()));
  for (const bool is_array : {true, false}) {
    for (const std::size_t at : {0, 2, 3, 4, 11, 40}) {
      test::FrameBuilder frame = good;
      frame.metalayers[0].second[at] ^= 0x55;
      for (const ArrayForm form : {ArrayForm::npy, ArrayForm::flat}) {
        const auto view = view_of(frame.build(), form, is_array);
        ASSERT_FALSE(view) << at;
        EXPECT_EQ(view.error().kind, codec::ErrorKind::corruption) << at;
      }
      EXPECT_TRUE(view_of(frame.build(), ArrayForm::chunks, is_array));
    }
  }
}

TEST(ArrayView, AnArrayWithALostMetalayerIsRefused) {
  const ArraySpec spec{{10, 7}, {4, 3}, {2, 2}, 4, "<i4"};
  test::FrameBuilder frame = test::array_frame(spec, test::varied_items(spec.nbytes()));
  for (const char* name : {"b2nd", "caterva", "other"}) {
    frame.metalayers[0].first = name;
    Bytes bytes = frame.build();
    bytes[frame.header_length() - frame.metalayers[0].second.size() - 5] = 0xc5;  // the marker of the content
    const bool is_array = std::string_view(name) != "other";
    const auto view = view_of(bytes, ArrayForm::npy, false);
    EXPECT_EQ(view.has_value(), !is_array) << name;
    if (is_array && !view) {
      EXPECT_NE(view.error().reason.find(name), std::string::npos) << view.error().reason;
    }
    EXPECT_TRUE(view_of(bytes, ArrayForm::chunks, false)) << name;
  }
}

TEST(ArrayView, AFrameWithoutArrayMetalayerIsRefusedIfNamedLikeAnArray) {
  const Bytes plain = test::varied_items(1000);
  const Bytes frame = test::plain_frame(plain, 300).build();
  EXPECT_FALSE(view_of(frame, ArrayForm::npy, true));
  const auto view = view_of(frame, ArrayForm::npy, false);
  ASSERT_TRUE(view);
  EXPECT_EQ(*test::read_range(**view, 0, 1000), plain);
}

TEST(ArrayView, SlabsOfZerosAreHoles) {
  // Four slabs of three chunks. Slabs 2 and 3 are zeros, and so is one chunk of the first slab.
  const ArraySpec spec{{8, 6}, {2, 2}, {1, 2}, 2, "<i2"};
  Bytes items = test::varied_items(spec.nbytes());
  const std::size_t slab = 2 * 6 * 2;
  std::fill_n(items.begin() + static_cast<std::ptrdiff_t>(slab), 2 * slab, std::uint8_t{0});
  for (const std::size_t at : {0U, 1U, 2U, 3U, 12U, 13U, 14U, 15U})
    items[at] = 0;
  const auto frame = test::array_frame(spec, items, [](std::int64_t chunk) {
    return chunk == 0 || (chunk >= 3 && chunk < 9) ? ArrayChunk::zeros : ArrayChunk::blocks;
  });
  const auto view = good_view(frame, ArrayForm::npy);
  const std::uint64_t head = view->head().size();
  const auto seek = [&](std::uint64_t from, bool hole) { return view->seek(FlatOffset{from}, hole)->value; };
  EXPECT_EQ(seek(0, false), 0U);
  EXPECT_EQ(seek(0, true), head + slab);
  EXPECT_EQ(seek(head, false), head);
  EXPECT_EQ(seek(head + slab + 5, true), head + slab + 5);
  EXPECT_EQ(seek(head + slab + 5, false), head + 3 * slab);
  EXPECT_EQ(seek(head + 3 * slab, true), view->size());
  EXPECT_EQ(*test::read_range(*view, head, items.size()), items);
}

TEST(ArrayView, AllZerosAreOneHoleAfterTheHeader) {
  const ArraySpec spec{{8, 6}, {3, 2}, {1, 2}, 2, "<i2"};
  const auto frame = test::array_frame(spec, Bytes(spec.nbytes()), [](std::int64_t) { return ArrayChunk::zeros; });
  const auto view = good_view(frame, ArrayForm::npy);
  EXPECT_EQ(view->seek(FlatOffset{0}, true)->value, view->head().size());
  EXPECT_EQ(view->seek(FlatOffset{view->head().size()}, false)->value, view->size());
}

TEST(ArrayView, EmptyArraysAndThoseOfOneItemHaveTheirSizes) {
  const ArraySpec empty{{0, 5}, {1, 5}, {1, 5}, 4, "<i4"};
  EXPECT_EQ(good_view(test::array_frame(empty, {}), ArrayForm::flat)->size(), 0U);
  EXPECT_EQ(good_view(test::array_frame(empty, {}), ArrayForm::npy)->size(), 128U);
  const ArraySpec nothing{{0}, {0}, {0}, 4, "<i4"};
  EXPECT_EQ(good_view(test::array_frame(nothing, {}), ArrayForm::flat)->size(), 0U);
  const ArraySpec scalar{{}, {}, {}, 8, "<f8"};
  const Bytes item = test::varied_items(8);
  const auto view = good_view(test::array_frame(scalar, item), ArrayForm::flat);
  EXPECT_EQ(*test::read_range(*view, 0, 8), item);
}

}  // namespace
}  // namespace cframefs::frame
