// cframe compact: rewrites frames without unreferenced bytes.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>

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

/// Returns the sum of the lengths of the files that make up a frame: its file, or the files of its directory. A file
/// that cannot be looked at counts as 0 bytes.
std::uint64_t total_length(const std::string& frame) {
  namespace stdfs = std::filesystem;
  const auto length = [](const stdfs::path& file) {
    std::error_code error;
    const std::uintmax_t size = stdfs::file_size(file, error);
    return error ? 0 : std::uint64_t{size};
  };
  std::error_code error;
  if (!stdfs::is_directory(frame, error)) return length(frame);
  std::uint64_t sum = 0;
  for (stdfs::directory_iterator entry(frame, error), end; !error && entry != end; entry.increment(error))
    sum += length(entry->path());
  return sum;
}

codec::Result<std::string> compact_one(const std::string& file, double wait) {
  auto opened = open_writer(file, wait);
  if (!opened) return codec::Failure(opened.error());
  frame::FrameWriter& writer = *opened->writer;
  const std::uint64_t before = total_length(file);
  if (auto done = frame::FrameSpace(writer).compact(); !done) {
    return codec::Failure(with_path(done.error(), file));
  }
  return printable(file) + ": " + human_size(before) + " became " + human_size(total_length(file)) + "\n";
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
