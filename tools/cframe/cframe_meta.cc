// cframe get-meta and set-meta: the metalayers of a frame, one at a time.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <nlohmann/json.hpp>

#include "frame/write/frame_metalayers.h"
#include "tools/cframe/cframe.h"
#include "tools/cframe/open_writer.h"
#include "tools/lib/metalayers.h"

namespace cframefs::tools {

using nlohmann::json;

namespace {

/// The longest content read from a file, in bytes: metalayers are kept in memory and written with each commit.
constexpr std::uint64_t kMaxContent = std::uint64_t{256} << 20;

struct GetOptions {
  std::string file;
  std::optional<std::string> name;
  std::uint64_t offset = 0;
  bool fixed = false;
  bool as_json = false;
  bool raw = false;
};

struct SetOptions {
  std::string file;
  std::string name;
  std::optional<std::string> value;
  std::optional<std::string> from;
  std::optional<MetaType> type;
  double wait = 5;
  bool fixed = false;
  bool remove = false;
};

std::vector<std::string> names_of(const frame::Container& container, bool fixed) {
  if (!fixed) return container.vlmetalayer_names();
  std::vector<std::string> names;
  for (const frame::MetalayerPlace& layer : container.metalayer_places())
    names.push_back(layer.name);
  return names;
}

codec::Result<std::vector<std::uint8_t>> content_of(const frame::Container& container, const std::string& name,
                                                    bool fixed) {
  if (!fixed) return container.vlmetalayer(name);
  const auto& layers = container.metalayer_places();
  const auto found =
      std::find_if(layers.begin(), layers.end(), [&name](const auto& layer) { return layer.name == name; });
  if (found != layers.end()) return container.metalayer(*found);
  if (container.metalayer_damage()) return codec::Failure(*container.metalayer_damage());
  return codec::invalid("no fixed metalayer '" + name + "'");
}

int list_names(const GetOptions& options, const frame::Container& container, Io& io) {
  const std::vector<std::string> names = names_of(container, options.fixed);
  std::string text;
  for (const std::string& name : names)
    text += printable(name) + "\n";
  if (options.as_json) text = json(names).dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  int status = emit(io, text);
  const auto& damage = options.fixed ? container.metalayer_damage() : container.vlmetalayer_damage();
  if (damage) status = std::max<int>(status, report(io, with_path(*damage, options.file)));
  return status;
}

int run_get(const GetOptions& options, Io& io) {
  const auto input = InputFile::open(options.file, io);
  if (!input) return report_failure(io, input.error(), options.file);
  const auto container = open_frame(*input, options.offset);
  if (!container) return report(io, container.error());
  if (!options.name) return list_names(options, **container, io);
  const auto content = content_of(**container, *options.name, options.fixed);
  if (!content) return report(io, with_path(content.error(), input->name()));
  if (options.as_json) {
    auto budget = frame::ParseBudget::asked((*container)->stored_bytes());
    return emit(io, metalayer_json(*content, budget).dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  }
  if (options.raw) return emit(io, std::string(content->begin(), content->end()));
  const auto text = meta_text(*content);
  if (!text) return report(io, with_path(text.error(), input->name()));
  return emit(io, *text);
}

codec::Result<std::vector<std::uint8_t>> read_content(const std::string& argument, Io& io) {
  const auto input = InputFile::open(argument, io);
  if (!input) return codec::Failure(input.error());
  const std::string& path = input->name();
  frame::ReadFileOps& files = frame::system_files();
  const auto fd = files.open_named(input->path(), O_RDONLY);
  if (!fd) return codec::Failure(with_path(fd.error(), path));
  const frame::Descriptor file(files, *fd);
  std::vector<std::uint8_t> content;
  std::vector<std::uint8_t> piece(1 << 16);
  while (true) {
    const auto got = files.pread(file.handle(), piece, frame::FileOffset{content.size()});
    if (!got) return codec::Failure(with_path(got.error(), path));
    content.insert(content.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(*got));
    if (content.size() > kMaxContent) {
      return codec::invalid(path + " is too long for a metalayer of at most " + std::to_string(kMaxContent) + " bytes");
    }
    if (*got < piece.size()) return content;
  }
}

/// Returns the content to store. Called before the frame is locked.
codec::Result<std::vector<std::uint8_t>> new_content(const SetOptions& options, Io& io) {
  if (options.remove) return std::vector<std::uint8_t>();
  if (!options.from) {
    return meta_content(options.type.value_or(MetaType::text), {options.value->begin(), options.value->end()});
  }
  auto read = read_content(*options.from, io);
  if (!read) return read;
  return meta_content(options.type.value_or(MetaType::bytes), std::move(*read));
}

codec::Result<void> change(const SetOptions& options, const std::vector<std::uint8_t>& content,
                           frame::FrameWriter& writer) {
  if (options.remove) return frame::FrameMetalayers(writer).remove_variable(options.name);
  return options.fixed ? frame::FrameMetalayers(writer).set_fixed(options.name, content)
                       : frame::FrameMetalayers(writer).set_variable(options.name, content);
}

int run_set(const SetOptions& options, Io& io) {
  const int contents = (options.value ? 1 : 0) + (options.from ? 1 : 0) + (options.remove ? 1 : 0);
  if (contents != 1) {
    return report(io, codec::invalid("set-meta needs exactly one of VALUE, --from and --remove").value());
  }
  if (options.fixed && options.remove) {
    return report(io, codec::invalid("fixed metalayers cannot be removed").value());
  }
  const auto content = new_content(options, io);
  if (!content) return report_failure(io, content.error(), options.file);
  auto opened = open_writer(options.file, options.wait);
  if (!opened) return report(io, opened.error());
  auto done = change(options, *content, *opened->writer);
  if (done) done = opened->writer->commit(frame::Durability::durable);
  if (!done) return report(io, with_path(done.error(), options.file));
  return ExitStatus::done;
}

}  // namespace

SubcommandRun declare_get_meta(CLI::App& app) {
  auto options = std::make_shared<GetOptions>();
  add_input_option(app, "FILE", options->file);
  app.add_option("NAME", options->name, "The metalayer; without it, all names")->type_name("");
  app.add_flag("--fixed", options->fixed, "Read a fixed metalayer instead of a variable-length one");
  auto* as_json = app.add_flag("--json", options->as_json, "Print JSON with the decoded value and its encoding");
  app.add_flag("--raw", options->raw, "Write the stored bytes without decoding")->excludes(as_json);
  add_size_option(app, "--frame-offset", options->offset, "Offset of the frame in the file (0)");
  return [options](Io& io) { return run_get(*options, io); };
}

SubcommandRun declare_set_meta(CLI::App& app) {
  auto options = std::make_shared<SetOptions>();
  app.add_option("FILE", options->file, "Frame, or directory of a sparse frame")->required()->type_name("");
  app.add_option("NAME", options->name, "The metalayer, 1 to 31 bytes")->required()->type_name("");
  app.add_option("VALUE", options->value, "Its value")->type_name("");
  app.add_option("--from", options->from, "Take the value from a file, or from standard input for -")
      ->type_name("FILE");
  static const std::map<std::string, MetaType> types = {{"text", MetaType::text},
                                                        {"json", MetaType::json},
                                                        {"bytes", MetaType::bytes},
                                                        {"msgpack", MetaType::msgpack},
                                                        {"raw", MetaType::raw}};
  auto* type = app.add_option_function<std::string>(
      "--type", [options](const std::string& name) { options->type = types.at(name); },
      "What the value is: text (VALUE), bytes (--from), JSON or msgpack, all stored as msgpack; or raw bytes");
  type->check(CLI::IsMember(types))->type_name("text|json|bytes|msgpack|raw");
  auto* as_json = app.add_flag_callback(
      "--json", [options] { options->type = MetaType::json; }, "The same as --type json");
  auto* as_msgpack = app.add_flag_callback(
      "--msgpack", [options] { options->type = MetaType::msgpack; }, "The same as --type msgpack");
  as_json->excludes(type)->excludes(as_msgpack);
  as_msgpack->excludes(type);
  app.add_flag("--remove", options->remove, "Remove the metalayer");
  app.add_flag("--fixed", options->fixed, "Set a fixed metalayer instead of a variable-length one");
  add_wait_option(app, options->wait);
  return [options](Io& io) { return run_set(*options, io); };
}

}  // namespace cframefs::tools
