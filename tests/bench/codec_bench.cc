// How fast blocks decode: every codec, filter pipeline and typesize of the frames at hand, in bytes of plain data per
// second, beside what copying the same number of bytes costs in the same run (counter `of_memcpy`, 1 = as fast).
//
// Real frames are the input, so that nothing is measured that only our encoder makes: each *.b2frame beneath the
// directory that CFRAMEFS_BENCH_FRAMES names, or else the project's golden frames, with enough data in it to be timed
// (kMinPlain). Of each, chunks of up to kMaxPlain plain bytes are read into memory before the clock starts; one
// iteration decodes them all, block by block, as the mount does. The label says what the chunks are: typesize, block,
// stored and plain sizes.
//
// Then the same and encoding for every codec, filter pipeline and typesize (matrix_bench.h). Single-threaded. A frame
// that cannot be opened or decoded is reported as an error of its benchmark, not left out.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "codec/chunk_decoder.h"
#include "codec/stream/codec_table.h"
#include "frame/io/file_ops.h"
#include "frame/open/container_info.h"
#include "frame/open/open.h"
#include "tests/bench/matrix_bench.h"

namespace cframefs {
namespace {

using codec::Result;

constexpr std::uint64_t kMinPlain = std::uint64_t{256} << 10;
constexpr std::uint64_t kMaxPlain = std::uint64_t{8} << 20;
constexpr std::size_t kCopySize = std::size_t{8} << 20;

struct LoadedChunk {
  codec::ChunkDecoder decoder;
  std::vector<std::uint8_t> stored;
};

/// What a frame gave: chunks ready to be decoded and what is to be said of them.
struct Input {
  std::vector<LoadedChunk> chunks;
  std::uint64_t plain = 0;
  std::uint64_t stored = 0;
};

Result<void> load_chunk(const frame::Container& container, frame::ChunkNumber number, Input& input) {
  const auto location = container.locate_chunk(number);
  if (!location) return codec::Failure(location.error());
  if (location->special != codec::SpecialValue::none) return {};
  std::vector<std::uint8_t> head(std::min<std::uint64_t>(location->limit, codec::kExtendedHeaderLength));
  if (auto read = location->source->read(location->offset, head); !read) return read;
  const auto header = codec::parse_chunk_header(head);
  if (!header) return codec::Failure(header.error());
  if (header->special != codec::SpecialValue::none || header->cbytes < 0) return {};
  std::vector<std::uint8_t> stored(static_cast<std::size_t>(header->cbytes));
  if (stored.size() > location->limit) return codec::corrupt("chunk longer than its space");
  if (auto read = location->source->read(location->offset, stored); !read) return read;
  auto decoder = codec::ChunkDecoder::parse(stored, container.environment());
  if (!decoder) return codec::Failure(decoder.error());
  input.plain += decoder->nbytes();
  input.stored += stored.size();
  input.chunks.push_back({*std::move(decoder), std::move(stored)});
  return {};
}

Result<Input> load(const frame::Container& container) {
  Input input;
  for (std::int64_t number = 0; number < container.chunk_count() && input.plain < kMaxPlain; ++number) {
    if (auto loaded = load_chunk(container, frame::ChunkNumber{number}, input); !loaded)
      return codec::Failure(loaded.error());
  }
  return input;
}

/// Decodes every block of `chunk` into its place in `plain`.
Result<void> decode(codec::DecodeContext& context, const LoadedChunk& chunk, codec::ByteSpan plain) {
  const codec::ChunkDecoder& decoder = chunk.decoder;
  const codec::ByteView stored(chunk.stored);
  codec::ByteView reference;
  for (std::uint32_t block = 0; block < decoder.block_count(); ++block) {
    const codec::ByteRange range = decoder.block_range(block);
    const codec::ByteRange from = decoder.stored_range(block);
    const codec::ByteSpan out = plain.subspan(range.begin, range.size());
    if (auto done = decoder.decode_block(context, block, stored.subspan(from.begin, from.size()), out, reference);
        !done)
      return done;
    if (block == 0 && decoder.needs_reference()) reference = out;
  }
  return {};
}

void measure_copy(benchmark::State& state) {
  const std::vector<std::uint8_t> from(kCopySize, 1);
  std::vector<std::uint8_t> to(kCopySize);
  while (state.KeepRunning()) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(kCopySize) * state.iterations());
}

void measure_decode(benchmark::State& state, const std::string& path) {
  const auto container = frame::open_path(frame::system_files(), path, std::make_shared<frame::IndexCache>());
  if (!container) return state.SkipWithError(codec::describe(container.error()).c_str());
  const auto input = load(**container);
  if (!input) return state.SkipWithError(codec::describe(input.error()).c_str());
  std::uint32_t widest = 0;
  for (const LoadedChunk& chunk : input->chunks)
    widest = std::max(widest, chunk.decoder.nbytes());
  std::vector<std::uint8_t> plain(widest);
  codec::DecodeContext context;
  while (state.KeepRunning()) {
    for (const LoadedChunk& chunk : input->chunks) {
      if (auto done = decode(context, chunk, codec::ByteSpan(plain).first(chunk.decoder.nbytes())); !done)
        return state.SkipWithError(codec::describe(done.error()).c_str());
    }
    benchmark::ClobberMemory();
  }
  count_bytes(state, input->plain);
  const codec::ChunkHeader& header = input->chunks.front().decoder.header();
  state.SetLabel("typesize " + std::to_string(header.typesize) + ", block " + std::to_string(header.blocksize) + ", " +
                 std::to_string(input->chunks.size()) + " chunks, " + std::to_string(input->stored) + " -> " +
                 std::to_string(input->plain) + " bytes");
}

/// "CODEC/FILTERS/tTYPESIZE/FILE" of a frame worth timing.
std::optional<std::string> name_of(const std::filesystem::path& path) {
  const auto container = frame::open_path(frame::system_files(), path.string(), std::make_shared<frame::IndexCache>());
  if (!container) return "unreadable/" + path.filename().string();
  const frame::FrameParameters& parameters = (*container)->parameters();
  if (parameters.nbytes < kMinPlain) return std::nullopt;
  const auto input = load(**container);
  if (input && input->plain < kMinPlain) return std::nullopt;
  return codec::codec_name(parameters.compcode) + "/" + frame::filters_name(parameters) + "/t" +
         std::to_string(parameters.typesize) + "/" + path.stem().string();
}

void register_frames(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.path().extension() == ".b2frame" && entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::filesystem::path& path : paths) {
    const auto name = name_of(path);
    if (!name) continue;
    benchmark::RegisterBenchmark(name->c_str(), [path](benchmark::State& state) {
      measure_decode(state, path.string());
    })->Unit(benchmark::kMillisecond);
  }
}

/// Prints as the console does and keeps the rate of memcpy, for the benchmarks that come after it.
class Reporter : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const auto rate = run.counters.find("bytes_per_second");
      if (run.run_name.function_name == "memcpy" && rate != run.counters.end()) copy_rate = rate->second.value;
    }
    ConsoleReporter::ReportRuns(runs);
  }
};

}  // namespace
}  // namespace cframefs

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const char* const chosen = std::getenv("CFRAMEFS_BENCH_FRAMES");
  benchmark::RegisterBenchmark("memcpy", cframefs::measure_copy)->Unit(benchmark::kMillisecond);
  cframefs::register_frames(chosen != nullptr ? chosen : CFRAMEFS_GOLDEN_FRAMES);
  cframefs::register_matrix();
  cframefs::Reporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return 0;
}
