// cframe info: the properties of frames, as text or JSON.
#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "frame/cframe/b2nd_meta.h"
#include "frame/cframe/frame_container.h"
#include "frame/open/container_info.h"
#include "frame/write/dead_space.h"
#include "tools/cframe/cframe.h"
#include "tools/lib/frame_files.h"
#include "tools/lib/metalayers.h"
#include "tools/lib/sizes.h"
#include "tools/stream/frame_map.h"
#include "tools/stream/frame_scan.h"

namespace cframefs::tools {

using nlohmann::json;

namespace {

constexpr std::int64_t kMaxHeaders = 10000;
constexpr std::size_t kMaxShown = 400;  // characters of a metalayer in the text form
constexpr std::size_t kLabelWidth = 16;

struct InfoOptions {
  std::vector<std::string> files;
  std::uint64_t offset = 0;
  bool as_json = false;
  bool all = false;
};

// ---- JSON; the text is made from it ------------------------------------------------------------------------------

const char* split_mode_name(std::uint8_t mode) {
  switch (mode) {
    case 1:
      return "always";
    case 2:
      return "never";
    case 3:
      return "auto";
    case 4:
      return "forward-compat";
    default:
      return "not recorded";
  }
}

/// Returns true if the budget covers a content, in hexadecimal digits and as printed.
bool may_show(std::uint64_t length, const frame::ParseBudget& budget) {
  return length <= kMaxShownContent && 4 * length <= budget.memory_left();
}

/// Returns the fixed metalayers. Does not read those that are too long; all together take at most `budget`.
json metalayers_json(const frame::Container& container, frame::ParseBudget& budget) {
  json list = json::array();
  for (const auto& layer : container.metalayer_places()) {
    json shown = omitted_json(layer.length);
    if (may_show(layer.length, budget)) {
      if (const auto content = container.metalayer(layer)) {
        shown = metalayer_json(*content, budget);
      } else {
        shown = {{"error", codec::describe(content.error())}};
      }
    }
    shown["name"] = layer.name;
    list.push_back(std::move(shown));
  }
  return list;
}

json vlmetalayer_json(const frame::Container& container, const std::string& name, frame::ParseBudget& budget,
                      std::optional<codec::Error>& damage) {
  const auto fail = [&damage](const codec::Error& error) -> json {
    if (!damage) damage = error;
    return {{"error", codec::describe(error)}};
  };
  const auto length = container.vlmetalayer_length(name);
  if (!length) return fail(length.error());
  if (!may_show(*length, budget) || !budget.spend_work(*length, "metalayer")) return omitted_json(*length);
  const auto content = container.vlmetalayer(name);
  return content ? metalayer_json(*content, budget) : fail(content.error());
}

/// Returns the variable-length metalayers; one that cannot be decoded has an "error". Sets `damage` to the first error.
json vlmetalayers_json(const frame::Container& container, frame::ParseBudget& budget,
                       std::optional<codec::Error>& damage) {
  json list = json::array();
  for (const auto& name : container.vlmetalayer_names()) {
    json shown = vlmetalayer_json(container, name, budget, damage);
    shown["name"] = name;
    list.push_back(std::move(shown));
  }
  return list;
}

json scan_json(const FrameScan& scan) {
  const HeaderCounts& headers = scan.headers;
  json found = {{"headers_read", headers.read},
                {"complete", scan.complete},
                {"codecs", headers.codecs},
                {"split", headers.split},
                {"unsplit", headers.unsplit},
                {"memcpyed", headers.memcpyed},
                {"stored_special", headers.stored_special},
                {"dictionary", headers.dictionary},
                {"instrumented", headers.instrumented},
                {"variable_blocks", headers.variable_blocks},
                {"nbytes", headers.nbytes},
                {"cbytes", headers.cbytes},
                {"damaged", scan.damaged}};
  if (headers.read > 0) found["chunksizes"] = {headers.least_chunk, headers.most_chunk};
  if (headers.least_blocksize) found["blocksizes"] = {*headers.least_blocksize, *headers.most_blocksize};
  return found;
}

void add_header_fields(json& info, const frame::FrameParameters& parameters) {
  info["frame_version"] = parameters.frame_version;
  info["split_mode"] = split_mode_name(parameters.split_mode);
  info["codec_meta"] = parameters.compcode_meta;
  info["header_length"] = parameters.header_length;
  info["frame_length"] = parameters.frame_length;
  info["variable_chunks"] = parameters.variable_chunks;
  info["variable_blocks"] = parameters.vl_blocks;
  info["use_dictionary"] = parameters.use_dict;
}

/// Adds what `cframe compact` would gain: exact if the scan has read all headers, else an estimate. null: not known, or
/// compact does not take the container. `mapper`: the one of the scan. `file_bytes`: from the frame's first byte on.
codec::Result<void> add_compact_gain(json& info, const frame::Container& container, const FrameScan& scan,
                                     FrameMapper& mapper, std::uint64_t file_bytes) {
  info["compact_gain"] = nullptr;
  info["compact_gain_is_estimate"] = !scan.complete;
  const frame::FrameContainer* const frame = container.as_frame();
  if (frame == nullptr || scan.damaged > 0) return {};
  if (scan.complete) {
    const auto map = mapper.finish();
    if (!map) return codec::Failure(map.error());
    if (const auto gain = compact_gain(container, *map)) info["compact_gain"] = *gain;
    return {};
  }
  const frame::FrameParameters& parameters = container.parameters();
  if (parameters.kind != frame::ContainerKind::cframe || parameters.variable_chunks) return {};
  const auto dead = frame::measure_dead_bytes(*frame);
  if (!dead) return {};
  info["compact_gain"] = *dead + file_bytes - std::min(parameters.frame_length, file_bytes);
  return {};
}

struct Findings {
  json info;
  std::optional<codec::Error> damage;
};

codec::Result<Findings> look_into(const InfoOptions& options, const std::string& argument, Io& io) {
  const auto input = InputFile::open(argument, io);
  if (!input) return codec::Failure(input.error());
  const std::string& file = input->name();
  const auto opened = open_frame(*input, options.offset);
  if (!opened) return codec::Failure(opened.error());
  const frame::Container& container = **opened;
  MapRequest request;
  // What follows a frame inside of another file does not belong to it.
  request.file_bytes = options.offset == 0 ? stored_bytes(input->path()) : container.parameters().frame_length;
  FrameMapper mapper(container, request);
  Progress progress(io, "reading chunk headers", Progress::Unit::items);
  const std::int64_t most_headers = options.all ? std::numeric_limits<std::int64_t>::max() : kMaxHeaders;
  const auto scan =
      scan_frame(container, most_headers, container.as_frame() != nullptr ? &mapper : nullptr, io.stop, progress);
  if (!scan) {
    return codec::Failure(with_path(scan.error(), file));
  }
  Findings found{frame::summary_json(container), scan->first_damage};
  json& info = found.info;
  info["path"] = file;
  info["offset"] = options.offset;
  info["file_bytes"] = stored_bytes(input->path());
  add_header_fields(info, container.parameters());
  if (auto added = add_compact_gain(info, container, *scan, mapper, request.file_bytes); !added)
    return codec::Failure(with_path(added.error(), file));
  if (const auto* const sealed = container.as_frame(); sealed != nullptr && sealed->seal()) {
    const auto holds = sealed->seal()->holds();
    if (!holds) return codec::Failure(with_path(holds.error(), file));
    info["sealed"] = *holds;
    const auto known = sealed->seal()->has_sealed_metadata();
    if (!known) return codec::Failure(with_path(known.error(), file));
    info["metadata_as_sealed"] = *known;
  }
  info["special_chunks"] = {{"zeros", scan->zeros},
                            {"nan", scan->nan},
                            {"uninitialised", scan->uninitialised},
                            {"repeated", scan->headers.repeated}};
  info["stored_chunks"] = scan->stored;
  info["found"] = scan_json(*scan);
  auto budget = frame::ParseBudget::asked(container.stored_bytes());
  info["metalayers"] = metalayers_json(container, budget);
  info["vlmetalayers"] = vlmetalayers_json(container, budget, found.damage);
  if (const auto layer = frame::array_metalayer_of(container); layer && *layer) {
    if (auto array = array_json((*layer)->content)) info["array"] = std::move(*array);
  }
  if (!found.damage) found.damage = container.metalayer_damage();
  if (!found.damage) found.damage = container.vlmetalayer_damage();
  if (found.damage) {
    found.damage = with_path(*found.damage, file);
    info["error"] = codec::describe(*found.damage);
  }
  return found;
}

// ---- text --------------------------------------------------------------------------------------------------------

/// Returns JSON text; replaces bytes that are not UTF-8.
std::string dump(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

class Lines {
 public:
  void add(const std::string& label, const std::string& value) {
    std::string head = "  " + printable(label);
    head.resize(std::max(head.size() + 1, kLabelWidth), ' ');
    text_ += head + printable(value) + "\n";
  }
  std::string release() { return std::move(text_); }

 private:
  std::string text_;
};

std::string range_text(const json& bounds) {
  const auto least = bounds[0].get<std::uint64_t>();
  const auto most = bounds[1].get<std::uint64_t>();
  return least == most ? exact_size(most) : human_size(least) + " to " + human_size(most);
}

std::string chunks_text(const json& info) {
  const auto chunksize = info["chunksize"].get<std::int64_t>();
  std::string text = std::to_string(info["chunks"].get<std::int64_t>());
  if (chunksize > 0) return text + " of " + exact_size(static_cast<std::uint64_t>(chunksize));
  if (chunksize == 0) text += " of different sizes";
  const json& found = info["found"];
  if (found.contains("chunksizes")) text += ", " + range_text(found["chunksizes"]);
  return text;
}

std::string blocks_text(const json& info) {
  const auto blocksize = info["blocksize"].get<std::uint64_t>();
  const json& found = info["found"];
  std::string text = blocksize == 0 ? "chosen per chunk" : exact_size(blocksize) + " in the header";
  if (found.contains("blocksizes")) text += "; found " + range_text(found["blocksizes"]);
  if (found["variable_blocks"] != 0) text += "; of variable length in " + found["variable_blocks"].dump() + " chunks";
  return text;
}

/// Returns "3 zeros, 1 repeated" for the counts that are not 0.
std::string counts_text(const std::vector<std::pair<std::string, std::int64_t>>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    if (count == 0) continue;
    text += fmt::format("{}{} {}", (text.empty() ? "" : ", "), count, name);
  }
  return text.empty() ? "none" : text;
}

std::string made_text(const json& info) {
  const json& found = info["found"];
  std::vector<std::pair<std::string, std::int64_t>> counts;
  for (const auto& [name, count] : found["codecs"].items())
    counts.emplace_back(name, count.get<std::int64_t>());
  const auto add = [&](const char* name, const char* key) {
    counts.emplace_back(name, found[key].get<std::int64_t>());
  };
  add("split", "split");
  add("not split", "unsplit");
  add("stored uncompressed", "memcpyed");
  add("with a dictionary", "dictionary");
  add("instrumented", "instrumented");
  std::string text = counts_text(counts);
  if (!found["complete"].get<bool>()) {
    text += " (of the first " + found["headers_read"].dump() + " stored chunks; --all reads every header)";
  }
  return text;
}

std::string special_text(const json& info) {
  std::vector<std::pair<std::string, std::int64_t>> counts;
  for (const auto& [name, count] : info["special_chunks"].items())
    counts.emplace_back(name, count.get<std::int64_t>());
  counts.emplace_back("stored with a special header", info["found"]["stored_special"].get<std::int64_t>());
  return counts_text(counts);
}

std::string gain_text(const json& info) {
  const auto gain = info["compact_gain"].get<std::uint64_t>();
  const auto whole = std::max<std::uint64_t>(info["file_bytes"].get<std::uint64_t>(), 1);
  return fmt::format("would gain {}{} bytes ({:.1f} %)", info["compact_gain_is_estimate"].get<bool>() ? "about " : "",
                     gain, 100 * static_cast<double>(gain) / static_cast<double>(whole));
}

std::string seal_text(const json& info) {
  if (!info["sealed"].get<bool>())
    return info.contains("metadata_as_sealed") ? "no: the seal is not of this index" : "no";
  return info["metadata_as_sealed"].get<bool>() ? "yes" : "yes, but the metadata has changed since";
}

std::string layer_text(const json& layer) {
  if (layer.contains("error")) return "cannot be read: " + layer["error"].get<std::string>();
  std::string text = exact_size(layer["bytes"].get<std::uint64_t>());
  if (!layer.contains("value")) return text;
  text += ", " + layer["encoding"].get<std::string>() + ": ";
  std::string value = layer["encoding"] == "hex" ? layer["value"].get<std::string>() : dump(layer["value"], -1);
  if (value.size() > kMaxShown) value = value.substr(0, kMaxShown) + " ... (--json shows all)";
  return text + value;
}

std::string human_text(const json& info) {
  Lines lines;
  std::string format = info["format"].get<std::string>() + ", version " + info["frame_version"].dump();
  if (info["offset"] != 0) format += ", at offset " + info["offset"].dump();
  lines.add("format", format);
  const std::string level = info["clevel"].is_null() ? "" : ", level " + info["clevel"].dump();
  lines.add("codec", info["codec"].get<std::string>() + level);
  lines.add("filters", info["filters"].get<std::string>());
  lines.add("typesize", info["typesize"].dump());
  lines.add("uncompressed", exact_size(info["nbytes"].get<std::uint64_t>()));
  lines.add("stored size", exact_size(info["cbytes"].get<std::uint64_t>()));
  if (info["ratio"].is_number()) {
    char ratio[32];
    std::snprintf(ratio, sizeof ratio, "%.2f", info["ratio"].get<double>());
    lines.add("ratio", ratio);
  }
  lines.add("file size", exact_size(info["file_bytes"].get<std::uint64_t>()));
  lines.add("frame length", exact_size(info["frame_length"].get<std::uint64_t>()) + ", header " +
                                exact_size(info["header_length"].get<std::uint64_t>()));
  if (info["compact_gain"].is_number()) lines.add("compact", gain_text(info));
  lines.add("sealed", seal_text(info));
  lines.add("chunks", chunks_text(info));
  lines.add("blocks", blocks_text(info));
  lines.add("split mode", info["split_mode"].get<std::string>());
  lines.add("made with", made_text(info));
  lines.add("special", special_text(info));
  if (info.contains("array")) {
    for (const auto& [name, value] : info["array"].items()) {
      lines.add(name, value.is_string() ? value.get<std::string>() : dump(value, -1));
    }
  }
  for (const char* kind : {"metalayers", "vlmetalayers"}) {
    lines.add(kind, std::to_string(info[kind].size()));
    for (const auto& layer : info[kind])
      lines.add("  " + layer["name"].get<std::string>(), layer_text(layer));
  }
  return printable(info["path"].get<std::string>()) + "\n" + lines.release();
}

// ---- the subcommand ----------------------------------------------------------------------------------------------

int run_info(const InfoOptions& options, Io& io) {
  int status = done;
  for (const auto& file : options.files) {
    const auto found = look_into(options, file, io);
    if (io.stop.load()) return interrupted;
    // One object on one line for each file, also for a single file.
    const json shown = found ? found->info : json{{"path", file}, {"error", codec::describe(found.error())}};
    if (options.as_json) {
      status = std::max<int>(status, emit(io, dump(shown, -1) + "\n"));
    } else if (found) {
      status = std::max<int>(status, emit(io, human_text(shown)));
    }
    if (!found) {
      status = std::max<int>(status, report(io, found.error()));
    } else if (found->damage) {
      status = std::max<int>(status, report(io, *found->damage));
    }
  }
  return status;
}

}  // namespace

SubcommandRun declare_info(CLI::App& app) {
  auto options = std::make_shared<InfoOptions>();
  app.add_option("FILE", options->files, "Frames, directories of sparse frames, or - for standard input")
      ->required()
      ->type_name("");
  app.add_flag("--json", options->as_json, "Print JSON: one object on one line for each file");
  app.add_flag("--all", options->all, "Read the header of every chunk, not only of the first 10000 stored ones");
  add_size_option(app, "--frame-offset", options->offset, "Offset of the frame in the file (0)");
  return [options](Io& io) { return run_info(*options, io); };
}

}  // namespace cframefs::tools
