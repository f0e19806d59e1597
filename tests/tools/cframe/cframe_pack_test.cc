// cframe pack and unpack: what goes in comes out, and nothing half made is ever left or seen.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/array_builder.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/cframe/run_cframe.h"

namespace cframefs::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Smooth doubles with a stretch of zeros and an odd end.
Bytes measurements(std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = i > count / 4 && i < count / 2 ? 0.0 : 20 + std::sin(static_cast<double>(i) * 0.001);
  Bytes bytes(count * sizeof(double));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  bytes.insert(bytes.end(), {1, 2, 3});
  return bytes;
}

std::size_t entries(const TempDir& dir) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(dir.path()), std::filesystem::directory_iterator()));
}

nlohmann::json info_of_packed(const std::filesystem::path& frame) {
  return nlohmann::json::parse(run_cframe({"info", "--json", frame.string()}).out);
}

class CframePack : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (dir_.path() / name).string(); }
  Ran pack(std::vector<std::string> options) const {
    options.insert(options.begin(), {"pack", path("in"), path("x.b2frame")});
    return run_cframe(options);
  }
  /// Unpacks x.b2frame and compares; so does cat.
  void expect_unpacks_to(const Bytes& plain) const {
    const Ran ran = run_cframe({"unpack", path("x.b2frame"), path("out"), "-f"});
    EXPECT_EQ(ran.status, tools::done) << ran.err;
    EXPECT_TRUE(file_bytes(path("out")) == plain);
    const Ran cat = run_cframe({"cat", path("x.b2frame")});
    EXPECT_EQ(cat.status, tools::done) << cat.err;
    EXPECT_TRUE(std::equal(cat.out.begin(), cat.out.end(), plain.begin(), plain.end(),
                           [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; }));
    EXPECT_EQ(run_cframe({"verify", path("x.b2frame")}).status, tools::done);
  }

  TempDir dir_;
};

