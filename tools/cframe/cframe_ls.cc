// cframe ls: one line for each frame in files, directories and stores.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "frame/cframe/b2nd_meta.h"
#include "frame/numpy/bloscpack_numpy.h"
#include "frame/open/container_info.h"
#include "tools/cframe/cframe.h"
#include "tools/lib/frame_files.h"
#include "tools/lib/metalayers.h"
#include "tools/lib/server_paths.h"
#include "tools/lib/sizes.h"

namespace cframefs::tools {

using nlohmann::json;

namespace {

constexpr std::size_t kMaxType = 20;  // characters of a dtype that are shown
constexpr std::size_t kMaxShape = 60;

struct ListOptions {
  std::vector<std::string> files;
  bool as_json = false;
  bool recursive = false;
  bool tree = false;
};

/// What the line of a frame shows.
// NOLINTNEXTLINE(bugprone-exception-escape): moving a json throws nothing, but is not declared so in full
struct ListedFrame {
  std::string path;
  std::uint64_t plain = 0;
  std::uint64_t stored = 0;
  std::string codec;
  std::string shape;
  json info;
  std::optional<codec::Error> error;
};

double ratio_of(std::uint64_t plain, std::uint64_t stored) {
  return static_cast<double>(plain) / static_cast<double>(stored);
}

std::string shortened(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  text.resize(most);
  return text + "...";
}

/// Returns shape and dtype of an array; null for any other container, or for damaged metadata.
json array_of(const frame::Container& container) {
  if (const auto layer = frame::array_metalayer_of(container); layer && *layer) {
    auto array = array_json((*layer)->content);
    return array ? std::move(*array) : json();
  }
  if (const auto pack = frame::numpy_pack_of(container); pack && *pack)
    return {{"shape", (*pack)->shape}, {"dtype", (*pack)->type.descr}};
  return {};
}

std::string shape_text(const json& array) {
  if (!array.is_object()) return "";
  std::string text;
  for (const json& length : array["shape"])
    text += (text.empty() ? "" : "x") + length.dump();
  text = shortened(text.empty() ? "scalar" : text, kMaxShape);
  if (!array.contains("dtype")) return text;
  std::string type = array["dtype"].get<std::string>();
  type.erase(std::remove(type.begin(), type.end(), '\''), type.end());
  return shortened(type, kMaxType) + " " + text;
}

/// Describes the frame at `input`. `stored`: 0 if it is not known.
ListedFrame describe(const InputFile& input, std::uint64_t stored) {
  ListedFrame row;
  row.path = input.name();
  row.stored = stored;
  row.info = {{"path", row.path}, {"type", "frame"}, {"stored", stored}};
  const auto opened = open_frame(input, 0);
  if (!opened) {
    row.error = with_path(opened.error(), row.path);
    row.info["error"] = codec::describe(*row.error);
    return row;
  }
  const frame::Container& container = **opened;
  const json summary = frame::summary_json(container);
  for (const char* key : {"format", "codec", "clevel", "filters", "typesize", "chunksize", "blocksize", "chunks"})
    row.info[key] = summary[key];
  row.plain = container.parameters().nbytes;
  if (stored == 0) row.stored = container.stored_bytes();
  row.codec = summary["codec"].get<std::string>();
  if (!summary["clevel"].is_null()) row.codec += " " + summary["clevel"].dump();
  if (summary["filters"] != "none") row.codec += " " + summary["filters"].get<std::string>();
  row.info["plain"] = row.plain;
  row.info["stored"] = row.stored;
  row.info["ratio"] = row.stored == 0 ? json() : json(std::round(ratio_of(row.plain, row.stored) * 1000) / 1000);
  const json array = array_of(container);
  row.shape = shape_text(array);
  if (array.is_object()) {
    row.info["shape"] = array["shape"];
    row.info["dtype"] = array.contains("dtype") ? array["dtype"] : json();
  }
  return row;
}

std::string without_dot(const std::string& path) {
  return path.starts_with("./") ? path.substr(2) : path;
}

/// Lists arguments, directories and stores in the order of names.
class Lister {
 public:
  Lister(const ListOptions& options, Io& io) : options_(options), io_(io) {}

  int run() {
    if (!options_.as_json) print(line("PLAIN", "STORED", "RATIO", "CODEC", "SHAPE", "NAME"));
    for (const std::string& file : options_.files) {
      list_argument(file);
      if (io_.stop.load()) return interrupted;
      if (io_.is_out_lost) return status_;
    }
    if (!options_.as_json && frames_ > 1) print(line(plain_, stored_, "", "", fmt::format("{} frames", frames_)));
    return status_;
  }

 private:
  /// The entries of a directory or store.
  struct ListedGroup {
    std::vector<DirectoryEntry> entries;
    std::string indent;          // lines of the tree before the names
    std::size_t name_begin = 0;  // position of the names in the paths as printed
    std::size_t at = 0;
  };

