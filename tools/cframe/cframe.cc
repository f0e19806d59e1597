#include "tools/cframe/cframe.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "frame/base/suffixes.h"
#include "frame/cframe/sparse_frame.h"
#include "frame/remote/http/address.h"
#include "tools/lib/server_paths.h"
#include "tools/lib/sizes.h"
#include "tools/lib/store_paths.h"
#include "tools/lib/version_text.h"
#include "tools/stream/array_stream.h"

namespace cframefs::tools {

namespace {

constexpr const char* kFooter = "Exit status: 0 success, 1 corrupt or unsupported data, 2 usage error, 3 system error.";

struct Subcommand {
  const char* name;
  const char* description;
  SubcommandRun (*declare)(CLI::App& app);
};

constexpr Subcommand kSubcommands[] = {
    {"ls", "List frames: sizes, ratio, codec, shape", declare_ls},
    {"info", "Show the properties of frames", declare_info},
    {"cat", "Write the uncompressed bytes of a frame to standard output", declare_cat},
    {"diff", "Compare the uncompressed content of two files", declare_diff},
    {"bench", "Measure codecs, filters and levels on a file", declare_bench},
    {"verify", "Decode everything and report each damaged chunk", declare_verify},
    {"map", "Show where the space of a frame goes, as text or a picture", declare_map},
    {"top", "Show what mounts do, live", declare_top},
    {"pack", "Compress a file, or standard input, into a frame", declare_pack},
    {"unpack", "Write the uncompressed bytes of a frame into a file", declare_unpack},
    {"convert", "Convert a file of any format to a current frame, or .npy to .b2nd and back", declare_convert},
    {"compact", "Rewrite frames without unreferenced bytes", declare_compact},
    {"seal", "Add digests of all blocks, by which damage is seen", declare_seal},
    {"repair", "Cut off an unfinished commit, or save the readable chunks", declare_repair},
    {"get-meta", "Write the content of a metalayer, or list their names", declare_get_meta},
    {"set-meta", "Set or remove a metalayer", declare_set_meta},
    {"index", "Write the index of a directory on a server", declare_index},
};

int complain(Io& io, const std::string& message) {
  // CLI11 explains some errors on several lines; messages of cframe have one line.
  std::string line = message;
  std::replace(line.begin(), line.end(), '\n', ' ');
  io.err.print("cframe: " + printable(line) + "\n");
  return kUsageError;
}

}  // namespace

int cframe_main(const std::vector<std::string>& arguments, Io& io) {
  CLI::App program("Inspects, creates and changes Blosc2 frames.", "cframe");
  program.set_help_flag("-h,--help", "Print this help and exit");
  program.set_version_flag(
      "-V,--version", [] { return version_text("cframe"); },
      "Print the versions of the program and its libraries, and exit");
  program.require_subcommand(1);
  program.footer(kFooter);
  // Declare only the options of the subcommand that runs: declaring all takes longer than most subcommands.
  const auto wanted = std::find_if(arguments.begin(), arguments.end(),
                                   [](const std::string& argument) { return !argument.starts_with('-'); });
  SubcommandRun run;
  for (const Subcommand& subcommand : kSubcommands) {
    CLI::App* app = program.add_subcommand(subcommand.name, subcommand.description);
    app->footer(kFooter);
    if (wanted != arguments.end() && *wanted == subcommand.name) run = subcommand.declare(*app);
  }
  try {
    program.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return emit(io, program.help());
  } catch (const CLI::CallForVersion& version) {
    return emit(io, version.what());
  } catch (const CLI::ParseError& error) {
    if (!run && wanted != arguments.end()) {
      return complain(io, "unknown subcommand '" + *wanted + "' (--help lists them)");
    }
    return complain(io, std::string(error.what()) + " (--help shows the usage)");
  }
  return run ? run(io) : kUsageError;
}

void add_input_option(CLI::App& app, const std::string& name, std::string& into) {
  app.add_option(name, into, "Frame, or directory of a sparse frame, or - for standard input")
      ->required()
      ->type_name("");
}

CLI::Option* add_size_option(CLI::App& app, const std::string& name, std::uint64_t& into, const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [&into, name](const std::string& text) {
            const auto size = parse_size(text);
            if (!size) throw CLI::ValidationError(name, "'" + text + "' " + size.error().reason);
            into = *size;
          },
          help)
      ->type_name("SIZE");
}

