// cframe verify: decodes all chunks and metalayers of frames and reports damage.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "frame/base/suffixes.h"
#include "tools/cframe/cframe.h"
#include "tools/cframe/frame_checker.h"
#include "tools/lib/frame_files.h"
#include "tools/lib/input_file.h"
#include "tools/lib/progress.h"
#include "tools/lib/sizes.h"
#include "tools/stream/parallel_reader.h"

namespace cframefs::tools {

using codec::Error;
using nlohmann::json;

namespace {

struct VerifyOptions {
  std::vector<std::string> files;
  std::uint64_t offset = 0;
  unsigned workers = 0;
  bool as_json = false;
  bool quiet = false;
};

/// Returns one word for a frame, by its worst error. I/O errors come first, because then the state is not known.
const char* verdict(const CheckReport& report) {
  bool is_none = report.kind == frame::ContainerKind::none && frame::container_suffix(report.path).empty();
  for (const Error& error : report.errors) {
    is_none &= error.reason.starts_with(frame::kNoContainer);
  }
  if (report.errors.empty()) return "ok";
  if (report.has_io_error) return "failed";
  if (report.has_unsupported) return "unsupported";
  // "no frame": neither suffix nor content is that of a frame.
  return is_none ? "no frame" : "damaged";
}

/// Returns what a line says of the seal.
const char* seal_text(CheckReport::Seal seal) {
  switch (seal) {
    case CheckReport::Seal::none:
      return "";
    case CheckReport::Seal::missing:
      return ", not sealed";
    case CheckReport::Seal::broken:
      return ", the seal is not of this index";
    case CheckReport::Seal::holds:
      return ", sealed";
  }
  return "";
}

json error_json(const Error& error) {
  json entry = {{"kind", codec::kind_name(error.kind)}, {"reason", error.reason}};
  if (error.chunk) entry["chunk"] = *error.chunk;
  if (error.file_offset) entry["file_offset"] = *error.file_offset;
  return entry;
}

/// Prints the reports as they come, or collects them for JSON.
class Reporter {
 public:
  Reporter(const VerifyOptions& options, Io& io, Progress& progress)
      : options_(options), io_(io), progress_(progress) {}

  void add(const CheckReport& report) {
    ++files_;
    ok_ += report.errors.empty();
    for (const Error& error : report.errors)
      status_ = std::max(status_, status_of(error));
    if (report.further_errors > 0 && report.has_io_error) status_ = std::max(status_, kSystemError);
    if (options_.as_json) {
      collect(report);
    } else {
      print(report);
    }
  }

  /// Reports a directory that could not be walked.
  void add_walk_error(const Error& error) {
    status_ = std::max(status_, status_of(error));
    if (options_.as_json) {
      directories_.push_back({{"path", error.path}, {"reason", error.reason}});
    } else {
      report(io_, error);
    }
  }

  int finish() {
    if (options_.as_json) {
      json all = {{"files", std::move(list_)}, {"checked", files_}, {"ok", ok_}, {"faulty", files_ - ok_}};
      if (!directories_.empty()) all["unreadable_directories"] = std::move(directories_);
      return std::max(status_, emit(io_, all.dump(2, ' ', false, json::error_handler_t::replace) + "\n"));
    }
    if (options_.quiet || files_ == 1) return status_;
    return std::max(status_,
                    emit(io_, fmt::format("{} frames checked: {} ok, {} faulty\n", files_, ok_, files_ - ok_)));
  }

 private:
  void collect(const CheckReport& report) {
    json errors = json::array();
    for (const Error& error : report.errors)
      errors.push_back(error_json(error));
    json entry = {{"path", report.path},     {"verdict", verdict(report)}, {"format", frame::kind_name(report.kind)},
                  {"chunks", report.chunks}, {"nbytes", report.nbytes},    {"errors", std::move(errors)}};
    if (report.seal != CheckReport::Seal::none) entry["sealed"] = report.seal == CheckReport::Seal::holds;
    if (report.further_errors > 0) entry["further_errors"] = report.further_errors;
    list_.push_back(std::move(entry));
  }

