#include "tools/cframe/encode_options.h"

#include <functional>
#include <map>

#include <CLI/CLI.hpp>

#include "codec/stream/codec_table.h"
#include "tools/lib/sizes.h"

namespace cframefs::tools {

namespace {

using codec::Result;

/// Declares an option whose text `parse` converts; an error of `parse` becomes the message.
template <class T, class Into>
void add_parsed(CLI::App& app, const std::string& name, const char* type, const std::string& help, Into& into,
                const std::function<Result<T>(const std::string&)>& parse) {
  const auto parse_into = [&into, name, parse](const std::string& text) {
    const auto value = parse(text);
    if (!value) throw CLI::ValidationError(name, "'" + text + "' " + value.error().reason);
    into = *value;
  };
  app.add_option_function<std::string>(name, parse_into, help)->type_name(type);
}

void add_size(CLI::App& app, const std::string& name, const char* type, const std::string& help, std::uint64_t& into,
              std::uint64_t most) {
  add_parsed<std::uint64_t>(app, name, type, help, into,
                            [most](const std::string& text) { return parse_size_or_auto(text, most); });
}

Result<int> parse_level(const std::string& text) {
  const auto level = parse_count(text);
  if (!level || *level > 9) return codec::invalid("must be a number between 0 and 9");
  return static_cast<int>(*level);
}

Result<std::optional<codec::FilterSlots>> parse_filters(const std::string& text) {
  if (text == "auto") return std::nullopt;
  const auto filters = codec::filters_named(text);
  if (!filters) return codec::Failure(filters.error());
  return std::optional(*filters);
}

}  // namespace

codec::EncodeParameters EncodeOptions::parameters() const {
  codec::EncodeParameters encode;
  encode.compcode = compcode.value_or(codec::kZstd);
  encode.clevel = clevel.value_or(5);
  encode.filters = filters.value_or(*codec::filters_named("shuffle"));
  encode.typesize = static_cast<std::int32_t>(typesize);
  encode.blocksize = static_cast<std::int32_t>(blocksize);
  return encode;
}

void add_frame_options(CLI::App& app, EncodeOptions& wishes) {
  add_parsed<std::uint8_t>(app, "--codec", "NAME", codec::writable_codec_names(" or ") + " (zstd)", wishes.compcode,
                           [](const std::string& text) { return codec::find_codec(text); });
  add_parsed<int>(app, "--clevel", "0..9", "Compression level; 0 stores (5)", wishes.clevel, parse_level);
  add_parsed<std::optional<codec::FilterSlots>>(
      app, "--filter", "NAME[+NAME...]|auto",
      "none, shuffle, bitshuffle, delta, bytedelta, in the order applied (auto: chosen by samples)", wishes.filters,
      parse_filters);
  add_size(app, "--typesize", "BYTES|auto", "Size of an item (auto: chosen by samples)", wishes.typesize,
           codec::kMaxBlockBytes);
  add_size(app, "--chunksize", "SIZE|auto", "Uncompressed size of a chunk, rounded to a multiple of the typesize (1M)",
           wishes.chunksize, codec::kMaxChunkBytes);
  add_size(app, "--blocksize", "SIZE|auto", "Uncompressed size of a block (auto: by codec, level and samples)",
           wishes.blocksize, codec::kMaxBlockBytes);
}

void add_checksums_option(CLI::App& app, frame::Checksums& into) {
  static const std::map<std::string, frame::Checksums> words = {
      {"on", frame::Checksums::on}, {"keep", frame::Checksums::keep}, {"off", frame::Checksums::off}};
  app.add_option_function<std::string>(
         "--checksums", [&into](const std::string& word) { into = words.at(word); },
         "Digests of blocks, by which damage is seen: written, kept if the input has them, or left out (on)")
      ->check(CLI::IsMember(words))
      ->type_name("on|keep|off");
}

Result<void> validate_combination(const EncodeOptions& wishes) {
  if (wishes.chunksize != 0 && wishes.blocksize > wishes.chunksize) {
    return codec::invalid("--blocksize is larger than --chunksize");
  }
  if (wishes.blocksize != 0 && wishes.typesize > wishes.blocksize) {
    return codec::invalid("--typesize is larger than --blocksize");
  }
  if (wishes.chunksize != 0 && wishes.typesize > wishes.chunksize) {
    return codec::invalid("--typesize is larger than --chunksize");
  }
  return {};
}

}  // namespace cframefs::tools
