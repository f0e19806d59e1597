#include "tests/bench/matrix_bench.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "codec/chunk_decoder.h"
#include "codec/chunk_encoder.h"
#include "codec/format/filter_registry.h"
#include "codec/stream/codec_table.h"

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

void say_ratio(benchmark::State& state, std::size_t plain, std::size_t stored) {
  char label[32];
  std::snprintf(label, sizeof label, "ratio %.2f", static_cast<double>(plain) / static_cast<double>(stored));
  state.SetLabel(label);
}

void measure_encode(benchmark::State& state, const codec::EncodeParameters& parameters) {
  const std::vector<std::uint8_t> plain = measurements(static_cast<std::size_t>(parameters.typesize));
  codec::EncodeContext context;
  codec::EncodedChunk chunk;
  while (state.KeepRunning()) {
    const auto done = codec::encode_into(context, parameters, plain, chunk);
    if (!done) return state.SkipWithError(done.error().reason.c_str());
    benchmark::ClobberMemory();
  }
  count_bytes(state, plain.size());
  say_ratio(state, plain.size(), chunk.bytes.size());
}

void measure_decode(benchmark::State& state, const codec::EncodeParameters& parameters) {
  std::vector<std::uint8_t> plain = measurements(static_cast<std::size_t>(parameters.typesize));
  codec::EncodeContext encoding;
  const auto chunk = codec::encode_chunk(encoding, parameters, plain);
  if (!chunk) return state.SkipWithError(chunk.error().reason.c_str());
  const auto decoder = codec::ChunkDecoder::parse(chunk->bytes);
  if (!decoder) return state.SkipWithError(decoder.error().reason.c_str());
  codec::DecodeContext context;
  while (state.KeepRunning()) {
    const auto done = codec::decode_range(context, *decoder, chunk->bytes, 0, plain);
    if (!done) return state.SkipWithError(done.error().reason.c_str());
    benchmark::ClobberMemory();
  }
  count_bytes(state, plain.size());
  say_ratio(state, plain.size(), chunk->bytes.size());
}

}  // namespace

void count_bytes(benchmark::State& state, std::size_t each) {
  const auto bytes = static_cast<std::int64_t>(each) * state.iterations();
  state.SetBytesProcessed(bytes);
  if (copy_rate > 0) {
    state.counters["of_memcpy"] =
        benchmark::Counter(static_cast<double>(bytes) / copy_rate, benchmark::Counter::kIsRate);
  }
}

void register_matrix() {
  using Measure = void (*)(benchmark::State&, const codec::EncodeParameters&);
  const auto add = [](const std::string& name, Measure measure, const codec::EncodeParameters& parameters) {
    benchmark::RegisterBenchmark(name.c_str(), [measure, parameters](benchmark::State& state) {
      measure(state, parameters);
    })->Unit(benchmark::kMillisecond);
  };
  for (const char* codec : {"blosclz", "lz4", "lz4hc", "zlib", "zstd"}) {
    for (const char* filters : {"none", "shuffle", "bitshuffle", "delta", "delta+shuffle", "shuffle+bytedelta"}) {
      for (const int typesize : {1, 2, 4, 8, 16}) {
        codec::EncodeParameters parameters;
        parameters.compcode = *codec::find_codec(codec);
        parameters.filters = *codec::filters_named(filters);
        parameters.typesize = typesize;
        const std::string cell = std::string(codec) + "/" + filters + "/t" + std::to_string(typesize);
        add("decode/" + cell, measure_decode, parameters);
        add("encode/" + cell, measure_encode, parameters);
      }
    }
  }
}

}  // namespace cframefs
