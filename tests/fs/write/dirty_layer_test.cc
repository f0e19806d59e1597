// DirtyLayer: the bytes of a layer over nothing and over another one, and its conversion to another chunk size.
#include "fs/write/dirty_layer.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

class DirtyLayerTest : public ::testing::Test {
 protected:
  DirtyLayer::Make make() {
    return [this](std::uint64_t size) { return std::make_shared<DirtyChunk>(pool_, size, bytes_); };
  }
  /// Returns the bytes of a layer over nothing.
  static std::vector<std::uint8_t> plain(const DirtyLayer& layer) {
    std::vector<std::uint8_t> bytes(layer.size());
    for (const auto& [number, chunk] : layer.chunks().whole()) {
      const auto from = chunk->first(layer.length_of(number));
      std::copy(from.begin(), from.end(), bytes.begin() + number * static_cast<std::ptrdiff_t>(layer.chunksize()));
    }
    for (const auto& [number, patches] : layer.chunks().patches()) {
      const std::uint64_t begin = static_cast<std::uint64_t>(number) * layer.chunksize();
      patches->apply_to(codec::ByteSpan(bytes).subspan(begin, layer.length_of(number)));
    }
    return bytes;
  }

  BufferPool pool_;
  std::atomic<std::uint64_t> bytes_{0};
};

/// The first commit of a new file may choose another chunk size while a program writes into a hole.
TEST_F(DirtyLayerTest, BytesWrittenIntoAHoleSurviveAnotherChunkSize) {
  DirtyLayer committing(100, 0);
  committing.resize(1000);
  DirtyLayer::Chunk first = make()(100);
  first->hold(100, 100);
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
  dirty.merge_into(committing, make());
  EXPECT_EQ(plain(committing), wanted);
  for (const std::uint64_t chunksize : {70U, 100U, 1000U, 7U})
    EXPECT_EQ(plain(rechunked(committing, chunksize, make())), wanted) << chunksize;
}

/// Returns the bytes of a layer over those of another one.
std::vector<std::uint8_t> over(const DirtyLayer& layer, const std::vector<std::uint8_t>& below) {
  std::vector<std::uint8_t> bytes(layer.size());
  std::copy_n(below.begin(), layer.kept(), bytes.begin());
  for (std::uint64_t at = 0; at < layer.size(); at += layer.chunksize()) {
    const auto number = static_cast<std::int64_t>(at / layer.chunksize());
    const auto part = codec::ByteSpan(bytes).subspan(at, layer.length_of(number));
    const DirtyLayer::Chunk* chunk = layer.chunks().find(number);
    const ChunkPatches* patches = layer.chunks().find_patches(number);
    EXPECT_TRUE(chunk == nullptr || patches == nullptr);
    if (chunk != nullptr && *chunk) {
      const std::vector<std::uint8_t> first = (*chunk)->first(part.size());
      std::copy(first.begin(), first.end(), part.begin());
    } else if (chunk != nullptr) {
      std::fill(part.begin(), part.end(), std::uint8_t{0});
    }
    if (patches != nullptr) patches->apply_to(part);
  }
  return bytes;
}

