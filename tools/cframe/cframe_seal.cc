// cframe seal: adds digests of all blocks to frames, by which damage is seen.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <numeric>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "frame/base/suffixes.h"
#include "tools/cframe/cframe.h"
#include "tools/cframe/frame_checker.h"
#include "tools/cframe/open_writer.h"
#include "tools/lib/frame_files.h"
#include "tools/lib/progress.h"
#include "tools/stream/parallel_reader.h"

namespace cframefs::tools {

namespace {

struct SealOptions {
  std::vector<std::string> files;
  double wait = 5;
  bool trust = false;
  bool as_json = false;
  bool quiet = false;
  bool recursive = false;
  unsigned workers = 0;
};

/// Seals one frame after the other and prints the results.
class Sealing {
 public:
  Sealing(const SealOptions& options, Io& io)
      : options_(options), io_(io), progress_(io, "sealing", Progress::Unit::bytes) {}

  int run() {
    for (const std::string& file : options_.files)
      add(file);
    // Each byte is decoded once, unless it is trusted, and hashed once.
    total_ = std::accumulate(frames_.begin(), frames_.end(), std::uint64_t{0},
                             [](std::uint64_t sum, const FrameFile& file) { return sum + file.stored_bytes; });
    if (!options_.trust) total_ *= 2;
    for (const FrameFile& frame : frames_) {
      if (io_.stop.load()) break;
      const auto sealed = seal(frame);
      deliver(frame.path, sealed);
      bytes_done_ = std::min(total_, begun_ += (options_.trust ? 1 : 2) * frame.stored_bytes);
    }
    progress_.finish();
    return io_.stop.load() ? interrupted : status_;
  }

 private:
  /// Adds a frame, or with -r the frames in a directory.
  void add(const std::string& file) {
    if (!options_.recursive || kind_of(file, true) != EntryKind::directory)
      return frames_.push_back({file, stored_bytes(file)});
    const FoundFrames found = find_frames({file});
    for (const codec::Error& error : found.errors)
      status_ = std::max<int>(status_, report(io_, error));
    for (const FrameFile& frame : found.frames) {
      if (frame::is_frame_name(frame.path) || frame.path.ends_with(frame::kArraySuffix)) frames_.push_back(frame);
    }
  }

  codec::Result<void> seal(const FrameFile& frame) {
    // Opened before the chunks are decoded: a commit in between makes the last step stale.
    auto opened = open_writer(frame.path, options_.wait);
    if (!opened) return codec::Failure(opened.error());
    if (!options_.trust) {
      if (auto good = check(frame); !good) return good;
    }
    frame::FrameWriter& writer = *opened->writer;
    const auto hashed = [this](std::uint64_t bytes) {
      progress_.update(std::min(total_, bytes_done_ += bytes), total_);
      return !io_.stop.load();
    };
    auto done = writer.seal(hashed);
    if (done) done = writer.commit(frame::Durability::durable);
    if (!done) return codec::Failure(with_path(done.error(), frame.path));
    return {};
  }

  /// Decodes everything. Returns the first error.
  codec::Result<void> check(const FrameFile& frame) {
    FrameChecker* running = nullptr;
    const auto idle = [&] { progress_.update(std::min(total_, begun_ + running->bytes_done()), total_); };
    FrameChecker checker(options_.workers == 0 ? available_workers() : options_.workers, io_.stop, idle);
    running = &checker;
    checker.add(frame, 0);
    checker.finish();
    if (io_.stop.load()) return codec::io_error(EINTR, "verify");
    for (const CheckReport& report : checker.take_reports()) {
      if (!report.errors.empty()) return codec::Failure(report.errors.front());
    }
    bytes_done_ = begun_ + frame.stored_bytes;
    return {};
  }

  void deliver(const std::string& file, const codec::Result<void>& sealed) {
    if (io_.stop.load()) return;
    progress_.clear();
    if (options_.as_json) {
      nlohmann::json line = {{"path", file}, {"sealed", sealed.has_value()}};
      if (!sealed) line["error"] = codec::describe(sealed.error());
      print(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    } else if (sealed && !options_.quiet) {
      print(printable(file) + ": sealed\n");
    }
    if (!sealed) status_ = std::max<int>(status_, report(io_, sealed.error()));
  }

  void print(const std::string& text) { status_ = std::max<int>(status_, emit(io_, text)); }

  const SealOptions& options_;
  Io& io_;
  Progress progress_;
  std::vector<FrameFile> frames_;
  std::uint64_t total_ = 0;
  std::uint64_t begun_ = 0;  // of the frames before the one that is being sealed
  std::uint64_t bytes_done_ = 0;
  int status_ = done;
};

}  // namespace

SubcommandRun declare_seal(CLI::App& app) {
  auto options = std::make_shared<SealOptions>();
  app.add_option("FILE", options->files, "Frames, or directories of sparse frames")->required()->type_name("");
  app.add_flag("--trust", options->trust, "Do not decode everything before");
  app.add_flag("--json", options->as_json, "Print JSON: one object on one line for each frame");
  app.add_flag("-q,--quiet", options->quiet, "Print only errors");
  app.add_flag("-r,--recursive", options->recursive, "Seal the frames in directories");
  add_wait_option(app, options->wait);
  app.add_option("--workers", options->workers, "Decoding threads (one per CPU)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  return [options](Io& io) { return Sealing(*options, io).run(); };
}

}  // namespace cframefs::tools
