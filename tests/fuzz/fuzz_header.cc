// The fixed header of a frame and the metalayers behind it.
#include <cstdint>

#include "frame/cframe/fixed_metalayers.h"
#include "frame/cframe/frame_header.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/fuzz/fuzz_target.h"

FUZZ_TARGET(header)(const std::uint8_t* data, std::size_t size) {
  using namespace cframefs::frame;
  const ByteView bytes(data, size);
  if (const auto header = parse_fixed_header(bytes)) {
    const FrameParameters& parameters = header->parameters;
    FUZZ_CHECK(has_frame_magic(bytes) && parameters.typesize > 0);
    FUZZ_CHECK(header->chunk_count <= INT32_MAX / 8);
    FUZZ_CHECK(parameters.nbytes == 0 || parameters.variable_chunks || header->chunk_count > 0);
    if (check_extent(*header, size)) {
      FUZZ_CHECK(parameters.header_length < parameters.frame_length && parameters.frame_length <= size);
    }
  }
  // Metalayers do not wait for a header that is right.
  const auto source = memory_source({bytes.begin(), bytes.end()});
  RangeBuffer windows(*source);
  const auto section = read_metalayers(windows, size);
  FUZZ_CHECK(section.has_value());
  std::uint64_t total = 0;
  for (const MetalayerPlace& layer : section->layers) {
    const auto content = read_metalayer(*source, layer);
    FUZZ_CHECK(content && content->size() == layer.length);
    total += layer.length;
  }
  FUZZ_CHECK(total <= size);
  FUZZ_CHECK(section->layers.size() <= layout::kMaxMetalayers);
  return 0;
}
