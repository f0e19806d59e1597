// cframe cat: what a frame shows as on a mount, or a part of it, on standard output.
#include <algorithm>
#include <cerrno>
#include <limits>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>

#include "frame/array_view.h"
#include "tools/array_stream.h"
#include "tools/cframe.h"

namespace cframefs::tools {

namespace {

struct CatOptions {
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t length = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t frame_offset = 0;
  unsigned workers = 0;
  frame::ArrayForm b2nd = frame::ArrayForm::npy;
};

int run_cat(const CatOptions& options, Io& io) {
  auto container = open_frame(options.file, options.frame_offset);
  if (!container) return report(io, container.error());
  const auto view = frame::make_view(std::move(*container), options.b2nd, options.file.ends_with(".b2nd"));
  if (!view) {
    codec::Error error = view.error();
    error.path = options.file;
    return report(io, error);
  }
  const std::uint64_t size = (*view)->size();
  const std::uint64_t begin = std::min(options.offset, size);
  const std::uint64_t length = std::min(options.length, size - begin);

  bool output_failed = false;
  const Sink sink = [&](codec::ByteView bytes) {
    auto written = io.out.write(bytes);
    output_failed = !written;
    return written;
  };
  const unsigned workers = options.workers == 0 ? available_workers() : options.workers;
  const auto streamed = stream_view(**view, frame::FlatOffset{begin}, length, workers, sink, io.stop);
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

SubcommandRun declare_cat(CLI::App& app) {
  auto options = std::make_shared<CatOptions>();
  app.add_option("FILE", options->file, "Frame, or folder of a sparse frame")->required()->type_name("");
  add_size_option(app, "--offset", options->offset, "First plain byte (0); past the end there is nothing");
  add_size_option(app, "--length", options->length, "Plain bytes at most (all)");
  add_size_option(app, "--frame-offset", options->frame_offset, "Where the frame starts inside the file (0)");
  add_array_form_option(app, options->b2nd);
  app.add_option("--workers", options->workers, "Decoding threads (one per CPU)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  return [options](Io& io) { return run_cat(*options, io); };
}

}  // namespace cframefs::tools
