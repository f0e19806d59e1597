// cframe map: a picture of where the space of a frame goes.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include <CLI/CLI.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/cframe/cframe.h"
#include "tools/cframe/frame_checker.h"
#include "tools/cframe/map_views.h"
#include "tools/lib/frame_files.h"
#include "tools/lib/input_file.h"
#include "tools/lib/progress.h"
#include "tools/lib/result_file.h"
#include "tools/stream/parallel_reader.h"

namespace cframefs::tools {

namespace {

constexpr std::size_t kPipeColumns = 80;
constexpr std::size_t kMostColumns = 400;
constexpr std::size_t kTextRows = 8;
constexpr std::size_t kPictureRows = 20;

struct MapOptions {
  std::string file;
  std::string output;
  std::uint64_t offset = 0;
  unsigned workers = 0;
  bool verify = false;
  bool force = false;
  bool as_json = false;
};

enum class Form : std::uint8_t { text, json, svg, png };

codec::Result<Form> form_of(const MapOptions& options) {
  const std::string& output = options.output;
  if (output.empty()) return options.as_json ? Form::json : Form::text;
  if (output == kStandardStream || output.ends_with(".svg")) return Form::svg;
  if (output.ends_with(".png")) return Form::png;
  return codec::invalid("'" + output + "' must end in .svg or .png, or be -");
}

std::size_t columns_of(Form form, const Io& io) {
  winsize size{};
  if (form != Form::text || !io.out_is_terminal || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return kPipeColumns;
  return std::clamp<std::size_t>(size.ws_col, 20, kMostColumns);
}

/// Returns the numbers of the chunks that cannot be decoded. Sets `other` to the first error outside of chunks.
std::set<std::int64_t> damaged_chunks(const MapOptions& options, const std::string& path, Io& io,
                                      std::optional<codec::Error>& other) {
  Progress progress(io, "verifying", Progress::Unit::bytes);
  const std::uint64_t total = stored_bytes(path);
  FrameChecker* running = nullptr;
  FrameChecker checker(options.workers == 0 ? available_workers() : options.workers, io.stop,
                       [&] { progress.update(running->bytes_done(), total); });
  running = &checker;
  checker.add({path, total}, options.offset);
  checker.finish();
  std::set<std::int64_t> damaged;
  for (const CheckReport& report : checker.take_reports()) {
    for (const codec::Error& error : report.errors) {
      if (error.chunk) damaged.insert(*error.chunk);
      if (!other) other = error;
    }
  }
  return damaged;
}

codec::Result<void> write_picture(const Picture& picture, Form form, const MapOptions& options, Io& io) {
  auto file = ResultFile::create(options.output, options.force, FileTraits(), io);
  if (!file) return codec::Failure(file.error());
  const std::string svg = form == Form::svg ? picture.svg() : std::string();
  const std::vector<std::uint8_t> bytes =
      form == Form::svg ? std::vector<std::uint8_t>(svg.begin(), svg.end()) : picture.png();
  if (auto put = frame::system_files().pwrite(file->handle(), bytes, frame::FileOffset{0}); !put) return put;
  return file->publish();
}

/// Returns what the file has from the frame's first byte on, or what the files of a sparse frame have.
std::uint64_t bytes_to_map(const frame::Container& container, const std::string& path, std::uint64_t offset) {
  // What follows a frame inside of another file does not belong to it.
  return offset == 0 ? stored_bytes(path) : container.parameters().frame_length;
}

int run_map(const MapOptions& options, Io& io) {
  const auto form = form_of(options);
  if (!form) return report(io, with_path(form.error(), "--output"));
  const auto input = InputFile::open(options.file, io);
  if (!input) return report_failure(io, input.error(), options.file);
  const auto container = open_frame(*input, options.offset);
  if (!container) return report_failure(io, container.error(), input->name());
  std::optional<codec::Error> damage;
  MapRequest request;
  if (options.verify) request.damaged = damaged_chunks(options, input->path(), io, damage);
  const bool is_picture = *form == Form::svg || *form == Form::png;
  const std::size_t columns = is_picture ? kPictureColumns : columns_of(*form, io);
  const std::size_t rows = is_picture ? kPictureRows : kTextRows;
  request.space_cells = request.order_cells = columns * rows;
  request.file_bytes = bytes_to_map(**container, input->path(), options.offset);
  Progress progress(io, "reading chunk headers", Progress::Unit::items);
  auto map = map_frame(**container, request, io.stop, progress);
  progress.finish();
  if (!map) return report_failure(io, map.error(), input->name());
  if (io.stop.load()) return interrupted;
  if (!map->first_damage) map->first_damage = damage;
  if (map->first_damage) map->first_damage = with_path(*map->first_damage, input->name());
  const auto print = [&](const std::string& shown) {
    const int written = emit(io, shown);
    return std::max<int>(written, map->first_damage ? report(io, *map->first_damage) : done);
  };
  if (*form == Form::json) return print(map_json(input->name(), **container, *map));
  MapText text = text_of(input->name(), **container, *map);
  if (*form == Form::text) {
    const char* const no_color = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe): nothing sets it
    const bool colors = io.out_is_terminal && (no_color == nullptr || *no_color == '\0');
    return print(map_text(text, *map, columns, colors));
  }
  // A picture has no standard error beside it.
  if (map->first_damage) text.warnings.push_back(codec::describe(*map->first_damage));
  const Picture picture = map_picture(text, *map);
  if (options.output == kStandardStream) {
    if (const int written = emit(io, picture.svg()); written != done) return written;
  } else if (auto written = write_picture(picture, *form, options, io); !written) {
    return report_failure(io, written.error(), options.output);
  }
  return map->first_damage ? report(io, *map->first_damage) : done;
}

}  // namespace

SubcommandRun declare_map(CLI::App& app) {
  auto options = std::make_shared<MapOptions>();
  add_input_option(app, "FILE", options->file);
  CLI::Option* const output =
      app.add_option("-o,--output", options->output, "Write a picture: a name that ends in .svg or .png, or - (SVG)")
          ->type_name("PICTURE");
  app.add_flag("--json", options->as_json, "Print JSON: one object on one line")->excludes(output);
  app.add_flag("--verify", options->verify, "Decode everything, and show each damaged chunk");
  add_size_option(app, "--frame-offset", options->offset, "Offset of the frame in the file (0)");
  app.add_flag("-f,--force", options->force, "Replace the picture if it exists");
  app.add_option("--workers", options->workers, "Decoding threads of --verify (one per CPU)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  return [options](Io& io) { return run_map(*options, io); };
}

}  // namespace cframefs::tools
