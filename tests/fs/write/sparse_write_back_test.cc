// Sparse frames that are written in small patches, so that a commit comes in parts, while programs read. Each word of a
// chunk holds the chunk's number, so that a reader knows which chunk its bytes are from.
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "frame/cframe/sparse_frame.h"
#include "tests/fs/written_filesystem.h"
#include "tests/support/frame_builder.h"
#include "tests/support/reading.h"

namespace cframefs::fs {
namespace {

constexpr std::size_t kSparseChunk = 4096;
constexpr std::size_t kSparseChunks = 150;
constexpr std::size_t kSparseSize = kSparseChunk * kSparseChunks;

/// Calls back when a commit of this thread has replaced the index of the frame.
class Switches final : public test::ForwardingFiles {
 public:
  codec::Result<void> rename_at(frame::OpenFile from_dir, const std::string& from, frame::OpenFile to_dir,
                                const std::string& to, unsigned flags) override {
    auto done = ForwardingFiles::rename_at(from_dir, from, to_dir, to, flags);
    if (done && to == frame::kSparseIndexName) {
      ++switches;
      if (after && std::this_thread::get_id() == thread_) after();
    }
    return done;
  }
  /// Other tests cover durability.
  codec::Result<void> sync(frame::OpenFile, bool) override { return {}; }
  std::function<void()> after;
  std::atomic<int> switches{0};

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
};

class SparseWriteBackTest : public ::testing::TestWithParam<bool> {
 protected:
  SparseWriteBackTest() {
    shadow_.resize(kSparseSize);
    for (std::size_t chunk = 0; chunk < kSparseChunks; ++chunk)
      fill(shadow_, chunk, 0);
    options_.source = directory_.path();
    options_.commit_interval = 1000;
    options_.dirty_limit = std::uint64_t{256} << 10;  // parts of 16 chunks
    options_.cache_size = std::uint64_t{1} << 20;
    make_frame(GetParam());
    filesystem_ = std::make_unique<Filesystem>(disk_, options_);
    EXPECT_TRUE(filesystem_->open_source(false));
    filesystem_->start(kernel_);
  }
  ~SparseWriteBackTest() override { filesystem_->stop(); }

  /// Returns a word of the chunk's number and 16 arbitrary bits.
  static void fill(std::vector<std::uint8_t>& bytes, std::size_t chunk, std::uint32_t seed) {
    for (std::size_t at = 0; at < kSparseChunk; at += 4)
      put(bytes, chunk, at, seed + static_cast<std::uint32_t>(at) * 2654435761U);
  }
  static void put(std::vector<std::uint8_t>& bytes, std::size_t chunk, std::size_t at, std::uint32_t noise) {
    const std::uint32_t word = static_cast<std::uint32_t>(chunk) | (noise & 0xffff0000U);
    std::memcpy(&bytes[chunk * kSparseChunk + at], &word, sizeof word);
  }

  void make_frame(bool sparse) const {
    if (sparse) std::filesystem::create_directory(directory_.path() / "x.b2frame");
    if (!sparse) {
      directory_.write("x.b2frame", test::plain_frame(shadow_, static_cast<std::int32_t>(kSparseChunk)).build());
      return;
    }
    for (const auto& [name, bytes] : test::sparse_frame(shadow_, static_cast<std::int32_t>(kSparseChunk)))
      directory_.write("x.b2frame/" + name, bytes);
  }

  std::unique_ptr<FileHandle> open(int flags) {
    auto found = filesystem_->names().lookup(kRootNode, "x");
    EXPECT_TRUE(found);
    auto handle = found ? filesystem_->files().open(found->node, flags) : codec::Failure(found.error());
    EXPECT_TRUE(handle) << handle.error().reason;
    return handle ? std::move(*handle) : nullptr;
  }
  void close(std::unique_ptr<FileHandle> handle) {
    EXPECT_TRUE(filesystem_->files().flush(*handle));
    filesystem_->files().release(std::move(handle));
  }
  void write_word(FileHandle& handle, std::size_t chunk, std::size_t at, std::uint32_t noise) {
    put(shadow_, chunk, at, noise);
    const codec::ByteView bytes = codec::ByteView(shadow_).subspan(chunk * kSparseChunk + at, 4);
    const auto done = filesystem_->files().write(handle, chunk * kSparseChunk + at, bytes, false);
    EXPECT_TRUE(done) << done.error().reason;
  }
  codec::Result<std::vector<std::uint8_t>> read(FileHandle& handle, std::size_t at, std::size_t size) {
    Reply reply;
    if (auto done = filesystem_->files().read(handle, at, size, reply); !done) return codec::Failure(done.error());
    std::vector<std::uint8_t> bytes(reply.size());
    reply.copy_to(bytes.data());
    return bytes;
  }
  /// Checks that each word of `bytes`, read from the beginning of `chunk` on, holds the number of its chunk.
  static ::testing::AssertionResult are_of(std::size_t chunk, const codec::Result<std::vector<std::uint8_t>>& bytes) {
    if (!bytes) return ::testing::AssertionFailure() << "chunk " << chunk << ": " << codec::describe(bytes.error());
    for (std::size_t at = 0; at + 4 <= bytes->size(); at += 4) {
      std::uint32_t word = 0;
      std::memcpy(&word, &(*bytes)[at], sizeof word);
      const std::size_t wanted = chunk + at / kSparseChunk;
      if ((word & 0xffffU) != wanted) {
        return ::testing::AssertionFailure() << "chunk " << wanted << " holds a word of chunk " << (word & 0xffffU);
      }
    }
    return ::testing::AssertionSuccess();
  }
  /// Checks what a program reads that opens the file, and what is stored.
  void expect_shadow() {
    auto handle = open(O_RDONLY);
    const auto shown = read(*handle, 0, kSparseSize);
    ASSERT_TRUE(shown) << shown.error().reason;
    EXPECT_TRUE(*shown == shadow_);
    close(std::move(handle));
    const auto stored = test::open_frame((directory_.path() / "x.b2frame").string());
    ASSERT_TRUE(stored);
    for (std::size_t chunk = 0; chunk < kSparseChunks; ++chunk) {
      const auto bytes = test::read_chunk(**stored, static_cast<std::int64_t>(chunk));
      ASSERT_TRUE(bytes) << codec::describe(bytes.error());
      ASSERT_TRUE(
          std::equal(bytes->begin(), bytes->end(), shadow_.begin() + static_cast<std::ptrdiff_t>(chunk * kSparseChunk)))
          << "chunk " << chunk << " on disk";
    }
  }