  void print(const std::string& text) { status_ = std::max<int>(status_, emit(io_, text)); }
  void fail(const codec::Error& error) { status_ = std::max<int>(status_, report(io_, error)); }
  void print(const json& info) { print(info.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"); }

  static std::string line(const std::string& plain, const std::string& stored, const std::string& ratio,
                          const std::string& codec, const std::string& shape, const std::string& name) {
    return fmt::format("{:>10} {:>10} {:>7}  {:<24} {:<20} {}\n", plain, stored, ratio, codec, shape, name);
  }

  static std::string line(std::uint64_t plain, std::uint64_t stored, const std::string& codec, const std::string& shape,
                          const std::string& name) {
    const std::string ratio = stored == 0 ? "-" : fmt::format("{:.2f}", ratio_of(plain, stored));
    return line(human_size(plain), human_size(stored), ratio, codec, shape, name);
  }

  void add(const ListedFrame& row, const std::string& shown) {
    if (options_.as_json) {
      print(row.info);
    } else if (row.error) {
      print(line("-", human_size(row.stored), "-", "unreadable", "-", printable(shown)));
    } else {
      print(line(row.plain, row.stored, printable(row.codec), printable(row.shape), printable(shown)));
    }
    if (row.error) return fail(*row.error);
    ++frames_;
    plain_ += row.plain;
    stored_ += row.stored;
  }

  /// Prints the line of a directory or store.
  void add_group(const DirectoryEntry& group, const std::string& shown) {
    const bool is_store = group.kind == EntryKind::store;
    const char* type = is_store ? "store" : "directory";
    if (options_.as_json) return print(json{{"path", shown_path(group.path)}, {"type", type}});
    const std::string slash = shown.ends_with('/') ? "" : "/";
    print(line("-", is_store ? human_size(group.stored_bytes) : "-", "-", type, "-", printable(shown) + slash));
  }

  void list_argument(const std::string& argument) {
    const auto input = InputFile::open(argument, io_);
    if (!input) return fail(with_path(input.error(), argument));
    if (input->is_stream()) return add(describe(*input, stored_bytes(input->path())), input->name());
    const DirectoryEntry entry{argument, kind_of(argument, true), stored_bytes(argument)};
    if (entry.kind != EntryKind::directory && entry.kind != EntryKind::store)
      return add(describe(InputFile(argument), entry.stored_bytes), shown_path(argument));
    if (options_.tree) add_group(entry, shown_path(argument));
    // A list instead of recursion, because the depth of directories is not bounded.
    enter(entry, "");
    while (!pending_.empty() && !io_.stop.load() && !io_.is_out_lost)
      step();
    pending_.clear();
  }

  void enter(const DirectoryEntry& group, std::string indent) {
    auto members = members_of(group);
    if (!members) return fail(members.error());
    const std::string path = shown_path(group.path);
    const std::size_t name_begin = path.size() + (path.ends_with('/') ? 0 : 1);
    pending_.push_back({std::move(*members), std::move(indent), name_begin});
  }

  /// Lists the next entry of the innermost directory.
  void step() {
    ListedGroup& level = pending_.back();
    if (level.at == level.entries.size()) return pending_.pop_back();
    const DirectoryEntry entry = level.entries[level.at++];
    const bool is_last = level.at == level.entries.size();
    const std::string below = level.indent + (is_last ? "    " : "\u2502   ");
    const std::string path = shown_path(entry.path);
    const std::string shown = options_.tree ? level.indent + (is_last ? "\u2514\u2500\u2500 " : "\u251c\u2500\u2500 ") +
                                                  path.substr(level.name_begin)
                                            : without_dot(path);
    if (entry.kind == EntryKind::frame) return add(describe(InputFile(entry.path), entry.stored_bytes), shown);
    if (options_.tree || !options_.recursive) add_group(entry, shown);
    if (options_.tree || options_.recursive) enter(entry, below);
  }

  const ListOptions& options_;
  Io& io_;
  std::vector<ListedGroup> pending_;  // from the argument to the innermost directory
  std::uint64_t frames_ = 0;
  std::uint64_t plain_ = 0;
  std::uint64_t stored_ = 0;
  int status_ = done;
};

}  // namespace

SubcommandRun declare_ls(CLI::App& app) {
  auto options = std::make_shared<ListOptions>();
  app.add_option("FILE", options->files, "Frames, directories, stores, or - for standard input (the current directory)")
      ->type_name("");
  app.add_flag("--json", options->as_json, "Print JSON: one object on one line for each file");
  app.add_flag("-r,--recursive", options->recursive, "List sub-directories and stores, too");
  app.add_flag("--tree", options->tree, "The same, as a tree");
  return [options](Io& io) {
    if (options->files.empty()) options->files.emplace_back(".");
    return Lister(*options, io).run();
  };
}

}  // namespace cframefs::tools
