#include "fs/write/frame_defaults.h"

#include <string_view>

#include "codec/format/filter_registry.h"
#include "codec/stream/codec_table.h"
#include "frame/write/auto_params.h"
#include "frame/write/item_sizes.h"

namespace cframefs::fs {
namespace {

constexpr std::string_view kAutoFilter = "auto";
constexpr std::string_view kDefaultFilter = "shuffle";  // of frames without data, and of small ones

// A frame of this many bytes takes one block of most disks, whatever its parameters: trials would gain nothing, and
// take longer than all else that it takes to create a file.
constexpr std::size_t kOneDiskBlock = 3840;

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
  const frame::DataSamples samples = frame::samples_of(first);
  codec::EncodeParameters parameters = parameters_of(options);
  if (first.size() <= kOneDiskBlock) {
    const auto declared = frame::declared_item_sizes(samples.head);
    if (parameters.typesize == 0) parameters.typesize = declared.empty() ? 1 : declared.front();
    return {parameters, frame::choose_chunksize(parameters.typesize, static_cast<std::int64_t>(options.chunksize)), {}};
  }
  codec::EncodeContext context;
  const auto filters = options.filter == kAutoFilter ? frame::Filters::open : frame::Filters::given;
  return frame::choose_frame(context, parameters, static_cast<std::int64_t>(options.chunksize), samples, filters);
}

}  // namespace cframefs::fs
