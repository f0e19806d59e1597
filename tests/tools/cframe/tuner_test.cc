// --tune: what the user has given stays, and each goal is met.
#include "tools/cframe/tuner.h"

#include <cmath>
#include <cstring>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "codec/format/filter_registry.h"
#include "codec/stream/block_sizes.h"
#include "codec/stream/codec_table.h"
#include "frame/container/chunk_reader.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/cframe/run_cframe.h"

namespace cframefs::test {
namespace {

using Bytes = std::vector<std::uint8_t>;
using tools::TuneGoal;

Bytes noisy_waves(std::size_t count) {
  std::mt19937 random(1);
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = 20 + std::sin(static_cast<double>(i) * 0.001) + static_cast<double>(random() % 100) * 1e-7;
  Bytes bytes(count * sizeof(double));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

tools::Tuned tuned_for(const Bytes& plain, const tools::EncodeOptions& wishes, TuneGoal goal = TuneGoal::balanced) {
  codec::EncodeContext context;
  auto tuned = tools::tune(context, wishes, frame::samples_of(plain), goal);
  EXPECT_TRUE(tuned);
  return tuned.value_or(tools::Tuned{});
}

TEST(Tuner, KeepsWhatWasWishedFor) {
  const Bytes plain = noisy_waves(50'000);
  for (const TuneGoal goal : {TuneGoal::balanced, TuneGoal::ratio, TuneGoal::speed, TuneGoal::random}) {
    tools::EncodeOptions wishes;
    wishes.compcode = *codec::find_codec("zlib");
    wishes.typesize = 2;
    tools::Tuned tuned = tuned_for(plain, wishes, goal);
    EXPECT_EQ(tuned.encode.compcode, *codec::find_codec("zlib"));
    EXPECT_EQ(tuned.encode.typesize, 2);
    wishes.clevel = 3;
    wishes.filters = codec::FilterSlots{};
    wishes.blocksize = 10'001;
    tuned = tuned_for(plain, wishes, goal);
    EXPECT_EQ(tuned.encode.clevel, 3);
    EXPECT_EQ(tuned.encode.filters, codec::FilterSlots{});
    EXPECT_EQ(tuned.encode.blocksize, 10'001);
    EXPECT_EQ(tuned.tried, 1);
  }
}

TEST(Tuner, IsNotWorseThanTheDefaults) {
  const Bytes plain = noisy_waves(16'000);  // all of it is the sample
  const tools::Tuned tuned = tuned_for(plain, {});
  codec::EncodeParameters usual = tools::EncodeOptions{}.parameters();
  usual.typesize = 8;
  codec::EncodeContext context;
  const auto chunk = codec::encode_chunk(context, usual, plain);
  ASSERT_TRUE(chunk);
  EXPECT_GT(tuned.ratio * 1.06 * static_cast<double>(chunk->bytes.size()), static_cast<double>(plain.size()));
  EXPECT_EQ(tuned.encode.typesize, 8);
}

TEST(Tuner, RatioIsTheSmallestOfAll) {
  const Bytes plain = noisy_waves(200'000);
  const double most = tuned_for(plain, {}, TuneGoal::ratio).ratio;
  for (const TuneGoal goal : {TuneGoal::balanced, TuneGoal::speed, TuneGoal::random})
    EXPECT_GE(most * 1.0001, tuned_for(plain, {}, goal).ratio);
}

TEST(Tuner, SpeedAndRandomGiveUpABoundedShareOfTheRatio) {
  const Bytes plain = noisy_waves(200'000);
  tools::EncodeOptions wishes;
  const double most = tuned_for(plain, wishes).ratio;
  EXPECT_GE(tuned_for(plain, wishes, TuneGoal::speed).ratio * 1.2 * 1.0001, most);
  const codec::EncodeParameters random = tuned_for(plain, wishes, TuneGoal::random).encode;
  EXPECT_LE(codec::choose_blocksize(random, 1 << 20), 32 << 10);
  EXPECT_EQ(random.blocksize % random.typesize, 0);
}

TEST(Tuner, TheOptionHasAGoalOrNone) {
  const TempDir dir;
  dir.write("in", noisy_waves(50'000));
  const std::string in = (dir.path() / "in").string();
  const std::string out = (dir.path() / "x.b2frame").string();
  for (const char* tune : {"--tune", "--tune=balanced", "--tune=ratio", "--tune=speed", "--tune=random"}) {
    // Without "=" the word after --tune is not the goal.
    const Ran ran = run_cframe({"pack", "-f", tune, in, out});
    ASSERT_EQ(ran.status, tools::done) << tune << ran.err;
    EXPECT_NE(ran.err.find(" settings: --codec "), std::string::npos) << ran.err;
    EXPECT_EQ(run_cframe({"verify", out}).status, tools::done) << tune;
  }
  const Ran wrong = run_cframe({"pack", "-f", "--tune=size", in, out});
  EXPECT_EQ(wrong.status, tools::kUsageError);
  EXPECT_NE(wrong.err.find("'size' must be one of balanced, ratio, speed, random, remote"), std::string::npos)
      << wrong.err;
}

TEST(Tuner, TheOptionsThatItPrintsMakeTheSameFrame) {
  const TempDir dir;
  dir.write("in", noisy_waves(50'000));
  const std::string in = (dir.path() / "in").string();
  const std::string tuned = (dir.path() / "tuned.b2frame").string();
  const Ran ran = run_cframe({"pack", "--tune=random", in, tuned});
  ASSERT_EQ(ran.status, tools::done) << ran.err;
  std::vector<std::string> words = {"pack", in, (dir.path() / "given.b2frame").string()};
  const std::size_t begin = ran.err.find("--codec");
  std::istringstream text(ran.err.substr(begin, ran.err.find(" (") - begin));
  for (std::string word; text >> word;)
    words.push_back(word);
  ASSERT_EQ(run_cframe(words).status, tools::done);
  EXPECT_EQ(file_bytes(tuned), file_bytes(dir.path() / "given.b2frame"));
}

TEST(Tuner, ForServersNoChunkStoresMoreThanAMebibyte) {
  const TempDir dir;
  std::mt19937 random(1);
  Bytes noise(std::size_t{6} << 20);
  Bytes nibbles(noise.size());
  for (std::size_t i = 0; i < noise.size(); ++i) {
    noise[i] = static_cast<std::uint8_t>(random());
    nibbles[i] = static_cast<std::uint8_t>(random() % 8);
  }
  for (const auto& [plain, chunksize] : {std::pair{&noise, 1 << 19}, std::pair{&nibbles, 1 << 21}}) {
    const std::string in = (dir.path() / "in").string();
    const std::string packed = (dir.path() / "packed.b2frame").string();
    const std::string converted = (dir.path() / "converted.b2frame").string();
    dir.write("in", *plain);
    ASSERT_EQ(run_cframe({"pack", "-f", "--tune=remote", in, packed}).status, tools::done);
    ASSERT_EQ(run_cframe({"pack", "-f", "--chunksize", "64K", in, converted}).status, tools::done);
    ASSERT_EQ(run_cframe({"convert", "-f", "--tune=remote", converted, (dir.path() / "c2.b2frame").string()}).status,
              tools::done);
    for (const std::string& made : {packed, (dir.path() / "c2.b2frame").string()}) {
      const auto frame = test::open_frame(made);
      ASSERT_TRUE(frame);
      EXPECT_EQ((*frame)->parameters().chunksize, chunksize) << made;
      const frame::Container& container = **frame;
      for (std::int64_t chunk = 0; chunk < container.chunk_count(); ++chunk) {
        const auto reader = frame::ChunkReader::open(container, frame::ChunkNumber{chunk});
        ASSERT_TRUE(reader);
        EXPECT_LE((*reader)->stored_bytes(), std::uint64_t{1} << 20);
      }
    }
    ASSERT_EQ(run_cframe({"pack", "-f", "--tune=remote", "--chunksize", "128K", in, packed}).status, tools::done);
    const auto given = test::open_frame(packed);
    ASSERT_TRUE(given);
    EXPECT_EQ((*given)->parameters().chunksize, 128 << 10);
  }
}

TEST(Tuner, AConversionIsTunedForServersAlone) {
  const Ran other = run_cframe({"convert", "--tune=ratio", "x.b2frame", "y.b2frame"});
  EXPECT_EQ(other.status, tools::kUsageError);
  EXPECT_NE(other.err.find("remote"), std::string::npos) << other.err;
}

}  // namespace
}  // namespace cframefs::test
