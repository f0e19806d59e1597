// cframe compact: rewrites frames without unreferenced bytes.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "frame/base/suffixes.h"
#include "frame/write/frame_space.h"
#include "tools/cframe/batch.h"
#include "tools/cframe/cframe.h"
#include "tools/cframe/encode_options.h"
#include "tools/cframe/open_writer.h"
#include "tools/lib/file_batch.h"
#include "tools/lib/frame_files.h"
#include "tools/lib/progress.h"
#include "tools/lib/sizes.h"
#include "tools/stream/parallel_reader.h"

namespace cframefs::tools {

namespace {

struct CompactOptions {
  std::vector<std::string> files;
  double wait = 5;
  frame::Checksums checksums = frame::Checksums::on;
  bool as_json = false;
  bool quiet = false;
  bool recursive = false;
  unsigned workers = 0;
};

struct Lengths {
  std::uint64_t before = 0;
  std::uint64_t after = 0;
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

codec::Result<Lengths> compact_one(const std::string& file, const CompactOptions& options) {
  auto opened = open_writer(file, options.wait, options.checksums);
  if (!opened) return codec::Failure(opened.error());
  frame::FrameWriter& writer = *opened->writer;
  const std::uint64_t before = total_length(file);
  if (auto done = frame::FrameSpace(writer).compact(); !done) {
    return codec::Failure(with_path(done.error(), file));
  }
  return Lengths{before, total_length(file)};
}

/// Compacts several frames at a time and prints the results in order.
class Compaction {
 public:
  Compaction(const CompactOptions& options, Io& io)
      : options_(options), io_(io), progress_(io, "compacting", Progress::Unit::bytes) {}

  int run() {
    for (const std::string& file : options_.files)
      add(file);
    results_.resize(frames_.size());
    FileBatch batch;
    for (const FrameFile& frame : frames_)
      batch.sizes.push_back(frame.stored_bytes);
    const std::uint64_t total = std::accumulate(batch.sizes.begin(), batch.sizes.end(), std::uint64_t{0});
    batch.workers = options_.workers == 0 ? available_workers() : options_.workers;
    batch.run = [this](std::size_t file, unsigned) {
      results_[file] = compact_one(frames_[file].path, options_);
      bytes_done_.fetch_add(frames_[file].stored_bytes);
    };
    batch.deliver = [this](std::size_t file) { deliver(file); };
    batch.idle = [&] { progress_.update(bytes_done_.load(), total); };
    run_batch(batch, io_.stop);
    progress_.finish();
    const bool shows_sum = frames_.size() > 1 && !options_.as_json && !options_.quiet;
    if (shows_sum) {
      print(fmt::format("{} of {} frames compacted: {} became {}\n", compacted_, frames_.size(),
                        human_size(sum_.before), human_size(sum_.after)));
    }
    return io_.stop.load() ? interrupted : status_;
  }

 private:
  /// Adds a frame, or with -r the frames in a directory that can be compacted.
  void add(const std::string& file) {
    const EntryKind kind = kind_of(file, true);
    if (!options_.recursive || kind != EntryKind::directory) return frames_.push_back({file, stored_bytes(file)});
    const FoundFrames found = find_frames({file});
    for (const codec::Error& error : found.errors)
      status_ = std::max<int>(status_, report(io_, error));
    for (const FrameFile& frame : found.frames) {
      const bool is_current = frame::is_frame_name(frame.path) || frame.path.ends_with(frame::kArraySuffix);
      const DirectoryEntry entry{frame.path, kind_of(frame.path, false), frame.stored_bytes};
      if (is_current && is_container_entry(entry)) frames_.push_back(frame);
    }
  }

  void print(const std::string& text) { status_ = std::max<int>(status_, emit(io_, text)); }

  void deliver(std::size_t number) {
    const std::string& file = frames_[number].path;
    const auto& lengths = *results_[number];
    if (lengths) {
      ++compacted_;
      sum_.before += lengths->before;
      sum_.after += lengths->after;
    }
    progress_.clear();
    if (options_.as_json) {
      nlohmann::json line = {{"path", file}};
      if (lengths) {
        line["before"] = lengths->before;
        line["after"] = lengths->after;
      } else {
        line["error"] = codec::describe(lengths.error());
      }
      print(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    } else if (lengths && !options_.quiet) {
      print(printable(file) + ": " + human_size(lengths->before) + " became " + human_size(lengths->after) + "\n");
    }
    if (!lengths) status_ = std::max<int>(status_, report(io_, lengths.error()));
  }

  const CompactOptions& options_;
  Io& io_;
  Progress progress_;
  std::vector<FrameFile> frames_;
  // Each belongs to the thread that compacts the frame, then to the calling thread.
  std::vector<std::optional<codec::Result<Lengths>>> results_;
  std::atomic<std::uint64_t> bytes_done_ = 0;
  Lengths sum_;
  std::size_t compacted_ = 0;
  int status_ = done;
};

}  // namespace

SubcommandRun declare_compact(CLI::App& app) {
  auto options = std::make_shared<CompactOptions>();
  app.add_option("FILE", options->files, "Frames, or directories of sparse frames")->required()->type_name("");
  app.add_flag("--json", options->as_json, "Print JSON: one object on one line for each frame");
  app.add_flag("-q,--quiet", options->quiet, "Print only errors");
  app.add_flag("-r,--recursive", options->recursive, "Compact the frames in directories");
  add_checksums_option(app, options->checksums);
  add_wait_option(app, options->wait);
  app.add_option("--workers", options->workers, "Frames at a time (one per CPU)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  return [options](Io& io) { return Compaction(*options, io).run(); };
}

}  // namespace cframefs::tools
