#include "tools/lib/result_name.h"

#include <algorithm>
#include <array>

#include "frame/base/suffixes.h"
#include "frame/open/open.h"

namespace cframefs::tools {

namespace {

using codec::Result;
using frame::kEmbedStoreSuffix;
using frame::kZipStoreSuffix;

constexpr std::array<std::uint8_t, 2> kZipMagic = {'P', 'K'};

codec::Failure refused(const std::string& out, const std::string& why) {
  codec::Failure failure = codec::invalid(why);
  failure.value().path = out;
  return failure;
}

bool is_store_layer(const frame::Metalayer& layer) {
  return layer.name == "b2embed" || layer.name == "b2dict" || layer.name == "b2tree";
}

}  // namespace

Result<void> check_frame_name(const std::string& out, const std::vector<frame::Metalayer>& layers) {
  const bool is_embed_frame = std::any_of(layers.begin(), layers.end(), is_store_layer);
  if (out.ends_with(kZipStoreSuffix) || (out.ends_with(kEmbedStoreSuffix) && !is_embed_frame)) {
    return refused(out, "has the suffix of a python-blosc2 store, but the output is a frame: name it .b2frame");
  }
  return {};
}

Result<void> check_plain_name(const std::string& out, codec::ByteView first, std::uint64_t size) {
  const bool is_zip = first.size() >= kZipMagic.size() && std::equal(kZipMagic.begin(), kZipMagic.end(), first.begin());
  const bool named_zip = out.ends_with(kZipStoreSuffix);
  const bool named_frame = out.ends_with(kEmbedStoreSuffix) || !frame::container_suffix(out).empty();
  const bool is_container = frame::begins_container(first, size);
  if ((!named_zip || is_zip) && (!named_frame || is_container)) return {};
  return refused(
      out,
      "has the suffix of a container, but unpack writes uncompressed bytes: give another name, or use 'cframe "
      "convert' to make a frame");
}

}  // namespace cframefs::tools
