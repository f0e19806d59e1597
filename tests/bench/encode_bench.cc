#include "tests/bench/encode_bench.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "codec/chunk_encoder.h"
#include "codec/names.h"

namespace cframefs {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;

/// Integers of `typesize` bytes that go up and down smoothly, with noise in their lowest bits.
std::vector<std::uint8_t> measurements(std::size_t typesize) {
  std::mt19937 random(1);
  std::vector<std::uint8_t> bytes(kChunk);
  const double scale = std::pow(2.0, 8.0 * static_cast<double>(std::min<std::size_t>(typesize, 6)) - 2);
  for (std::size_t item = 0; (item + 1) * typesize <= bytes.size(); ++item) {
    const double wave = 1 + std::sin(static_cast<double>(item) * 0.0003);
    const auto value = static_cast<std::uint64_t>(scale * wave) ^ (random() & 15);
    for (std::size_t byte = 0; byte < typesize; ++byte)
      bytes[item * typesize + byte] = byte < 8 ? static_cast<std::uint8_t>(value >> 8 * byte) : 0;
  }
  return bytes;
}

void measure_encode(benchmark::State& state, const codec::EncodeParameters& parameters) {
  const std::vector<std::uint8_t> plain = measurements(static_cast<std::size_t>(parameters.typesize));
  codec::EncodeContext context;
  std::size_t stored = 0;
  for (auto _ : state) {
    const auto chunk = codec::encode_chunk(context, parameters, plain);
    if (!chunk) return state.SkipWithError(chunk.error().reason.c_str());
    stored = chunk->bytes.size();
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(plain.size()) * state.iterations());
  char label[32];
  std::snprintf(label, sizeof label, "ratio %.2f", static_cast<double>(plain.size()) / static_cast<double>(stored));
  state.SetLabel(label);
}

}  // namespace

void register_encoders() {
  for (const char* codec : {"blosclz", "lz4", "lz4hc", "zlib", "zstd"}) {
    for (const char* filters : {"none", "shuffle", "bitshuffle", "delta+shuffle", "shuffle+bytedelta"}) {
      for (const int typesize : {1, 2, 4, 8, 16}) {
        codec::EncodeParameters parameters;
        parameters.compcode = *codec::codec_named(codec);
        parameters.filters = *codec::filters_named(filters);
        parameters.typesize = typesize;
        const std::string name = std::string("encode/") + codec + "/" + filters + "/t" + std::to_string(typesize);
        benchmark::RegisterBenchmark(name.c_str(), [parameters](benchmark::State& state) {
          measure_encode(state, parameters);
        })->Unit(benchmark::kMillisecond);
      }
    }
  }
}

}  // namespace cframefs
