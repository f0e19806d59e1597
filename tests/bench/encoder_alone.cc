// The codec without a file system: what writing through a mount is held against.
//
//   bench_encoder encode FILE [--codec=zstd] [--clevel=5] [--typesize=4] [--chunksize=1M] [--workers=N]
//       encodes the whole file, which is in memory, into memory
//   bench_encoder recode FRAME --chunks=LIST [--workers=N]
//       decodes each of the chunks and encodes it again, once, with the frame's own parameters; LIST is a file of
//       numbers
//
// Prints one line of JSON: seconds, MBps (10^6 plain bytes per second), bytes, stored. What was encoded is counted and
// let go: nothing is copied or written, which favours this side of the comparison.
//
// Errors: one line on standard error; exit status 1 if something failed, 2 for wrong usage.
#include <atomic>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "codec/chunk_encoder.h"
#include "codec/format/filter_registry.h"
#include "codec/stream/codec_table.h"
#include "codec/stream/decode_context.h"
#include "frame/cframe/cframe.h"
#include "frame/cframe/frame_encoding.h"
#include "frame/container/chunk_reader.h"
#include "frame/io/file_ops.h"
#include "frame/open/open.h"
#include "tests/bench/client_measure.h"

namespace cframefs::bench {
namespace {

struct Options {
  std::string path;
  std::string codec = "zstd";
  int clevel = 5;
  std::int32_t typesize = 4;
  std::uint64_t chunksize = std::uint64_t{1} << 20;
  std::string chunks;
  unsigned workers = std::max(1U, std::thread::hardware_concurrency());
};

/// The value, or an exception with the error's text.
template <class T>
T must(codec::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().reason);
  return std::move(*result);
}

/// Calls work(worker, index) for each index below `count`, on all workers; seconds that took.
double on_all(unsigned workers, std::size_t count, const std::function<void(unsigned, std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> failures(workers);
  std::vector<std::thread> threads;
  const double begin = monotonic_seconds();
  for (unsigned worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      try {
        for (std::size_t index = next++; index < count; index = next++)
          work(worker, index);
      } catch (...) {
        failures[worker] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  const double seconds = monotonic_seconds() - begin;
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return seconds;
}

nlohmann::json report(double seconds, std::uint64_t bytes, std::uint64_t stored) {
  return {
      {"seconds", seconds}, {"MBps", static_cast<double>(bytes) / seconds / 1e6}, {"bytes", bytes}, {"stored", stored}};
}

codec::ByteView view_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

nlohmann::json encode(const Options& options) {
  codec::EncodeParameters parameters;
  parameters.compcode = must(codec::find_codec(options.codec));
  parameters.filters = must(codec::filters_named("shuffle"));
  parameters.typesize = options.typesize;
  parameters.clevel = options.clevel;
  const File file(options.path);
  const Buffer plain(file.size());
  if (file.read_at(plain.bytes(), 0) != file.size()) throw std::runtime_error("short read");
  const codec::ByteView bytes = view_of(plain.bytes());
  std::atomic<std::uint64_t> stored{0};
  std::vector<codec::EncodeContext> contexts(options.workers);
  const std::size_t count = (bytes.size() + options.chunksize - 1) / options.chunksize;
  const double seconds = on_all(options.workers, count, [&](unsigned worker, std::size_t chunk) {
    const std::size_t begin = chunk * options.chunksize;
    const auto part = bytes.subspan(begin, std::min<std::size_t>(options.chunksize, bytes.size() - begin));
    stored += must(codec::encode_chunk(contexts[worker], parameters, part)).bytes.size();
  });
  return report(seconds, bytes.size(), stored);
}

nlohmann::json recode(const Options& options) {
  const auto container =
      must(frame::open_path(frame::system_files(), options.path, std::make_shared<frame::IndexCache>()));
  const codec::EncodeParameters parameters = frame::encode_parameters(container->parameters());
  std::vector<std::int64_t> chunks;
  std::ifstream list(options.chunks);
  for (std::int64_t chunk = 0; list >> chunk;)
    chunks.push_back(chunk);
  if (chunks.empty()) throw std::runtime_error("no chunks in " + options.chunks);
  const auto chunksize = static_cast<std::size_t>(container->parameters().chunksize);
  std::vector<codec::EncodeContext> encoders(options.workers);
  std::vector<codec::DecodeContext> decoders(options.workers);
  std::vector<std::vector<std::uint8_t>> buffers(options.workers, std::vector<std::uint8_t>(chunksize));
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> stored{0};
  const double seconds = on_all(options.workers, chunks.size(), [&](unsigned worker, std::size_t index) {
    const auto reader = must(frame::ChunkReader::open(*container, frame::ChunkNumber{chunks[index]}));
    const auto plain = codec::ByteSpan(buffers[worker]).first(static_cast<std::size_t>(reader->decoder().nbytes()));
    const auto decoded = frame::decode_whole(decoders[worker], *reader, plain);
    if (!decoded) throw std::runtime_error(decoded.error().reason);
    stored += must(codec::encode_chunk(encoders[worker], parameters, plain)).bytes.size();
    bytes += plain.size();
  });
  return report(seconds, bytes, stored);
}

int encoder_main(int argc, char** argv) {
  Options options;
  CLI::App app{"Encodes on all cores, without a file system."};
  app.require_subcommand(1);
  CLI::App* const encoding = app.add_subcommand("encode", "Encode a file in memory");
  encoding->add_option("path", options.path)->required();
  encoding->add_option("--codec", options.codec);
  encoding->add_option("--clevel", options.clevel);
  encoding->add_option("--typesize", options.typesize);
  encoding->add_option("--chunksize", options.chunksize)->transform(CLI::AsSizeValue(false));
  CLI::App* const recoding = app.add_subcommand("recode", "Decode and encode chunks of a frame");
  recoding->add_option("path", options.path)->required();
  recoding->add_option("--chunks", options.chunks, "File of chunk numbers")->required();
  for (CLI::App* command : {encoding, recoding})
    command->add_option("--workers", options.workers)->check(CLI::Range(1, 1024));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  std::printf("%s\n", (encoding->parsed() ? encode(options) : recode(options)).dump().c_str());
  return 0;
}

}  // namespace
}  // namespace cframefs::bench

int main(int argc, char** argv) {
  try {
    return cframefs::bench::encoder_main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_encoder: %s\n", error.what());
    return 1;
  }
}