void add_array_form_option(CLI::App& app, frame::ArrayForm& into) {
  static const std::map<std::string, frame::ArrayForm> forms = {
      {"npy", frame::ArrayForm::npy}, {"flat", frame::ArrayForm::flat}, {"chunks", frame::ArrayForm::chunks}};
  app.add_option_function<std::string>(
         "--b2nd", [&into](const std::string& form) { into = forms.at(form); },
         "Write an n-d array as a .npy file (default), as its items in C order, or as stored in chunk order with "
         "padding")
      ->check(CLI::IsMember(forms))
      ->type_name("npy|flat|chunks");
}

bool is_of_sparse_frame(const std::filesystem::path& file) {
  // Chunks without an index are the rest of a sparse frame.
  return file.filename() == frame::kSparseIndexName || file.extension() == ".chunk";
}

/// Returns whether the path names a directory that has nothing of a sparse frame.
bool is_other_directory(const std::string& path) {
  if (frame::is_address(path)) {
    if (kind_on_server(path) != EntryKind::directory) return false;
    const auto entries = entries_on_server(path);
    return entries && std::none_of(entries->begin(), entries->end(),
                                   [](const DirectoryEntry& entry) { return is_of_sparse_frame(entry.path); });
  }
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return false;
  const std::filesystem::directory_iterator entries(path, ignored);
  return std::none_of(begin(entries), end(entries),
                      [](const std::filesystem::directory_entry& entry) { return is_of_sparse_frame(entry.path()); });
}

codec::Result<void> check_no_directory(const std::string& path, const std::string& name) {
  // A directory with a frame's suffix counts as a damaged frame.
  if (!frame::container_suffix(path).empty() || !is_other_directory(path)) return {};
  codec::Failure refused =
      codec::invalid("is a directory, not a sparse frame; ls, verify and the option --recursive take directories");
  refused.value().path = name;
  return refused;
}

codec::Result<std::shared_ptr<const frame::Container>> open_frame(const InputFile& input, std::uint64_t offset,
                                                                  bool old_bitshuffle) {
  const std::string& path = input.path();
  const auto files = files_for(path);
  if (!files) return codec::Failure(files.error());
  auto opened =
      frame::open_path(**files, path, std::make_shared<frame::IndexCache>(), frame::FileOffset{offset}, old_bitshuffle);
  if (opened) return opened;
  if (auto fine = check_no_directory(path, input.name()); !fine) return codec::Failure(fine.error());
  // No store has the suffix of a frame.
  const auto leaves = frame::container_suffix(path).empty() ? leaves_of(path) : std::vector<StoreLeaf>();
  if (leaves && !leaves->empty()) {
    codec::Failure refused = codec::invalid(fmt::format("is a store of {} members; name one of them: {}/{}",
                                                        leaves->size(), input.name(), leaves->front().path));
    refused.value().path = input.name();
    return refused;
  }
  return codec::Failure(with_path(opened.error(), input.name()));
}

int write_out(const frame::FlatView& view, frame::FlatOffset begin, std::uint64_t length, unsigned workers,
              const std::string& name, Io& io) {
  bool output_failed = false;
  const Sink sink = [&](codec::ByteView bytes) {
    auto written = io.out.write(bytes);
    output_failed = !written;
    return written;
  };
  const auto streamed = stream_view(view, begin, length, workers == 0 ? available_workers() : workers, sink, io.stop);
  if (io.stop.load()) return interrupted;
  if (streamed) return done;
  codec::Error error = streamed.error();
  // EPIPE: the reader has read enough.
  if (output_failed && error.sys == EPIPE) return done;
  return report(io, with_path(std::move(error), output_failed ? "standard output" : name));
}

codec::Error with_path(codec::Error error, const std::string& path) {
  if (error.path.empty()) error.path = path;
  return error;
}

ExitStatus emit(Io& io, const std::string& text) {
  if (io.is_out_lost) return done;
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  const auto written = io.out.write(bytes);
  io.is_out_lost = !written;
  if (written || written.error().sys == EPIPE) return done;
  codec::Error error = written.error();
  error.reason = "standard output: " + error.reason;
  return report(io, error);
}

ExitStatus report(Io& io, const codec::Error& error) {
  io.err.print("cframe: " + printable(codec::describe(error)) + "\n");
  return status_of(error);
}

int report_failure(Io& io, const codec::Error& error, const std::string& path) {
  return io.stop.load() ? interrupted : report(io, with_path(error, path));
}

}  // namespace cframefs::tools