TEST_F(CframePack, RoundTripsWithEveryOption) {
  const Bytes plain = measurements(150'000);
  dir_.write("in", plain);
  const std::vector<std::vector<std::string>> calls = {
      {},
      {"--codec", "blosclz", "--clevel", "9"},
      {"--codec", "lz4", "--filter", "bitshuffle", "--typesize", "4"},
      {"--codec", "lz4hc", "--filter", "delta+shuffle"},
      {"--codec", "zlib", "--filter", "shuffle+bytedelta", "--typesize", "8"},
      {"--clevel", "0"},
      {"--filter", "none", "--chunksize", "64K", "--blocksize", "1K"},
      {"--chunksize", "1000", "--typesize", "300", "--workers", "1"},
      {"--chunksize", "10K", "--workers", "7"},
      {"--chunksize", "1G"},
      {"--tune"},
      {"--tune=ratio", "--typesize", "8"},
      {"--tune=random"},
  };
  for (std::vector<std::string> options : calls) {
    SCOPED_TRACE(options.empty() ? "defaults" : options.front() + " " + options.back());
    options.emplace_back("--force");
    const Ran ran = pack(options);
    ASSERT_EQ(ran.status, tools::done) << ran.err;
    expect_unpacks_to(plain);
  }
  EXPECT_EQ(entries(dir_), 3U);
}

TEST_F(CframePack, TheFrameSaysWhatWasAskedFor) {
  dir_.write("in", measurements(50'000));
  ASSERT_EQ(pack({"--codec", "lz4", "--clevel", "7", "--filter", "delta+bitshuffle", "--typesize", "8", "--chunksize",
                  "100001", "--blocksize", "8K"})
                .status,
            tools::done);
  const nlohmann::json info = info_of_packed(path("x.b2frame"));
  EXPECT_EQ(info["codec"], "lz4");
  EXPECT_EQ(info["clevel"], 7);
  EXPECT_EQ(info["filters"], "delta+bitshuffle");
  EXPECT_EQ(info["typesize"], 8);
  EXPECT_EQ(info["chunksize"], 100'000);
  EXPECT_EQ(info["blocksize"], 8192);
  EXPECT_EQ(info["nbytes"], 400'003);
}

TEST_F(CframePack, DefaultsFindTypesizeAndFilters) {
  dir_.write("in", measurements(50'000));
  ASSERT_EQ(pack({}).status, tools::done);
  const nlohmann::json info = info_of_packed(path("x.b2frame"));
  EXPECT_EQ(info["codec"], "zstd");
  EXPECT_EQ(info["clevel"], 5);
  EXPECT_EQ(info["filters"], "shuffle+bytedelta");
  EXPECT_EQ(info["typesize"], 8);
  EXPECT_EQ(info["chunksize"], 1 << 20);
  ASSERT_EQ(pack({"--filter", "auto", "-f"}).status, tools::done);
  EXPECT_EQ(info_of_packed(path("x.b2frame"))["filters"], "shuffle+bytedelta");
  ASSERT_EQ(pack({"--filter", "shuffle", "-f"}).status, tools::done);
  EXPECT_EQ(info_of_packed(path("x.b2frame"))["filters"], "shuffle");
}

TEST_F(CframePack, NumbersBehindZerosAreNumbers) {
  Bytes plain(5'000'000);
  const Bytes numbers = measurements(400'000);
  plain.insert(plain.end(), numbers.begin(), numbers.end());
  dir_.write("in", plain);
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{{"-f"}, {"-f", "--tune"}}) {
    ASSERT_EQ(pack(options).status, tools::done);
    EXPECT_EQ(info_of_packed(path("x.b2frame"))["typesize"], 8) << options.back();
  }
  const std::atomic<bool> stop = false;
  tools::StringOutput out;
  tools::StringOutput err;
  std::FILE* file = std::fopen(path("in").c_str(), "rb");
  ASSERT_NE(file, nullptr);
  tools::DescriptorInput in(::fileno(file), stop);
  tools::Io io{out, err, false, stop, &in};
  ASSERT_EQ(tools::cframe_main({"pack", "-f", "-", path("x.b2frame")}, io), tools::done) << err.text;
  std::fclose(file);
  EXPECT_EQ(info_of_packed(path("x.b2frame"))["typesize"], 8);
}

TEST_F(CframePack, EmptyAndTinyFiles) {
  for (const std::size_t size : {0, 1, 31, 32, 33}) {
    const Bytes plain(size, 'x');
    dir_.write("in", plain);
    ASSERT_EQ(pack({"--tune", "-f"}).status, tools::done);
    expect_unpacks_to(plain);
    ASSERT_EQ(pack({"-f"}).status, tools::done);
    expect_unpacks_to(plain);
  }
}

TEST_F(CframePack, StandardInputFromAPipe) {
  const Bytes plain = measurements(200'000);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  std::thread feeder([&] {
    for (std::size_t done = 0; done < plain.size();) {
      // Odd pieces, so that reads fall short.
      const ssize_t put = ::write(pipe[1], &plain[done], std::min<std::size_t>(plain.size() - done, 10'007));
      if (put <= 0) break;
      done += static_cast<std::size_t>(put);
    }
    ::close(pipe[1]);
  });
  const std::atomic<bool> stop = false;
  tools::StringOutput out;
  tools::StringOutput err;
  tools::DescriptorInput in(pipe[0], stop);
  tools::Io io{out, err, false, stop, &in};
  EXPECT_EQ(tools::cframe_main({"pack", "--tune", "-", path("x.b2frame"), "--chunksize", "100K"}, io), tools::done)
      << err.text;
  feeder.join();
  ::close(pipe[0]);
  expect_unpacks_to(plain);
}

TEST_F(CframePack, WhatIsThereStaysUnlessForced) {
  dir_.write("in", measurements(1000));
  dir_.write("x.b2frame", Bytes{1, 2, 3});
  const Ran refused = pack({});
  EXPECT_EQ(refused.status, tools::kUsageError);
  EXPECT_NE(refused.err.find("--force"), std::string::npos) << refused.err;
  EXPECT_EQ(file_bytes(path("x.b2frame")), (Bytes{1, 2, 3}));
  EXPECT_EQ(pack({"-f"}).status, tools::done);
  expect_unpacks_to(measurements(1000));

  EXPECT_EQ(run_cframe({"unpack", path("x.b2frame"), path("in")}).status, tools::kUsageError);
  // Nothing replaces what it is made of.
  EXPECT_EQ(run_cframe({"pack", "-f", path("in"), path("in")}).status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"unpack", "-f", path("x.b2frame"), path("x.b2frame")}).status, tools::kUsageError);
  EXPECT_TRUE(file_bytes(path("in")) == measurements(1000));
  EXPECT_EQ(entries(dir_), 3U);
}

TEST_F(CframePack, RefusesPlacesThatAreNoFiles) {
  dir_.write("in", measurements(1000));
  std::filesystem::create_directory(path("directory"));
  std::filesystem::create_symlink("in", path("link"));
  for (const std::string& place :
       {path("directory"), path("link"), path("nowhere/x"), path("in/x"), path("directory/")}) {
    const Ran ran = run_cframe({"pack", "-f", path("in"), place});
    EXPECT_EQ(ran.status, tools::kUsageError) << place;
    EXPECT_NE(ran.err.find(place), std::string::npos) << ran.err;
  }
  for (const std::string& source : {path("directory"), path("missing")})
    EXPECT_EQ(run_cframe({"pack", source, path("x.b2frame")}).status, tools::kUsageError);
  EXPECT_EQ(run_cframe({"pack", "-", path("x.b2frame")}).status, tools::kUsageError);
  EXPECT_EQ(entries(dir_), 3U);
}

TEST_F(CframePack, BadOptions) {
  dir_.write("in", measurements(1000));
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
           {"--codec", "snappy"},
           {"--clevel", "10"},
           {"--filter", "trunc_prec"},
           {"--typesize", "0"},
           {"--chunksize", "3G"},
           {"--blocksize", "1G"},
           {"--workers", "0"},
           {"--chunksize", "1K", "--blocksize", "2K"},
           {"--typesize", "2000", "--blocksize", "1K"},
           {"--typesize", "2000", "--chunksize", "1K"},
       }) {
    const Ran ran = pack(options);
    EXPECT_EQ(ran.status, tools::kUsageError) << options.front();
    EXPECT_NE(ran.err.find(options.front()), std::string::npos) << ran.err;
  }
  EXPECT_EQ(entries(dir_), 1U);
}

/// Gives noise for ever, and raises the stop flag on the way.
class StoppingInput final : public tools::Input {
 public:
  explicit StoppingInput(std::atomic<bool>& stop) : stop_(stop) {}
  codec::Result<std::size_t> read(codec::ByteSpan into) override {
    for (std::uint8_t& byte : into)
      byte = static_cast<std::uint8_t>((state_ = state_ * 1664525 + 1013904223) >> 24);
    if (++reads_ == 10) stop_ = true;
    return into.size();
  }

 private:
  std::atomic<bool>& stop_;
  std::uint32_t state_ = 1;
  int reads_ = 0;
};

TEST_F(CframePack, AnInterruptLeavesNothing) {
  std::atomic<bool> stop = false;
  tools::StringOutput out;
  tools::StringOutput err;
  StoppingInput in(stop);
  tools::Io io{out, err, false, stop, &in};
  EXPECT_EQ(tools::cframe_main({"pack", "-", path("x.b2frame"), "--chunksize", "64K"}, io), tools::interrupted);
  EXPECT_EQ(err.text, "");
  EXPECT_EQ(entries(dir_), 0U);
}

TEST_F(CframePack, AnInterruptWhileWaitingForInput) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  std::atomic<bool> stop = false;
  tools::StringOutput out;
  tools::StringOutput err;
  tools::DescriptorInput in(pipe[0], stop);
  tools::Io io{out, err, false, stop, &in};
  int status = -1;
  std::thread packer([&] { status = tools::cframe_main({"pack", "-", path("x.b2frame")}, io); });
  stop = true;
  packer.join();
  EXPECT_EQ(status, tools::interrupted);
  EXPECT_EQ(entries(dir_), 0U);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_F(CframePack, TheFrameIsAsPrivateAsTheFile) {
  dir_.write("in", measurements(1000));
  ASSERT_EQ(::chmod(path("in").c_str(), 0600), 0);
  ASSERT_EQ(pack({}).status, tools::done);
  ASSERT_EQ(run_cframe({"unpack", path("x.b2frame"), path("out")}).status, tools::done);
  for (const char* name : {"x.b2frame", "out"}) {
    struct stat status = {};
    ASSERT_EQ(::stat(path(name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U) << name;
  }
}

TEST_F(CframePack, ZerosBecomeHoles) {
  constexpr std::size_t kSize = std::size_t{12} << 20;
  Bytes plain(kSize + 17);
  plain[5] = 1;
  plain[kSize / 2] = 1;
  plain.back() = 1;
  dir_.write("in", plain);
  ASSERT_EQ(pack({"--chunksize", "1M"}).status, tools::done);
  EXPECT_LT(std::filesystem::file_size(path("x.b2frame")), 10'000U);
  expect_unpacks_to(plain);
  struct stat status = {};
  ASSERT_EQ(::stat(path("out").c_str(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, static_cast<blkcnt_t>(kSize / 4));
}

TEST_F(CframePack, ADamagedFrameUnpacksToNothing) {
  dir_.write("in", measurements(100'000));
  ASSERT_EQ(pack({"--chunksize", "100K"}).status, tools::done);
  Bytes frame = file_bytes(path("x.b2frame"));
  std::fill_n(frame.begin() + 97 + 32, 2000, std::uint8_t{0xff});
  dir_.write("x.b2frame", frame);
  const Ran ran = run_cframe({"unpack", path("x.b2frame"), path("out")});
  EXPECT_EQ(ran.status, tools::kDataError);
  EXPECT_NE(ran.err.find("x.b2frame"), std::string::npos) << ran.err;
  EXPECT_EQ(entries(dir_), 2U);
}

/// What `cat` writes is what `unpack` writes, with the same options.
void expect_as_cat(const std::string& file, const std::string& out, std::vector<std::string> options) {
  options.push_back(file);
  std::vector<std::string> words = {"cat"};
  words.insert(words.end(), options.begin(), options.end());
  const Ran cat = run_cframe(words);
  words.front() = "unpack";
  words.insert(words.end(), {out, "-f"});
  const Ran ran = run_cframe(words);
  ASSERT_EQ(ran.status, cat.status) << file << ran.err;
  ASSERT_EQ(ran.status, tools::done) << file << ran.err;
  const Bytes plain = file_bytes(out);
  EXPECT_EQ(cat.out, std::string(plain.begin(), plain.end())) << file;
}

TEST_F(CframePack, UnpacksGoldenFrames) {
  std::size_t frames = 0;
  for (const Row& row : read_manifest(golden_dir() / "cframe" / "MANIFEST.tsv")) {
    if (row["sha256"] == "-" || row["offset"] != "0" || row.number("nbytes") > 2'000'000) continue;
    if (++frames % 10 != 0) continue;
    ASSERT_NO_FATAL_FAILURE(expect_as_cat(row.file("path").string(), path("out"), {}));
  }
  EXPECT_GE(frames, 100U);
}

TEST_F(CframePack, AnArrayIsUnpackedAsItShowsOnAMount) {
  const ArraySpec spec{{25, 30, 41}, {10, 12, 30}, {4, 5, 16}, 4, "<f4"};
  const Bytes items = varied_items(spec.nbytes());
  const auto kind = [](std::int64_t chunk) { return chunk % 5 == 0 ? ArrayChunk::plain : ArrayChunk::blocks; };
  const std::string file = dir_.write("a.b2nd", array_frame(spec, items, kind).build()).string();
  for (const char* form : {"npy", "flat", "chunks"})
    expect_as_cat(file, path("out"), {"--b2nd", form});
  expect_as_cat(file, path("out"), {});
  const Bytes npy = file_bytes(path("out"));
  ASSERT_EQ(npy.size(), 128 + items.size());
  EXPECT_TRUE(std::equal(items.begin(), items.end(), npy.begin() + 128));
}

}  // namespace
}  // namespace cframefs::test
