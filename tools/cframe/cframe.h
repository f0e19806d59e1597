// The program cframe: inspects, creates and changes frames without mounting them.
//
// cframe_main() is the whole program except signals, so that tests run it in process. Each subcommand has its own
// source file; declare_NAME() declares its options to the parser and returns the function that runs it.
//
// Thread safety: one program at a time for each Io. Errors: messages on io.err, and the exit status (io.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "frame/array/array_view.h"
#include "frame/base/utf8_sanitize.h"
#include "frame/open/open.h"
#include "tools/lib/input_file.h"
#include "tools/lib/io.h"

// <CLI/CLI.hpp> takes seconds to compile: only files that declare options include it.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cframefs::tools {

using frame::printable;

/// `arguments`: without the program's name.
int cframe_main(const std::vector<std::string>& arguments, Io& io);

/// Runs a subcommand once its arguments have been parsed. Returns the exit status.
using SubcommandRun = std::function<int(Io&)>;

/// Declare the arguments and options of a subcommand.
SubcommandRun declare_ls(CLI::App& app);
SubcommandRun declare_info(CLI::App& app);
SubcommandRun declare_cat(CLI::App& app);
SubcommandRun declare_diff(CLI::App& app);
SubcommandRun declare_bench(CLI::App& app);
SubcommandRun declare_verify(CLI::App& app);
SubcommandRun declare_pack(CLI::App& app);
SubcommandRun declare_unpack(CLI::App& app);
SubcommandRun declare_convert(CLI::App& app);
SubcommandRun declare_compact(CLI::App& app);
SubcommandRun declare_seal(CLI::App& app);
SubcommandRun declare_map(CLI::App& app);
SubcommandRun declare_top(CLI::App& app);
SubcommandRun declare_repair(CLI::App& app);
SubcommandRun declare_get_meta(CLI::App& app);
SubcommandRun declare_set_meta(CLI::App& app);
SubcommandRun declare_index(CLI::App& app);

/// Declares the required positional argument `name`: the frame to read.
void add_input_option(CLI::App& app, const std::string& name, std::string& into);

/// Declares an option whose value is a size (sizes.h).
CLI::Option* add_size_option(CLI::App& app, const std::string& name, std::uint64_t& into, const std::string& help);

/// Declares --b2nd: the form in which an array is written.
void add_array_form_option(CLI::App& app, frame::ArrayForm& into);

/// Opens a container; every error has its name. invalid: a directory or a store, which subcommands for one frame do not
/// take.
codec::Result<std::shared_ptr<const frame::Container>> open_frame(const InputFile& input, std::uint64_t offset,
                                                                  bool old_bitshuffle = false);

/// Returns `invalid` if `path` is a directory that is not a sparse frame, and has no frame's suffix. `name`: for
/// messages.
codec::Result<void> check_no_directory(const std::string& path, const std::string& name);

/// Writes a part of a view to standard output. Returns the exit status. `name`: of the input, for messages.
int write_out(const frame::FlatView& view, frame::FlatOffset begin, std::uint64_t length, unsigned workers,
              const std::string& name, Io& io);

/// Returns the error with `path`, unless it has a path.
codec::Error with_path(codec::Error error, const std::string& path);

/// Prints a result. Returns `done` also if the reader has closed the pipe; the first of other errors is reported.
/// Prints nothing more after an error.
ExitStatus emit(Io& io, const std::string& text);

/// Prints "cframe: PATH: chunk 3 at file offset 1234: REASON" to io.err. Returns the exit status for the error.
ExitStatus report(Io& io, const codec::Error& error);

/// The same for an operation on the file `path`; returns `interrupted` without a message if Ctrl-C has ended it.
int report_failure(Io& io, const codec::Error& error, const std::string& path);

}  // namespace cframefs::tools
