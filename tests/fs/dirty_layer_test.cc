// What programs have written, as one layer: put over another, cut into chunks of another size.
#include "fs/dirty_layer.h"

#include <atomic>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

class DirtyLayerTest : public ::testing::Test {
 protected:
  DirtyLayer::Make make() {
    return [this](std::uint64_t size) { return std::make_shared<DirtyChunk>(pool_, size, bytes_); };
  }
  /// What a layer over nothing says.
  static std::vector<std::uint8_t> plain(const DirtyLayer& layer) {
    std::vector<std::uint8_t> bytes(layer.size());
    for (const auto& [number, chunk] : layer.chunks()) {
      if (!chunk) continue;
      const auto from = chunk->bytes().first(layer.length_of(number));
      std::copy(from.begin(), from.end(), bytes.begin() + number * static_cast<std::ptrdiff_t>(layer.chunksize()));
    }
    for (const auto& [number, patches] : layer.patches()) {
      const std::uint64_t begin = static_cast<std::uint64_t>(number) * layer.chunksize();
      patches->lay_over(codec::ByteSpan(bytes).subspan(begin, layer.length_of(number)));
    }
    return bytes;
  }

  BufferPool pool_;
  std::atomic<std::uint64_t> bytes_{0};
};

/// The first commit of a new file may find that other chunks suit its data, while a program writes into a hole.
TEST_F(DirtyLayerTest, WhatIsWrittenIntoAHoleIsThereInChunksOfAnotherSize) {
  DirtyLayer committing(100, 0);
  committing.resize(1000);
  DirtyLayer::Chunk first = make()(100);
  std::iota(first->bytes().begin(), first->bytes().end(), std::uint8_t{1});
  committing.put(0, first);
  DirtyLayer dirty(100, 1000);
  const std::vector<std::uint8_t> written(30, 7);
  dirty.patch(0, 50, written, bytes_);
  dirty.patch(5, 60, written, bytes_);
  std::vector<std::uint8_t> wanted(1000);
  std::iota(wanted.begin(), wanted.begin() + 100, std::uint8_t{1});
  std::copy(written.begin(), written.end(), wanted.begin() + 50);
  std::copy(written.begin(), written.end(), wanted.begin() + 560);
  dirty.merge_onto(committing, make());
  EXPECT_EQ(plain(committing), wanted);
  for (const std::uint64_t chunksize : {70U, 100U, 1000U, 7U})
    EXPECT_EQ(plain(committing.rechunked(chunksize, make())), wanted) << chunksize;
}

}  // namespace
}  // namespace cframefs::fs