TEST_F(DirtyLayerTest, RandomChangesOfLayersEqualThoseOfBytes) {
  constexpr std::uint64_t kChunk = 10;
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](std::uint64_t bound) { return random() % bound; };
    const auto change = [&](DirtyLayer& layer, std::vector<std::uint8_t>& bytes) {
      const auto number = static_cast<std::int64_t>(below(layer.size() / kChunk + 1));
      const std::uint64_t begin = static_cast<std::uint64_t>(number) * kChunk;
      const std::uint64_t length = layer.length_of(number);
      const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto value = static_cast<std::uint8_t>(1 + below(255));
      switch (below(4)) {
        case 0: {
          const DirtyLayer::Chunk chunk = make()(kChunk);
          chunk->hold(0, length);
          std::fill_n(chunk->bytes().begin(), length, value);
          if (length > 0) layer.put(number, chunk);
          std::fill_n(at, length, value);
          break;
        }
        case 1: {
          const auto end = number + static_cast<std::int64_t>(below(6));
          layer.put_zeros(number, end);
          const std::uint64_t until = std::min(static_cast<std::uint64_t>(end) * kChunk, layer.size());
          if (begin < until) std::fill_n(at, until - begin, std::uint8_t{0});
          break;
        }
        case 2:
          if (length == 0) break;
          if (layer.chunks().find(number) == nullptr) {
            const std::vector<std::uint8_t> piece(1 + below(length), value);
            layer.patch(number, length - piece.size(), piece, bytes_);
            std::fill_n(at + static_cast<std::ptrdiff_t>(length - piece.size()), piece.size(), value);
          }
          break;
        default: {
          const std::uint64_t size = below(120);
          layer.resize(size);
          bytes.resize(size);
          break;
        }
      }
    };
    std::vector<std::uint8_t> stored(below(100));
    std::iota(stored.begin(), stored.end(), std::uint8_t{1});
    std::vector<std::uint8_t> lower_bytes = stored;
    DirtyLayer lower(kChunk, stored.size());
    for (int i = 0; i < 12; ++i)
      change(lower, lower_bytes);
    ASSERT_EQ(over(lower, stored), lower_bytes) << "seed " << seed;
    std::vector<std::uint8_t> upper_bytes = lower_bytes;
    DirtyLayer upper(kChunk, lower.size());
    for (int i = 0; i < 12; ++i)
      change(upper, upper_bytes);
    ASSERT_EQ(over(upper, lower_bytes), upper_bytes) << "seed " << seed;
    upper.merge_into(lower, make());
    ASSERT_EQ(over(lower, stored), upper_bytes) << "seed " << seed;
    // Runs of zeros exist only where they hide something below.
    for (const auto& [begin, end] : lower.chunks().zeros().runs())
      ASSERT_LT(static_cast<std::uint64_t>(end - 1) * kChunk, lower.kept()) << "seed " << seed;
    if (!lower.chunks().patches().empty()) continue;
    const std::uint64_t cut = lower.kept() + below(lower.size() - lower.kept() + 1);
    const DirtyLayer above = lower.split_off(cut);
    const std::vector<std::uint8_t> kept = over(lower, stored);
    ASSERT_EQ(kept,
              std::vector<std::uint8_t>(upper_bytes.begin(), upper_bytes.begin() + static_cast<std::ptrdiff_t>(cut)));
    ASSERT_EQ(over(above, kept), upper_bytes) << "seed " << seed;
  }
}

TEST_F(DirtyLayerTest, TheLastChunkCanBeSplitOff) {
  const std::vector<std::uint8_t> stored(100, 1);
  DirtyLayer lower(100, 100);
  lower.put(2, make()(100));
  lower.resize(350);
  const DirtyLayer::Chunk last = make()(100);
  last->hold(0, 50);
  std::fill_n(last->bytes().begin(), 50, std::uint8_t{7});
  lower.put(3, last);
  const std::vector<std::uint8_t> all = over(lower, stored);
  const DirtyLayer above = lower.split_off_last();
  EXPECT_EQ(lower.size(), 300U);
  EXPECT_EQ(lower.kept(), 100U);
  EXPECT_EQ(lower.chunks().whole().size(), 1U);
  EXPECT_EQ(above.size(), 350U);
  EXPECT_EQ(above.kept(), 300U);
  EXPECT_EQ(above.chunks().whole().size(), 1U);
  EXPECT_EQ(above.chunks().find(3)->get(), last.get());
  EXPECT_EQ(over(above, over(lower, stored)), all);
}

TEST_F(DirtyLayerTest, AHoleIsOneRunHoweverLongItIs) {
  constexpr std::uint64_t kLong = std::uint64_t{1} << 60;
  DirtyLayer layer(100, kLong);
  layer.put_zeros(1, static_cast<std::int64_t>(kLong / 100));
  layer.patch(0, 50, std::vector<std::uint8_t>(10, 1), bytes_);
  EXPECT_EQ(layer.chunks().zeros().size(), 1U);
  DirtyLayer below(100, kLong);
  layer.merge_into(below, make());
  EXPECT_EQ(below.chunks().zeros().size(), 1U);
  EXPECT_EQ(bytes_.load(), below.chunks().find_patches(0)->footprint());
  // Where nothing is below there is nothing to hide.
  DirtyLayer grown(100, 1000);
  grown.resize(kLong);
  grown.put_zeros(10, static_cast<std::int64_t>(kLong / 100));
  EXPECT_TRUE(grown.chunks().zeros().empty());
}

}  // namespace
}  // namespace cframefs::fs