  void print(const CheckReport& checked) {
    if (!checked.errors.empty() || !options_.quiet) progress_.clear();
    for (const Error& error : checked.errors)
      report(io_, error);
    if (checked.further_errors > 0) {
      io_.err.print(fmt::format("cframe: {}: {} further errors\n", printable(checked.path), checked.further_errors));
    }
    if (options_.quiet) return;
    std::string line = printable(checked.path) + ": " + verdict(checked);
    if (checked.kind != frame::ContainerKind::none) {
      line += fmt::format(", {} chunks, {}{}", checked.chunks, human_size(checked.nbytes), seal_text(checked.seal));
    }
    status_ = std::max(status_, emit(io_, line + "\n"));
  }

  const VerifyOptions& options_;
  Io& io_;
  Progress& progress_;
  json list_ = json::array();
  json directories_ = json::array();
  std::uint64_t files_ = 0;
  std::uint64_t ok_ = 0;
  ExitStatus status_ = done;
};

/// Maps "-" and pipes to the files from which they are read, and back for messages.
class StreamNames {
 public:
  /// Replaces the names of streams by the paths of those files.
  codec::Result<void> resolve(std::vector<std::string>& files, Io& io) {
    for (std::string& file : files) {
      auto known = streams_.find(file);
      if (known == streams_.end()) {
        auto opened = InputFile::open(file, io);
        if (!opened) return codec::Failure(opened.error());
        if (!opened->is_stream()) continue;
        known = streams_.emplace(file, std::move(*opened)).first;
      }
      file = known->second.path();
    }
    return {};
  }
  CheckReport restore(CheckReport report) const {
    for (const auto& [argument, stream] : streams_) {
      if (report.path != stream.path()) continue;
      for (Error& error : report.errors)
        error.path = stream.name();
      report.path = stream.name();
      break;
    }
    return report;
  }

 private:
  std::map<std::string, InputFile> streams_;  // by argument
};

int run_verify(VerifyOptions options, Io& io) {
  StreamNames streams;
  if (auto resolved = streams.resolve(options.files, io); !resolved) return report_failure(io, resolved.error(), "");
  const FoundFrames found = find_frames(options.files);
  if (found.frames.empty() && found.errors.empty()) {
    return report(io, with_path(codec::invalid("contains no frames (files are recognised by their suffix)").value(),
                                options.files.front()));
  }
  const std::uint64_t total =
      std::accumulate(found.frames.begin(), found.frames.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const FrameFile& file) { return sum + file.stored_bytes; });
  Progress progress(io, "verifying", Progress::Unit::bytes);
  Reporter reporter(options, io, progress);
  for (const Error& error : found.errors)
    reporter.add_walk_error(error);

  FrameChecker* running = nullptr;
  const auto idle = [&] { progress.update(running->bytes_done(), total); };
  FrameChecker checker(options.workers == 0 ? available_workers() : options.workers, io.stop, idle);
  running = &checker;
  const auto deliver = [&] {
    for (const auto& report : checker.take_reports())
      reporter.add(streams.restore(report));
  };
  for (const FrameFile& file : found.frames) {
    if (io.stop.load()) break;
    checker.add(file, options.offset);
    deliver();
    idle();
  }
  checker.finish();
  progress.finish();
  if (io.stop.load()) {
    io.err.print("cframe: stopped before everything was checked\n");
    return interrupted;
  }
  deliver();
  return reporter.finish();
}

}  // namespace

SubcommandRun declare_verify(CLI::App& app) {
  auto options = std::make_shared<VerifyOptions>();
  app.add_option(
         "FILE", options->files,
         "Frames, directories of sparse frames, stores, directories to be searched for frames, or - for standard input")
      ->required()
      ->type_name("");
  app.add_flag("--json", options->as_json, "Report as JSON");
  app.add_flag("-q,--quiet", options->quiet, "Print only faults");
  app.add_flag("-r,--recursive")->description("Search directories, which verify does without this option, too");
  add_size_option(app, "--frame-offset", options->offset, "Offset of the frame in the file (0)");
  app.add_option("--workers", options->workers, "Decoding threads (one per CPU)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  return [options](Io& io) { return run_verify(*options, io); };
}

}  // namespace cframefs::tools
