// cframe repair: cuts an unfinished commit off a frame; or saves what can be read of a damaged one into a new frame.
#include <algorithm>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fcntl.h>

#include "frame/new_frame_file.h"
#include "frame/salvage.h"
#include "tools/cframe.h"
#include "tools/frame_changes.h"
#include "tools/frame_saver.h"
#include "tools/new_file.h"
#include "tools/sizes.h"

namespace cframefs::tools {

using codec::Result;

namespace {

struct RepairOptions {
  std::string file;
  std::optional<std::string> out;
  double wait = 5;
  bool quiet = false;
};

/// The frame in place: only what lies behind it goes.
int cut_tail(const RepairOptions& options, Io& io) {
  auto opened = open_writer(options.file, options.wait);
  if (!opened) {
    const ExitStatus status = report(io, opened.error());
    if (status == data_at_fault) io.err.print("cframe: what can be read of it, 'cframe repair FILE OUT' saves\n");
    return status;
  }
  const auto cut = opened->writer->cut_tail();
  if (!cut) return report(io, with_path(cut.error(), options.file));
  if (options.quiet) return done;
  if (*cut == 0) return emit(io, printable(options.file) + ": nothing to repair\n");
  return emit(io, printable(options.file) + ": cut off " + human_size(*cut) + " of a commit that did not finish\n");
}

Result<frame::Salvage> open_salvage(const std::string& path) {
  frame::FileOps& files = frame::system_files();
  const auto fd = files.open_named(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return tl::unexpected(fd.error());
  const auto file = std::make_shared<const frame::Descriptor>(files, *fd);
  const auto status = files.status(*fd);
  if (!status) return tl::unexpected(status.error());
  if (!S_ISREG(status->st_mode)) return codec::unsupported("only contiguous frames are repaired");
  const auto size = static_cast<std::uint64_t>(status->st_size);
  return frame::open_damaged(frame::file_source(files, file, {}, size), std::make_shared<frame::IndexCache>());
}

/// "6 chunks, 1 lost", and of chunks that the header promises and nothing is left of: "4 of 10 chunks, 6 lost".
std::string saved_text(const frame::Salvage& salvage, std::int64_t lost) {
  const std::int64_t chunks = salvage.container->chunk_count();
  if (!salvage.missing_chunks) {
    return std::to_string(chunks) + " chunks, " + (lost > 0 ? std::to_string(lost) + " of them lost; " : "") +
           "how many there were is not known";
  }
  const std::int64_t missing = *salvage.missing_chunks;
  const std::string of = missing > 0 ? " of " + std::to_string(chunks + missing) : "";
  return std::to_string(chunks) + of + " chunks, " + std::to_string(lost + missing) + " lost";
}

codec::Result<frame::NewFrame> frame_like(const frame::FrameContainer& from) {
  frame::NewFrame like;
  like.encode = frame::encode_parameters(from.parameters());
  like.chunksize = from.parameters().chunksize;
  auto layers = from.metalayers();
  if (!layers) return tl::unexpected(layers.error());
  like.metalayers = std::move(*layers);
  return like;
}

int save(const RepairOptions& options, Io& io) {
  const auto salvage = open_salvage(options.file);
  if (!salvage) return report(io, with_path(salvage.error(), options.file));
  for (const std::string& loss : salvage->losses)
    io.err.print("cframe: " + printable(options.file) + ": " + printable(loss) + "\n");
  const frame::FrameContainer& from = *salvage->container;
  if (from.parameters().variable_chunks) {
    return report(io, with_path(codec::unsupported("frame whose chunks vary in size").value(), options.file));
  }
  frame::FileOps& files = frame::system_files();
  auto like = frame_like(from);
  if (!like) return report(io, with_path(like.error(), options.file));
  auto output = NewFile::create(files, *options.out, false, 0666, "");
  if (!output) return report(io, output.error());
  frame::NewFrameFile file(files, output->fd(), std::move(*like));
  FrameSaver saver(from, file, io, options.file);
  auto saved = saver.run();
  if (saved) saved = output->publish();
  if (!saved) {
    if (io.stop.load()) return interrupted;
    const bool of_data = saved.error().kind != codec::ErrorKind::io;
    return report(io, with_path(saved.error(), of_data ? options.file : *options.out));
  }
  int status = salvage->losses.empty() && saver.lost() == 0 ? done : data_at_fault;
  if (!options.quiet) {
    const std::string text = printable(*options.out) + ": " + saved_text(*salvage, saver.lost()) + "\n";
    status = std::max<int>(status, emit(io, text));
  }
  return status;
}

}  // namespace

SubcommandRun declare_repair(CLI::App& app) {
  auto options = std::make_shared<RepairOptions>();
  app.add_option("FILE", options->file, "Contiguous frame")->required()->type_name("");
  app.add_option("OUT", options->out, "New frame for what can be read; FILE is left as it is")->type_name("");
  app.add_flag("-q,--quiet", options->quiet, "Print only what is lost");
  add_wait_option(app, options->wait);
  return [options](Io& io) { return options->out ? save(*options, io) : cut_tail(*options, io); };
}

}  // namespace cframefs::tools
