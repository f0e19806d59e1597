// cframe index: writes the index of a directory on a server, by which mounts show many files with few requests.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "frame/remote/http/address.h"
#include "frame/remote/remote_source.h"
#include "tools/cframe/cframe.h"
#include "tools/lib/progress.h"
#include "tools/lib/result_file.h"
#include "tools/lib/sizes.h"

namespace cframefs::tools {

namespace {

struct IndexOptions {
  std::string address;
  std::string out;
  bool replace = false;
  bool as_json = false;
};

bool is_bucket(const std::string& address) {
  const auto parsed = frame::parse_address(address);
  return parsed && parsed->scheme == frame::Address::Scheme::s3;
}

/// Refuses what cannot be done, before anything is asked.
codec::Result<void> check(const IndexOptions& options) {
  if (!frame::is_address(options.address))
    return codec::invalid("is no address of a server (http://, https://, s3://)");
  if (const auto parsed = frame::parse_address(options.address); !parsed) return codec::Failure(parsed.error());
  if (options.out.empty() && !is_bucket(options.address))
    return codec::invalid(
        "a web server takes no uploads: write the index into a file (-o FILE), and place it there as "
        ".cframefs-index");
  return {};
}

codec::Result<void> write_file(const frame::MadeIndex& made, ResultFile& file) {
  auto put = frame::system_files().pwrite(file.handle(), made.stored, frame::FileOffset{0});
  return put ? file.publish() : put;
}

ExitStatus print_summary(const IndexOptions& options, const frame::MadeIndex& made, Io& io) {
  const std::string address = frame::shown_address(options.address);
  if (options.as_json) {
    const nlohmann::json line = {{"address", address},
                                 {"objects", made.objects},
                                 {"frames", made.looked_at},
                                 {"left_out", made.left_out},
                                 {"bytes", made.stored.size()}};
    return emit(io, line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  std::string text = fmt::format("{}: {} objects, of which {} may be frames, in an index of {}", printable(address),
                                 made.objects, made.looked_at, human_size(made.stored.size()));
  if (made.left_out > 0) text += fmt::format("; {} objects are left out", made.left_out);
  // The index itself may go to standard output.
  if (options.out != kStandardStream) return emit(io, text + "\n");
  io.err.print("cframe: " + text + "\n");
  return done;
}

int run_index(const IndexOptions& options, Io& io) {
  const std::string shown = frame::shown_address(options.address);
  if (auto checked = check(options); !checked) return report_failure(io, checked.error(), shown);
  if (options.as_json && options.out == kStandardStream)
    return report_failure(io, codec::invalid("--json prints on standard output: name a file for the index").value(),
                          "-");
  std::optional<ResultFile> file;
  if (!options.out.empty()) {
    auto created = ResultFile::create(options.out, options.replace, {}, io);
    if (!created) return report_failure(io, created.error(), options.out);
    file.emplace(std::move(*created));
  }
  frame::RemoteOptions remote;
  remote.uses_index = false;
  remote.ttl = std::chrono::hours(1);  // the index tells the states of one moment
  auto source = frame::RemoteSource::open(options.address, remote);
  if (!source) return report_failure(io, source.error(), shown);
  Progress progress(io, "indexing", Progress::Unit::items);
  frame::IndexWork work;
  work.stop = &io.stop;
  work.progress = [&](std::uint64_t looked_at, std::uint64_t total) {
    if (io.stop.load()) (*source)->stop();
    progress.update(looked_at, total);
  };
  const auto made = (*source)->make_index(work);
  progress.finish();
  if (!made) return report_failure(io, made.error(), shown);
  if (io.stop.load()) return interrupted;
  const auto stored = file ? write_file(*made, *file) : (*source)->put_index(made->stored);
  if (!stored) return report_failure(io, stored.error(), file ? options.out : shown);
  return print_summary(options, *made, io);
}

}  // namespace

SubcommandRun declare_index(CLI::App& app) {
  auto options = std::make_shared<IndexOptions>();
  app.add_option("ADDRESS", options->address, "Directory of a web server or in a bucket")->required()->type_name("");
  app.add_option("-o,--output", options->out, "Write the index into a file, or - for standard output")
      ->type_name("FILE");
  app.add_flag("-f,--force", options->replace, "Replace an existing file");
  app.add_flag("--json", options->as_json, "Print JSON: one object on one line");
  return [options](Io& io) { return run_index(*options, io); };
}

}  // namespace cframefs::tools
