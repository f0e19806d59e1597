// cframe compact: rewrites frames without unreferenced bytes.
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>

#include "frame/write/frame_space.h"
#include "tools/cframe/cframe.h"
#include "tools/cframe/open_writer.h"
#include "tools/lib/sizes.h"

namespace cframefs::tools {

namespace {

struct CompactOptions {
  std::vector<std::string> files;
  double wait = 5;
  bool quiet = false;
};

codec::Result<std::string> compact_one(const std::string& file, double wait) {
  auto opened = open_writer(file, wait);
  if (!opened) return codec::Failure(opened.error());
  frame::FrameWriter& writer = *opened->writer;
  const std::uint64_t before = writer.parameters().frame_length;
  if (auto done = frame::FrameSpace(writer).compact(); !done) {
    return codec::Failure(with_path(done.error(), file));
  }
  return printable(file) + ": " + human_size(before) + " became " + human_size(writer.parameters().frame_length) + "\n";
}

int run_compact(const CompactOptions& options, Io& io) {
  int status = done;
  for (const std::string& file : options.files) {
    if (io.stop.load()) return interrupted;
    const auto text = compact_one(file, options.wait);
    if (!text) {
      status = std::max<int>(status, report(io, text.error()));
    } else if (!options.quiet) {
      status = std::max<int>(status, emit(io, *text));
    }
  }
  return status;
}

}  // namespace

SubcommandRun declare_compact(CLI::App& app) {
  auto options = std::make_shared<CompactOptions>();
  app.add_option("FILE", options->files, "Frames, or directories of sparse frames")->required()->type_name("");
  app.add_flag("-q,--quiet", options->quiet, "Print only errors");
  add_wait_option(app, options->wait);
  return [options](Io& io) { return run_compact(*options, io); };
}

}  // namespace cframefs::tools
