// Commits of small changes in large chunks encode the blocks that changed, and keep the others as stored.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fs/written_filesystem.h"
#include "tests/support/sanitizers.h"

namespace cframefs::fs {
namespace {

constexpr std::uint64_t kBlockLength = 16 << 10;
constexpr std::uint64_t kChunkLength = 16 * kBlockLength;

class ChangedBlocksTest : public WrittenFilesystem {
 protected:
  /// Returns a frame of blocks of kBlockLength bytes, open for writing.
  std::unique_ptr<FileHandle> frame_of(std::uint8_t compcode, codec::FilterId filter, bool use_dict) {
    frame::NewFrame made;
    made.chunksize = kChunkLength;
    made.encode.compcode = compcode;
    made.encode.typesize = 4;
    made.encode.blocksize = kBlockLength;
    made.encode.filters[codec::kFilterSlots - 1] = static_cast<std::uint8_t>(filter);
    made.encode.use_dict = use_dict;
    directory_.write("x.b2frame", frame::empty_frame(made));
    return open("x");
  }
  std::uint64_t encoded() { return filesystem_->statistics().writing.bytes_encoded; }
  /// Returns how many bytes the commit of the changes encodes.
  std::uint64_t encoded_by_sync(FileHandle& handle) {
    const std::uint64_t before = encoded();
    EXPECT_TRUE(filesystem_->files().sync(handle, false));
    return encoded() - before;
  }
  static std::string text_of(std::size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::string text;
    while (text.size() < size)
      text += "value " + std::to_string(random() % 1000) + "; ";
    text.resize(size);
    return text;
  }
};

TEST_F(ChangedBlocksTest, AnAppendEncodesTheLastBlock) {
  auto handle = frame_of(codec::kZstd, codec::FilterId::shuffle, false);
  std::string model = text_of(10 * kBlockLength + 50, 1);
  ASSERT_TRUE(write(*handle, 0, model));
  EXPECT_EQ(encoded_by_sync(*handle), model.size());
  for (int i = 0; i < 20; ++i) {
    const std::string record = text_of(100, 2);
    ASSERT_TRUE(write(*handle, model.size(), record));
    model += record;
    EXPECT_EQ(encoded_by_sync(*handle), model.size() - 10 * kBlockLength);
    ASSERT_TRUE(read(*handle) == model);
  }
  EXPECT_TRUE(close(std::move(handle)));
  remount();
  EXPECT_TRUE(content("x") == model);
}

TEST_F(ChangedBlocksTest, AnOverwriteEncodesTheBlocksThatItTouches) {
  auto handle = frame_of(codec::kLz4, codec::FilterId::shuffle, false);
  std::string model = text_of(2 * kChunkLength, 1);
  ASSERT_TRUE(write(*handle, 0, model));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  const auto overwrite = [&](std::uint64_t at, const std::string& text) {
    ASSERT_TRUE(write(*handle, at, text));
    model.replace(at, text.size(), text);
  };
  overwrite(kChunkLength + 3 * kBlockLength - 2, "both");
  EXPECT_EQ(encoded_by_sync(*handle), 2 * kBlockLength);
  overwrite(kChunkLength + 3 * kBlockLength, text_of(kBlockLength, 5));
  EXPECT_EQ(encoded_by_sync(*handle), kBlockLength) << "a block that is replaced";
  overwrite(0, "first");
  overwrite(2 * kChunkLength - 4, "last");
  EXPECT_EQ(encoded_by_sync(*handle), 2 * kBlockLength) << "one of each chunk";
  EXPECT_TRUE(read(*handle) == model);
  EXPECT_TRUE(close(std::move(handle)));
  remount();
  EXPECT_TRUE(content("x") == model);
}

TEST_F(ChangedBlocksTest, BlocksThatDependOnOthersAreEncodedAgain) {
  for (const bool use_dict : {true, false}) {
    auto handle = frame_of(codec::kZstd, use_dict ? codec::FilterId::shuffle : codec::FilterId::delta, use_dict);
    std::string model = text_of(kChunkLength, 1);
    ASSERT_TRUE(write(*handle, 0, model));
    ASSERT_TRUE(filesystem_->files().sync(*handle, false));
    ASSERT_TRUE(write(*handle, 5, "changed"));
    model.replace(5, 7, "changed");
    EXPECT_EQ(encoded_by_sync(*handle), kChunkLength);
    EXPECT_TRUE(read(*handle) == model);
    EXPECT_TRUE(close(std::move(handle)));
    remount();
    EXPECT_TRUE(content("x") == model);
  }
}

TEST_F(ChangedBlocksTest, AChunkThatNoLongerShrinksIsStoredUncompressed) {
  auto handle = frame_of(codec::kLz4, codec::FilterId::none, false);
  std::mt19937 random(3);
  std::string model(kChunkLength, '\0');
  for (char& byte : model)
    byte = static_cast<char>(random());
  const std::string noise = model.substr(0, kBlockLength);
  std::fill_n(model.begin(), kBlockLength, 'x');
  ASSERT_TRUE(write(*handle, 0, model));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  ASSERT_TRUE(write(*handle, 0, noise));
  model.replace(0, kBlockLength, noise);
  EXPECT_EQ(encoded_by_sync(*handle), kChunkLength);
  EXPECT_TRUE(read(*handle) == model);
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_TRUE(content("x") == model);
}

TEST_F(ChangedBlocksTest, RandomChanges) {
  for (const unsigned seed : {1U, 2U}) {
    auto handle = frame_of(seed % 2 == 0 ? codec::kLz4 : codec::kZstd, codec::FilterId::shuffle, false);
    std::mt19937 random(seed);
    std::string model;
    const std::uint64_t before = encoded();
    std::uint64_t whole = 0;
    for (int i = 0; i < test::steps(120); ++i) {
      switch (random() % 8) {
        case 0:
          model.resize(random() % (3 * kChunkLength));
          ASSERT_TRUE(resize(*handle, model.size()));
          break;
        case 1: {
          const std::string text = text_of(random() % (4 * kBlockLength), random());
          if (model.size() > 3 * kChunkLength) break;
          const std::size_t at = model.size() + random() % 3 * kBlockLength;
          model.resize(std::max(model.size(), at + text.size()));
          model.replace(at, text.size(), text);
          ASSERT_TRUE(write(*handle, at, text));
          break;
        }
        default: {
          const std::size_t at = random() % (model.size() + 1);
          const std::string text = text_of(1 + random() % 200, random());
          model.resize(std::max(model.size(), at + text.size()));
          model.replace(at, text.size(), text);
          ASSERT_TRUE(write(*handle, at, text));
        }
      }
      if (random() % 2 == 0) {
        ASSERT_TRUE(filesystem_->files().sync(*handle, false));
        whole += std::min(model.size(), std::size_t{kChunkLength});
      }
      const std::string found = read(*handle);
      const auto [there, wanted] = std::mismatch(found.begin(), found.end(), model.begin(), model.end());
      ASSERT_TRUE(found == model) << "seed " << seed << ", change " << i << ": " << found.size() << " of "
                                  << model.size() << " bytes, other ones at " << there - found.begin();
    }
    EXPECT_TRUE(close(std::move(handle)));
    EXPECT_LT(encoded() - before, whole);
    remount();
    ASSERT_TRUE(content("x") == model) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cframefs::fs
