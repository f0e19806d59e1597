// Reads of deflated streams at any offset give the original bytes or corruption. Memory and work stay within bounds.
#include "frame/store/inflated_source.h"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <zlib.h>

#include "tests/support/memory_meter.h"
#include "tests/support/zip_builder.h"

namespace cframefs::frame {
namespace {

using test::Bytes;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kPiece = std::size_t{256} << 10;

/// Returns bytes that compress moderately.
Bytes plain_of(std::size_t size) {
  Bytes plain(size);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < size; ++i) {
    state = state * 1664525 + 1013904223;
    plain[i] = i % 3 == 0 ? static_cast<std::uint8_t>(state >> 28) : static_cast<std::uint8_t>(i >> 12);
  }
  return plain;
}

std::uint32_t checksum_of(const Bytes& plain) {
  return static_cast<std::uint32_t>(crc32(0, plain.data(), static_cast<uInt>(plain.size())));
}

struct Packed {
  Bytes stored;
  InflatedSource::Stream stream;
};

Packed packed(const Bytes& plain) {
  Packed made{test::deflated(plain), {}};
  made.stream = {FileOffset{0}, made.stored.size(), plain.size(), checksum_of(plain), "x"};
  return made;
}

Result<std::shared_ptr<const InflatedSource>> open(const Packed& packed, std::shared_ptr<InflateMemory> memory = {}) {
  if (!memory) memory = std::make_shared<InflateMemory>();
  return InflatedSource::open(memory_source(packed.stored), packed.stream, std::move(memory));
}

Result<Bytes> read(const InflatedSource& source, std::uint64_t at, std::size_t size) {
  Bytes bytes(size);
  if (auto done = source.read(FileOffset{at}, bytes); !done) return codec::Failure(done.error());
  return bytes;
}

void expect_corrupt(const Packed& packed) {
  const auto source = open(packed);
  if (!source) {
    EXPECT_EQ(source.error().kind, codec::ErrorKind::corruption);
    return;
  }
  const std::uint64_t size = (*source)->size();
  const auto last = read(**source, size - 1, 1);
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().kind, codec::ErrorKind::corruption);
  // After the damage is known, reads fail without inflating again.
  const std::uint64_t tried = (*source)->inflated_bytes();
  EXPECT_FALSE(read(**source, size - 1, 1));
  EXPECT_EQ((*source)->inflated_bytes(), tried);
}

RC_GTEST_PROP(InflatedSource, AnyRangeEqualsTheOriginal, ()) {
  static const Bytes plain = plain_of(5 * kMiB + 12345);
  static const Packed made = packed(plain);
  // Random small bounds for pieces and restart points, so that reads start from different positions.
  const auto memory = std::make_shared<InflateMemory>(*rc::gen::inRange<std::size_t>(1, kMiB),
                                                      *rc::gen::inRange<std::size_t>(0, 8 * 40 << 10));
  const auto source = open(made, memory);
  RC_ASSERT(source.has_value());
  for (int i = 0; i < 6; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, plain.size() + 1);
    const auto size = *rc::gen::inRange<std::size_t>(0, std::min(plain.size() - at, kMiB) + 1);
    const auto got = read(**source, at, size);
    RC_ASSERT(got.has_value());
    RC_ASSERT(std::equal(got->begin(), got->end(), plain.begin() + static_cast<std::ptrdiff_t>(at)));
  }
}

// semantics: G3
TEST(InflatedSource, AfterTheFirstPassARestartPointIsNear) {
  const Bytes plain = plain_of(8 * kMiB);
  const auto source = open(packed(plain), std::make_shared<InflateMemory>(1));
  ASSERT_TRUE(source);
  ASSERT_TRUE(read(**source, plain.size() - 1, 1));
  EXPECT_EQ((*source)->inflated_bytes(), plain.size());
  EXPECT_EQ((*source)->restart_points(), 7U);  // one for each MiB
  for (const std::size_t at : {7 * kMiB - 1, 3 * kMiB, std::size_t{5}, 6 * kMiB + 3 * kPiece}) {
    const std::uint64_t before = (*source)->inflated_bytes();
    EXPECT_EQ(read(**source, at, 1)->at(0), plain[at]);
    EXPECT_LE((*source)->inflated_bytes() - before, kMiB) << at;
  }
}

TEST(InflatedSource, ASequentialReadInflatesNothingTwice) {
  const Bytes plain = plain_of(3 * kMiB + 1);
  const auto source = open(packed(plain));
  ASSERT_TRUE(source);
  for (std::size_t at = 0; at < plain.size(); at += 10000)
    ASSERT_TRUE(read(**source, at, std::min<std::size_t>(10000, plain.size() - at)));
  EXPECT_EQ((*source)->inflated_bytes(), plain.size());
}

TEST(InflatedSource, RestartPointsStayWithinTheirBoundAndReturnMemory) {
  const Bytes plain(64 * kMiB);
  const Packed made = packed(plain);
  const std::size_t point = std::size_t{40} << 10;
  const auto memory = std::make_shared<InflateMemory>(kMiB, 5 * point);
  {
    const auto source = open(made, memory);
    ASSERT_TRUE(source);
    ASSERT_TRUE(read(**source, plain.size() - 1, 1));
    EXPECT_GE((*source)->restart_points(), 2U);
    EXPECT_LE((*source)->restart_points(), 5U);
    // With few restart points, all bytes are still readable.
    EXPECT_EQ(*read(**source, 40 * kMiB - 5, 10), Bytes(10));
    // Another stream works without restart points.
    const auto other = open(made, memory);
    ASSERT_TRUE(other);
    EXPECT_TRUE(read(**other, plain.size() - 1, 1));
  }
  EXPECT_TRUE(memory->try_reserve(5 * point));
  EXPECT_FALSE(memory->try_reserve(1));
}

