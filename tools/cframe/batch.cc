#include "tools/cframe/batch.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "frame/remote/http/address.h"
#include "tools/lib/file_batch.h"
#include "tools/lib/progress.h"
#include "tools/lib/sizes.h"
#include "tools/lib/spent_input.h"
#include "tools/stream/parallel_reader.h"

namespace cframefs::tools {

namespace {

/// What became of one input.
struct Outcome {
  int status = done;
  MadeFile made;
  std::string messages;  // of errors, for standard error
};

double ratio_of(const MadeFile& made) {
  return made.stored == 0 ? 0 : static_cast<double>(made.plain) / static_cast<double>(made.stored);
}

std::string json_line(const FileTask& task, const Outcome& outcome) {
  nlohmann::json line = {{"in", shown_path(task.in)}, {"out", task.out}};
  if (outcome.status == done) {
    line["plain"] = outcome.made.plain;
    line["stored"] = outcome.made.stored;
    line["ratio"] =
        outcome.made.stored == 0 ? nlohmann::json() : nlohmann::json(std::round(ratio_of(outcome.made) * 1000) / 1000);
    if (!outcome.made.entity_tag.empty()) line["etag"] = outcome.made.entity_tag;
  } else {
    std::string message = outcome.messages.substr(0, outcome.messages.find('\n'));
    if (message.starts_with("cframe: ")) message.erase(0, std::string("cframe: ").size());
    line["error"] = message;
  }
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// Makes one file, then removes the input if --rm is given.
int make_one(const BatchOptions& options, const FileMaker& maker, const FileTask& task, MadeFile& made, Io& io) {
  if (!options.remove) return maker.make(task, made, io);
  auto input = SpentInput::remember(frame::system_files(), task.in);
  if (!input) return report_failure(io, input.error(), task.in);
  if (const int status = maker.make(task, made, io); status != done) return status;
  if (auto removed = input->remove(); !removed) return report_failure(io, removed.error(), task.in);
  return done;
}

/// Creates the directory of an output below --to. A bucket has none.
codec::Result<void> make_directory_of(const std::string& out) {
  if (frame::is_address(out)) return {};
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::path(out).parent_path();
  std::filesystem::create_directories(directory, error);
  if (!error) return {};
  codec::Failure failure = codec::io_error(error.value(), "create the directory");
  failure.value().path = directory.string();
  return failure;
}

/// Makes the files of several inputs.
class Batch {
 public:
  Batch(const BatchOptions& options, const FileMaker& maker, Io& io)
      : options_(options),
        maker_(maker),
        io_(io),
        files_(plan_files(options, maker)),
        outcomes_(files_.size()),
        progress_(io, maker.doing, Progress::Unit::bytes) {}

  int run() {
    if (files_.empty()) {
      return report(
          io_, with_path(codec::invalid("contains no file to be " + maker_.done).value(), options_.operands.front()));
    }
    FileBatch batch;
    for (const PlannedFile& file : files_)
      batch.sizes.push_back(file.error ? 0 : file.bytes);
    for (const std::uint64_t size : batch.sizes)
      total_ += size;
    batch.workers = options_.workers == 0 ? available_workers() : options_.workers;
    batch.run = [this](std::size_t file, unsigned workers) { make(file, workers); };
    batch.deliver = [this](std::size_t file) { deliver(file); };
    batch.idle = [this] { progress_.update(bytes_done_.load(), total_); };
    run_batch(batch, io_.stop);
    progress_.finish();
    if (!options_.as_json && !options_.quiet) status_ = std::max<int>(status_, emit(io_, summary()));
    return io_.stop.load() ? interrupted : status_;
  }

 private:
  void make(std::size_t number, unsigned workers) {
    const PlannedFile& file = files_[number];
    Outcome& outcome = outcomes_[number];
    StringOutput out;
    StringOutput err;
    ProgressShare share{bytes_done_, file.bytes};
    Io io{out, err, false, io_.stop, nullptr, false, &share};
    codec::Result<void> ready;
    if (file.error) ready = codec::Failure(*file.error);
    if (ready && options_.to) ready = make_directory_of(file.task.out);
    FileTask task = file.task;
    task.workers = workers;
    outcome.status = ready ? make_one(options_, maker_, task, outcome.made, io) : report(io, ready.error());
    outcome.messages = std::move(err.text);
    share.set(1);
  }

  void deliver(std::size_t number) {
    Outcome& outcome = outcomes_[number];
    if (outcome.status == interrupted) return;
    status_ = std::max(status_, outcome.status);
    ++(outcome.status == done ? made_ : failed_);
    sum_.plain += outcome.made.plain;
    sum_.stored += outcome.made.stored;
    if (!outcome.messages.empty()) {
      progress_.clear();
      io_.err.print(outcome.messages);
    }
    if (options_.as_json) status_ = std::max<int>(status_, emit(io_, json_line(files_[number].task, outcome)));
    outcome.messages = {};
  }

  std::string summary() const {
    std::string text = fmt::format("{} {} {}: {} uncompressed, {} stored", made_, made_ == 1 ? "file" : "files",
                                   maker_.done, human_size(sum_.plain), human_size(sum_.stored));
    if (sum_.stored > 0) text += fmt::format(", ratio {:.2f}", ratio_of(sum_));
    if (failed_ > 0) text += fmt::format("; {} failed", failed_);
    return text + "\n";
  }

  const BatchOptions& options_;
  const FileMaker& maker_;
  Io& io_;
  const std::vector<PlannedFile> files_;
  std::vector<Outcome> outcomes_;  // each belongs to the thread that makes the file, then to the calling thread
  std::atomic<std::uint64_t> bytes_done_ = 0;
  std::uint64_t total_ = 0;
  Progress progress_;
  MadeFile sum_;
  std::size_t made_ = 0;
  std::size_t failed_ = 0;
  int status_ = done;
};

int refuse(Io& io, const std::string& why) {
  return report(io, codec::invalid(why).value());
}

/// Refuses an address of --to that is none of a bucket.
codec::Result<void> check_directory(const std::string& to) {
  if (to.empty()) return codec::invalid("--to needs the name of a directory");
  if (!frame::is_address(to)) return {};
  const auto address = frame::parse_address(to);
  if (!address) return codec::invalid("--to: " + address.error().reason);
  if (address->scheme == frame::Address::Scheme::s3) return {};
  return codec::invalid("--to: only objects of buckets can be written: s3://BUCKET/PREFIX");
}

/// Makes the output of one input.
int run_single(const BatchOptions& options, const FileMaker& maker, Io& io) {
  FileTask task;
  task.in = options.operands.front();
  task.replace = options.force;
  task.workers = options.workers == 0 ? available_workers() : options.workers;
  if (options.operands.size() == 2) {
    task.out = options.operands.back();
  } else if (task.in == kStandardStream) {
    task.out = kStandardStream;
  } else {
    const auto name = maker.name(task.in);
    if (!name) return report(io, with_path(name.error(), shown_path(task.in)));
    task.out = *name;
  }
  if (options.remove && (task.in == kStandardStream || task.out == kStandardStream))
    return refuse(io, "--rm needs files: standard input and standard output are none");
  if (options.as_json && task.out == kStandardStream)
    return refuse(io, "--json writes to standard output, which is the output already");
  if (!options.as_json) {
    MadeFile made;
    return make_one(options, maker, task, made, io);
  }
  StringOutput err;
  Io quiet{io.out, err, false, io.stop, io.in, io.out_is_terminal};
  Outcome outcome;
  outcome.status = make_one(options, maker, task, outcome.made, quiet);
  outcome.messages = std::move(err.text);
  io.err.print(outcome.messages);
  if (outcome.status == interrupted) return interrupted;
  return std::max<int>(outcome.status, emit(io, json_line(task, outcome)));
}

}  // namespace

void add_batch_options(CLI::App& app, BatchOptions& options, const std::string& in, const std::string& out) {
  app.add_option("IN", options.operands,
                 in + "; then OUT, " + out + " (IN with another suffix). With -m, -r or --to: all are inputs")
      ->required()
      ->type_name("[OUT]");
  app.add_flag("-m,--multiple", options.multiple, "Take all operands as inputs, and name the outputs after them");
  app.add_flag("-r,--recursive", options.recursive, "The same, and take the files in directories");
  app.add_option("--to", options.to, "The same, and write the outputs into this directory")->type_name("DIR");
  app.add_flag("-f,--force", options.force, "Replace outputs that exist");
  app.add_flag("--rm", options.remove, "Remove each input once its output is complete and on disk");
  app.add_flag("--json", options.as_json, "Print JSON: one object on one line for each file");
  app.add_flag("-q,--quiet", options.quiet, "Print only errors");
  app.add_option("--workers", options.workers, "Threads (one per CPU)")->check(CLI::Range(1, 1024))->type_name("N");
}

int run_files(const BatchOptions& options, const FileMaker& maker, Io& io) {
  if (options.to) {
    if (auto checked = check_directory(*options.to); !checked) return report(io, checked.error());
  }
  if (options.takes_several()) return Batch(options, maker, io).run();
  if (options.operands.size() <= 2) return run_single(options, maker, io);
  return refuse(io, fmt::format("{} operands, but only IN and OUT are expected: --multiple takes all as inputs",
                                options.operands.size()));
}

}  // namespace cframefs::tools
