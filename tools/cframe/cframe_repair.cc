// cframe repair: cuts an unfinished commit off a frame, or saves the readable parts of a damaged frame into a new one.
#include <algorithm>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "frame/base/suffixes.h"
#include "frame/cframe/b2nd_meta.h"
#include "frame/repair/salvage.h"
#include "frame/write/frame_space.h"
#include "frame/write/new_frame_file.h"
#include "tools/cframe/cframe.h"
#include "tools/cframe/frame_saver.h"
#include "tools/cframe/open_writer.h"
#include "tools/lib/result_file.h"
#include "tools/lib/result_name.h"
#include "tools/lib/sizes.h"

namespace cframefs::tools {

using codec::Result;

namespace {

struct RepairOptions {
  std::string file;
  std::optional<std::string> out;
  double wait = 5;
  bool as_json = false;
  bool quiet = false;
};

std::string json_text_of(const nlohmann::json& info) {
  return info.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// Repairs the frame in place: cuts off the bytes behind it.
int cut_tail(const RepairOptions& options, Io& io) {
  auto opened = open_writer(options.file, options.wait);
  if (!opened) {
    const ExitStatus status = report(io, opened.error());
    if (status == kDataError) io.err.print("cframe: 'cframe repair FILE OUT' saves the readable chunks\n");
    return status;
  }
  const auto cut = frame::FrameSpace(*opened->writer).cut_tail();
  if (!cut) return report(io, with_path(cut.error(), options.file));
  if (options.as_json) return emit(io, json_text_of({{"path", options.file}, {"cut", *cut}}));
  if (options.quiet) return done;
  if (*cut == 0) return emit(io, printable(options.file) + ": nothing to repair\n");
  return emit(io, printable(options.file) + ": cut off " + human_size(*cut) + " of an unfinished commit\n");
}

Result<frame::Salvage> open_salvage(const std::string& path) {
  frame::ReadFileOps& files = frame::system_files();
  const auto fd = files.open_named(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return codec::Failure(fd.error());
  const auto file = std::make_shared<const frame::Descriptor>(files, *fd);
  const auto status = files.status(*fd);
  if (!status) return codec::Failure(status.error());
  if (!S_ISREG(status->st_mode)) return codec::unsupported("only contiguous frames can be repaired");
  const auto size = static_cast<std::uint64_t>(status->st_size);
  return frame::open_damaged(frame::file_source(files, file, {}, size), std::make_shared<frame::IndexCache>());
}

/// Returns "6 chunks, 1 lost", or, if chunks that the header promises were not found, "4 of 10 chunks, 6 lost".
std::string saved_text(const frame::Salvage& salvage, std::int64_t lost) {
  const std::int64_t chunks = salvage.container->chunk_count();
  if (!salvage.missing_chunks) {
    return fmt::format("{} chunks, {}the original number is not known", chunks,
                       (lost > 0 ? std::to_string(lost) + " of them lost; " : ""));
  }
  const std::int64_t missing = *salvage.missing_chunks;
  const std::string of = missing > 0 ? fmt::format(" of {}", chunks + missing) : "";
  return fmt::format("{}{} chunks, {} lost", chunks, of, lost + missing);
}

/// Returns saved_text() as JSON; "chunks" counts those of the new frame, "missing" those that the search did not find.
nlohmann::json saved_json(const RepairOptions& options, const frame::Salvage& salvage, std::int64_t lost) {
  nlohmann::json info = {{"path", options.file},
                         {"out", *options.out},
                         {"chunks", salvage.container->chunk_count()},
                         {"lost", lost},
                         {"losses", salvage.losses}};
  info["missing"] = salvage.missing_chunks ? nlohmann::json(*salvage.missing_chunks) : nlohmann::json();
  return info;
}

codec::Result<frame::NewFrame> frame_like(const frame::FrameContainer& from) {
  frame::NewFrame like;
  like.encode = frame::encode_parameters(from.parameters());
  like.chunksize = from.parameters().chunksize;
  auto layers = from.metalayers();
  if (!layers) return codec::Failure(layers.error());
  like.metalayers = std::move(*layers);
  return like;
}

/// Returns the parameters of the new frame. invalid: its name has the suffix of another format.
Result<frame::NewFrame> plan(const frame::FrameContainer& from, const std::string& out) {
  if (from.parameters().variable_chunks) return codec::unsupported("the chunks of the frame vary in size");
  auto like = frame_like(from);
  if (!like) return like;
  if (auto named = check_frame_name(out, like->metalayers); !named) return codec::Failure(named.error());
  if (!out.ends_with(frame::kArraySuffix)) return like;
  const auto array = frame::b2nd_meta_of(from);
  if (!array) return codec::Failure(array.error());
  if (!*array) return codec::invalid("is not an array, but a .b2nd file must be one");
  return like;
}

/// Prints the result to standard output; to standard error if the frame goes to standard output.
int print_saved(const RepairOptions& options, const std::string& text, Io& io) {
  if (options.quiet) return done;
  if (*options.out != kStandardStream) return emit(io, printable(*options.out) + ": " + text + "\n");
  io.err.print("cframe: standard output: " + text + "\n");
  return done;
}

int save(const RepairOptions& options, Io& io) {
  if (options.as_json && *options.out == kStandardStream)
    return report(io, codec::invalid("--json writes to standard output, which is the new frame already").value());
  const auto input = InputFile::open(options.file, io);
  if (!input) return report_failure(io, input.error(), options.file);
  if (auto apart = check_no_overlap(input->path(), *options.out); !apart) return report(io, apart.error());
  const auto salvage = open_salvage(input->path());
  if (!salvage) return report(io, with_path(salvage.error(), input->name()));
  for (const std::string& loss : salvage->losses)
    io.err.print("cframe: " + printable(input->name()) + ": " + printable(loss) + "\n");
  auto like = plan(*salvage->container, *options.out);
  if (!like) return report(io, with_path(like.error(), input->name()));
  auto output = ResultFile::create(*options.out, false, FileTraits(), io, "");
  if (!output) return report_failure(io, output.error(), *options.out);
  frame::FileTarget target(frame::system_files(), output->handle());
  frame::NewFrameFile file(target, *like);
  FrameSaver saver(*salvage->container, file, io, input->name());
  auto saved = saver.run();
  if (saved) saved = output->publish();
  if (!saved) {
    const bool of_data = saved.error().kind != codec::ErrorKind::io;
    return report_failure(io, saved.error(), of_data ? input->name() : *options.out);
  }
  const int status = salvage->losses.empty() && saver.lost() == 0 ? done : kDataError;
  if (options.as_json)
    return std::max<int>(status, emit(io, json_text_of(saved_json(options, *salvage, saver.lost()))));
  return std::max(status, print_saved(options, saved_text(*salvage, saver.lost()), io));
}

}  // namespace

SubcommandRun declare_repair(CLI::App& app) {
  auto options = std::make_shared<RepairOptions>();
  app.add_option("FILE", options->file, "Contiguous frame; with OUT also - for standard input")
      ->required()
      ->type_name("");
  app.add_option("OUT", options->out,
                 "New frame for the readable chunks, or - for standard output; FILE stays unchanged")
      ->type_name("");
  app.add_flag("--json", options->as_json, "Print JSON");
  app.add_flag("-q,--quiet", options->quiet, "Print only losses");
  add_wait_option(app, options->wait);
  return [options](Io& io) { return options->out ? save(*options, io) : cut_tail(*options, io); };
}

}  // namespace cframefs::tools