TEST(InflatedSource, TheRestartPointsOfAStreamAreBounded) {
  const Bytes plain(160 * kMiB);
  const auto memory = std::make_shared<InflateMemory>(kMiB, std::size_t{1} << 30);
  const auto source = open(packed(plain), memory);
  ASSERT_TRUE(source);
  ASSERT_TRUE(read(**source, plain.size() - 1, 1));
  EXPECT_LE((*source)->restart_points(), 128U);
  EXPECT_GE((*source)->restart_points(), 64U);
}

TEST(InflatedSource, FalseLengthsAndChecksumsAreCorruption) {
  const Bytes plain = plain_of(600 << 10);
  const Packed good = packed(plain);
  Packed lies = good;
  lies.stream.checksum ^= 1;
  expect_corrupt(lies);
  for (const std::int64_t more : {-300000, -1, 1, 300000}) {
    lies = good;
    lies.stream.size += static_cast<std::uint64_t>(more);
    expect_corrupt(lies);
  }
  for (const std::size_t stored : {std::size_t{0}, std::size_t{1}, good.stored.size() / 2, good.stored.size() - 1}) {
    lies = good;
    lies.stream.stored = stored;
    expect_corrupt(lies);
  }
}

TEST(InflatedSource, AFalseSizeWithAMatchingChecksumIsCorruption) {
  // Size and checksum are those of the first 1000 bytes, but the stream is longer.
  const Bytes plain = plain_of(5000);
  Packed lies = packed(plain);
  lies.stream.size = 1000;
  lies.stream.checksum = checksum_of(Bytes(plain.begin(), plain.begin() + 1000));
  expect_corrupt(lies);
}

RC_GTEST_PROP(InflatedSource, DamageIsNeverReturnedAsData, ()) {
  static const Bytes plain = plain_of(300 << 10);
  Packed damaged = packed(plain);
  const auto at = *rc::gen::inRange<std::size_t>(0, damaged.stored.size());
  damaged.stored[at] ^= static_cast<std::uint8_t>(*rc::gen::inRange(1, 256));
  const auto source = open(damaged);
  RC_ASSERT(source.has_value());
  // Bits after the end of the last block have no meaning, so the read may succeed.
  const auto last = read(**source, plain.size() - 1, 1);
  if (last) RC_ASSERT(*read(**source, 0, plain.size()) == plain);
  if (!last) RC_ASSERT(last.error().kind == codec::ErrorKind::corruption);
}

TEST(InflatedSource, AnImpossibleSizeTakesNoMemory) {
  Packed bomb = packed(Bytes(10 * kMiB));
  bomb.stream.size = std::uint64_t{1} << 40;
  const std::size_t before = test::reset_peak();
  const auto impossible = open(bomb);
  ASSERT_FALSE(impossible);
  EXPECT_EQ(impossible.error().kind, codec::ErrorKind::corruption);
  EXPECT_LT(test::peak_bytes() - before, kMiB);
  // A stream of nearly the highest ratio is accepted and needs no more memory than others.
  const Bytes zeros(100 * kMiB);
  const Packed dense = packed(zeros);
  EXPECT_GT(zeros.size() / dense.stored.size(), 900U);
  const auto source = open(dense);
  ASSERT_TRUE(source) << describe(source.error());
  const std::size_t opened = test::reset_peak();
  ASSERT_TRUE(read(**source, zeros.size() - 1, 1));
  EXPECT_LT(test::peak_bytes() - opened, 4 * kMiB);
}

/// Fails reads while `fails` is true.
class WaveringSource final : public ByteSource {
 public:
  explicit WaveringSource(Bytes bytes) : bytes_(memory_source(std::move(bytes))) {}
  std::uint64_t size() const override { return bytes_->size(); }
  Result<void> read(FileOffset at, ByteSpan into) const override {
    if (fails) return codec::io_error(EIO, "pread");
    return bytes_->read(at, into);
  }
  mutable bool fails = false;

 private:
  const std::unique_ptr<ByteSource> bytes_;
};

TEST(InflatedSource, AnErrorOfTheDiskIsNotCorruption) {
  const Bytes plain = plain_of(2 * kMiB);
  const Packed made = packed(plain);
  const auto disk = std::make_shared<const WaveringSource>(made.stored);
  const auto source = InflatedSource::open(disk, made.stream, std::make_shared<InflateMemory>());
  ASSERT_TRUE(source);
  ASSERT_TRUE(read(**source, kMiB, 1));
  disk->fails = true;
  const auto failed = read(**source, plain.size() - 1, 1);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, codec::ErrorKind::io);
  disk->fails = false;
  EXPECT_EQ(*read(**source, 0, plain.size()), plain);
}

TEST(InflatedSource, ManyThreadsReadOneStream) {
  const Bytes plain = plain_of(4 * kMiB);
  const auto source = open(packed(plain), std::make_shared<InflateMemory>(kMiB));
  ASSERT_TRUE(source);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 40; ++i) {
        const std::size_t at = (i * 7919 * 1000 + t * 1234567) % (plain.size() - 1000);
        const auto got = read(**source, at, 1000);
        if (!got || !std::equal(got->begin(), got->end(), plain.begin() + static_cast<std::ptrdiff_t>(at))) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace cframefs::frame
