// cframe get-meta and set-meta: the metalayers of a frame, one at a time.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <nlohmann/json.hpp>

#include "tools/cframe.h"
#include "tools/frame_changes.h"
#include "tools/metalayers.h"

namespace cframefs::tools {

using nlohmann::json;

namespace {

/// The longest content that is taken from a file: metalayers are held in memory and written with every commit.
constexpr std::uint64_t kMostContent = std::uint64_t{256} << 20;

struct GetOptions {
  std::string file;
  std::optional<std::string> name;
  std::uint64_t offset = 0;
  bool fixed = false;
  bool as_json = false;
};

struct SetOptions {
  std::string file;
  std::string name;
  std::optional<std::string> value;
  std::optional<std::string> from;
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
  if (container.metalayer_damage()) return tl::unexpected(*container.metalayer_damage());
  return codec::invalid("there is no fixed metalayer '" + name + "'");
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
  const auto container = open_frame(options.file, options.offset);
  if (!container) return report(io, container.error());
  if (!options.name) return list_names(options, **container, io);
  const auto content = content_of(**container, *options.name, options.fixed);
  if (!content) return report(io, with_path(content.error(), options.file));
  if (options.as_json) {
    auto budget = frame::ParseBudget::asked((*container)->stored_bytes());
    return emit(io, metalayer_json(*content, budget).dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  }
  return emit(io, std::string(content->begin(), content->end()));
}

codec::Result<std::vector<std::uint8_t>> read_content(const std::string& path) {
  frame::FileOps& files = frame::system_files();
  const auto fd = files.open_named(path, O_RDONLY);
  if (!fd) return tl::unexpected(with_path(fd.error(), path));
  const frame::Descriptor file(files, *fd);
  std::vector<std::uint8_t> content;
  std::vector<std::uint8_t> piece(1 << 16);
  while (true) {
    const auto got = files.pread(file.fd(), piece, frame::FileOffset{content.size()});
    if (!got) return tl::unexpected(with_path(got.error(), path));
    content.insert(content.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(*got));
    if (content.size() > kMostContent) return codec::invalid(path + " is too long for a metalayer");
    if (*got < piece.size()) return content;
  }
}

codec::Result<void> change(const SetOptions& options, frame::FrameWriter& writer) {
  if (options.remove) return writer.remove_vlmetalayer(options.name);
  std::vector<std::uint8_t> content;
  if (options.from) {
    auto read = read_content(*options.from);
    if (!read) return tl::unexpected(read.error());
    content = std::move(*read);
  } else {
    content.assign(options.value->begin(), options.value->end());
  }
  return options.fixed ? writer.set_metalayer(options.name, content) : writer.set_vlmetalayer(options.name, content);
}

int run_set(const SetOptions& options, Io& io) {
  const int contents = (options.value ? 1 : 0) + (options.from ? 1 : 0) + (options.remove ? 1 : 0);
  if (contents != 1) {
    return report(io, codec::invalid("set-meta wants one of VALUE, --from and --remove").value());
  }
  if (options.fixed && options.remove) {
    return report(io, codec::invalid("fixed metalayers cannot be removed").value());
  }
  auto opened = open_writer(options.file, options.wait);
  if (!opened) return report(io, opened.error());
  auto done = change(options, *opened->writer);
  if (done) done = opened->writer->commit(frame::Durability::durable);
  if (!done) return report(io, with_path(done.error(), options.file));
  return ExitStatus::done;
}

}  // namespace

SubcommandRun declare_get_meta(CLI::App& app) {
  auto options = std::make_shared<GetOptions>();
  app.add_option("FILE", options->file, "Frame, or folder of a sparse frame")->required()->type_name("");
  app.add_option("NAME", options->name, "The metalayer; without it, all names")->type_name("");
  app.add_flag("--fixed", options->fixed, "Of the fixed metalayers, not of those of variable length");
  app.add_flag("--json", options->as_json, "Decoded, as JSON");
  add_size_option(app, "--offset", options->offset, "Where the frame starts inside the file (0)");
  return [options](Io& io) { return run_get(*options, io); };
}

SubcommandRun declare_set_meta(CLI::App& app) {
  auto options = std::make_shared<SetOptions>();
  app.add_option("FILE", options->file, "Frame, or folder of a sparse frame")->required()->type_name("");
  app.add_option("NAME", options->name, "The metalayer, 1 to 31 bytes")->required()->type_name("");
  app.add_option("VALUE", options->value, "Its content")->type_name("");
  app.add_option("--from", options->from, "Take the content from a file")->type_name("FILE");
  app.add_flag("--remove", options->remove, "Remove it");
  app.add_flag("--fixed", options->fixed, "A fixed metalayer, not one of variable length");
  add_wait_option(app, options->wait);
  return [options](Io& io) { return run_set(*options, io); };
}

}  // namespace cframefs::tools
