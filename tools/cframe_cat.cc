// cframe cat: the plain bytes of a frame, or a part of them, on standard output.
#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>

#include "tools/cframe.h"
#include "tools/flat_stream.h"

namespace cframefs::tools {

namespace {

struct CatOptions {
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t length = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t frame_offset = 0;
  unsigned workers = 0;
  std::string b2nd;
};

int run_cat(const CatOptions& options, Io& io) {
  const auto container = open_frame(options.file, options.frame_offset);
  if (!container) return report(io, container.error());
  if (options.b2nd.empty()) {
    if (auto plain = refuse_array(**container); !plain) {
      plain.error().path = options.file;
      return report(io, plain.error());
    }
  }
  const std::uint64_t size = (*container)->parameters().nbytes;
  const std::uint64_t begin = std::min(options.offset, size);
  const std::uint64_t length = std::min(options.length, size - begin);

  bool output_failed = false;
  const Sink sink = [&](codec::ByteView bytes) {
    auto written = io.out.write(bytes);
    output_failed = !written;
    return written;
  };
  const unsigned workers = options.workers == 0 ? available_workers() : options.workers;
  const auto streamed = stream_flat(**container, frame::FlatOffset{begin}, length, workers, sink, io.stop);
  if (io.stop.load()) return interrupted;
  if (streamed) return done;
  codec::Error error = streamed.error();
  // Whoever reads has seen enough: nobody's fault.
  if (output_failed && error.sys == EPIPE) return done;
  if (!output_failed && error.path.empty()) error.path = options.file;
  if (output_failed) error.reason = "standard output: " + error.reason;
  return report(io, error);
}

}  // namespace

Subcommand add_cat(CLI::App& program) {
  auto options = std::make_shared<CatOptions>();
  CLI::App* app = program.add_subcommand("cat", "Write the plain bytes of a frame to standard output");
  app->add_option("FILE", options->file, "Frame, or folder of a sparse frame")->required()->type_name("");
  add_size_option(*app, "--offset", options->offset, "First plain byte (0); past the end there is nothing");
  add_size_option(*app, "--length", options->length, "Plain bytes at most (all)");
  add_size_option(*app, "--frame-offset", options->frame_offset, "Where the frame starts inside the file (0)");
  app->add_option("--b2nd", options->b2nd, "Write an n-d array as stored: chunk order, padding included")
      ->check(CLI::IsMember({"chunks"}))
      ->type_name("chunks");
  app->add_option("--workers", options->workers, "Decoding threads (one per CPU)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  return {app, [options](Io& io) { return run_cat(*options, io); }};
}

}  // namespace cframefs::tools
