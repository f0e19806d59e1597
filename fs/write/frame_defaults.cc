#include "fs/write/frame_defaults.h"

#include <string_view>

#include "codec/format/filter_registry.h"
#include "codec/stream/codec_table.h"
#include "frame/write/auto_params.h"

namespace cframefs::fs {
namespace {

constexpr std::string_view kAutoFilter = "auto";
constexpr std::string_view kDefaultFilter = "shuffle";  // of frames without data

codec::EncodeParameters parameters_of(const NewFrameOptions& options) {
  codec::EncodeParameters parameters;
  if (const auto compcode = codec::find_codec(options.codec)) parameters.compcode = *compcode;
  const std::string_view filter = options.filter == kAutoFilter ? kDefaultFilter : options.filter;
  if (const auto filters = codec::filters_named(filter)) parameters.filters = *filters;
  parameters.clevel = options.clevel;
  parameters.typesize = static_cast<std::int32_t>(options.typesize);
  parameters.blocksize = static_cast<std::int32_t>(options.blocksize);
  return parameters;
}

}  // namespace

frame::NewFrame placeholder_params(const NewFrameOptions& options) {
  codec::EncodeParameters parameters = parameters_of(options);
  if (parameters.typesize == 0) parameters.typesize = 1;
  const auto wanted = static_cast<std::int64_t>(options.chunksize);
  return {parameters, frame::choose_chunksize(parameters.typesize, wanted), {}};
}

frame::NewFrame auto_params(const NewFrameOptions& options, codec::ByteView first) {
  codec::EncodeContext context;
  const auto filters = options.filter == kAutoFilter ? frame::Filters::open : frame::Filters::given;
  return frame::choose_frame(context, parameters_of(options), static_cast<std::int64_t>(options.chunksize),
                             frame::samples_of(first), filters);
}

}  // namespace cframefs::fs
