// The operands of the subcommands that make a file of each input: one input and its output, or several inputs.
//
//   cframe pack IN OUT         one input; OUT is its output
//   cframe pack IN             one input; the program names the output
//   cframe pack -m FILE...     several inputs; the program names the outputs (also -r, and --to DIR)
//
// Only -m, -r and --to make several inputs of the operands, not their number. A shell pattern that matches two files is
// IN and OUT: without --force an existing OUT is refused, and --force replaces no file that is not a frame.
//
// No run replaces one of its inputs, or makes two outputs of one name. Thread safety: as cframe.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cframe/cframe.h"
#include "tools/lib/frame_files.h"

namespace cframefs::tools {

inline constexpr std::string_view kNpySuffix = ".npy";

struct BatchOptions {
  std::vector<std::string> operands;
  std::optional<std::string> to;  // directory of the outputs
  bool multiple = false;
  bool recursive = false;
  bool force = false;
  bool remove = false;
  bool as_json = false;
  bool quiet = false;
  unsigned workers = 0;

  bool takes_several() const { return multiple || recursive || to.has_value(); }
};

/// One file to be made.
struct FileTask {
  std::string in;
  std::string out;
  bool replace = false;
  unsigned workers = 1;
};

/// Sizes of a file that was made.
struct MadeFile {
  std::uint64_t plain = 0;  // uncompressed bytes
  std::uint64_t stored = 0;
  std::string entity_tag = {};  // of an object in a bucket
};

/// A subcommand, as the batch sees it.
struct FileMaker {
  std::string doing;          // "packing"
  std::string done;           // "packed"
  bool reads_frames = false;  // -r takes the members of stores, too
  /// Returns true if -r takes this file of a directory.
  std::function<bool(const DirectoryEntry&)> takes;
  /// Returns the name of the output of `in`, in the same directory.
  std::function<codec::Result<std::string>(const std::string& in)> name;
  /// Makes the file; reports errors on `io`. Returns the exit status. Called on several threads at a time.
  std::function<int(const FileTask& task, MadeFile& made, Io& io)> make;
};

/// Declares the operands (IN, OUT) and --multiple, --recursive, --to, --force, --rm, --json, --quiet and --workers.
void add_batch_options(CLI::App& app, BatchOptions& options, const std::string& in, const std::string& out);

/// A file to be made, or why it cannot be.
struct PlannedFile {
  FileTask task;
  std::uint64_t bytes = 0;  // of the input, for the progress
  std::optional<codec::Error> error;
};

/// Returns the files that the operands name, in their order. Refuses outputs that are inputs, and two outputs of one
/// name. REQUIRES: options.takes_several().
std::vector<PlannedFile> plan_files(const BatchOptions& options, const FileMaker& maker);

/// Makes all files. Returns the exit status.
int run_files(const BatchOptions& options, const FileMaker& maker, Io& io);

/// Returns `invalid` if --force must not replace `out` by a frame: it has content that is neither a frame nor an array.
codec::Result<void> check_replaceable(const std::string& out);

/// Returns true for a file with the suffix of a container that is one, also if other formats use the suffix.
bool is_container_entry(const DirectoryEntry& entry);

/// Returns the name of `in` without the suffix of its container. invalid: it has none.
codec::Result<std::string> without_suffix(const std::string& in);

}  // namespace cframefs::tools
