// cframe cat: writes the content that a frame shows on a mount, or a part of it, to standard output.
#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>

#include "frame/array/array_view.h"
#include "tools/cframe/cframe.h"

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
  const auto input = InputFile::open(options.file, io);
  if (!input) return report_failure(io, input.error(), options.file);
  auto container = open_frame(*input, options.frame_offset);
  if (!container) return report(io, container.error());
  const auto view = frame::make_view(std::move(*container), options.b2nd, options.file.ends_with(".b2nd"));
  if (!view) return report(io, with_path(view.error(), input->name()));
  const std::uint64_t size = (*view)->size();
  const std::uint64_t begin = std::min(options.offset, size);
  const std::uint64_t length = std::min(options.length, size - begin);
  return write_out(**view, frame::FlatOffset{begin}, length, options.workers, input->name(), io);
}

}  // namespace

SubcommandRun declare_cat(CLI::App& app) {
  auto options = std::make_shared<CatOptions>();
  add_input_option(app, "FILE", options->file);
  add_size_option(app, "--offset", options->offset, "First uncompressed byte (0); beyond the end nothing is written");
  add_size_option(app, "--length", options->length, "Largest number of uncompressed bytes to write (all)");
  add_size_option(app, "--frame-offset", options->frame_offset, "Offset of the frame in the file (0)");
  add_array_form_option(app, options->b2nd);
  app.add_option("--workers", options->workers, "Decoding threads (one per CPU)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  return [options](Io& io) { return run_cat(*options, io); };
}

}  // namespace cframefs::tools