  test::TempDir directory_;
  Switches disk_;
  CountingKernel kernel_;
  MountOptions options_;
  std::vector<std::uint8_t> shadow_;
  std::unique_ptr<Filesystem> filesystem_;
};

TEST_P(SparseWriteBackTest, ReadsBetweenThePartsOfACommitReturnTheFilesOwnBytes) {
  auto writer = open(O_RDWR);
  auto reader = open(O_RDONLY);
  for (std::size_t chunk = 0; chunk < kSparseChunks; ++chunk)
    write_word(*writer, chunk, 100, 0x10000);
  disk_.after = [&] {
    const auto bytes = read(*reader, 0, kSparseSize);
    EXPECT_TRUE(are_of(0, bytes)) << "after " << disk_.switches << " parts";
    EXPECT_TRUE(bytes && *bytes == shadow_);
  };
  EXPECT_TRUE(filesystem_->files().sync(*writer, false));
  disk_.after = nullptr;
  EXPECT_GT(disk_.switches, GetParam() ? 4 : -1);
  close(std::move(reader));
  close(std::move(writer));
  expect_shadow();
}

TEST_P(SparseWriteBackTest, ChunksAssembledBetweenThePartsOfACommitHoldTheFilesOwnBytes) {
  auto writer = open(O_RDWR);
  for (std::size_t chunk = 0; chunk < kSparseChunks; ++chunk)
    write_word(*writer, chunk, 100, 0x20000);
  std::size_t next = 0;
  disk_.after = [&] {
    // More pieces than a chunk may have, so that the rest of each chunk is read: of parts that are done and of parts to
    // come. Few chunks, because writing to one too many would wait for this very commit.
    for (std::size_t i = 0; i < 2; ++i, ++next) {
      for (std::size_t piece = 0; piece < 80; ++piece)
        write_word(*writer, next * 61 % kSparseChunks, 200 + 40 * piece, 0x30000);
    }
  };
  EXPECT_TRUE(filesystem_->files().sync(*writer, false));
  disk_.after = nullptr;
  close(std::move(writer));
  expect_shadow();
}

TEST_P(SparseWriteBackTest, ReadersBesideCommitsGetTheirOwnChunksBytes) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> readers;
  for (unsigned seed = 0; seed < 2; ++seed) {
    readers.emplace_back([&, seed] {
      std::mt19937 random(seed);
      auto reader = open(O_RDONLY);
      while (!stop && !HasFailure()) {
        const std::size_t chunk = random() % (kSparseChunks - 8);
        EXPECT_TRUE(are_of(chunk, read(*reader, chunk * kSparseChunk, kSparseChunk * (1 + random() % 8))));
        if (random() % 64 == 0) {
          close(std::move(reader));
          reader = open(O_RDONLY);
        }
      }
      close(std::move(reader));
    });
  }
  std::mt19937 random(99);
  auto writer = open(O_RDWR);
  for (unsigned round = 0; round < 12 && !HasFailure(); ++round) {
    for (std::size_t chunk = 0; chunk < kSparseChunks; ++chunk) {
      const std::size_t pieces = random() % 16 == 0 ? 80 : 1;
      for (std::size_t piece = 0; piece < pieces; ++piece)
        write_word(*writer, chunk, random() % (kSparseChunk / 4) * 4, static_cast<std::uint32_t>(random()));
    }
    EXPECT_TRUE(filesystem_->files().sync(*writer, false));
    if (round % 4 == 3) {
      close(std::move(writer));
      writer = open(O_RDWR);
    }
  }
  stop = true;
  for (std::thread& reader : readers)
    reader.join();
  close(std::move(writer));
  expect_shadow();
  if (GetParam()) {
    const auto files = [&] {
      const std::filesystem::directory_iterator found(directory_.path() / "x.b2frame");
      return static_cast<std::size_t>(std::distance(found, {}));
    };
    // A queued prefetch holds its snapshot until a worker runs it.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (files() != kSparseChunks + 1 && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(files(), kSparseChunks + 1) << "files of old versions are left";
  }
}

INSTANTIATE_TEST_SUITE_P(Frames, SparseWriteBackTest, ::testing::Bool(),
                         [](const auto& kind) { return kind.param ? "Sparse" : "Contiguous"; });

}  // namespace
}  // namespace cframefs::fs
