// A trailer and the variable-length metalayers in it; the input is all that follows a frame's header.
#include <cstdint>
#include <memory>

#include "frame/base/parse_budget.h"
#include "frame/cframe/trailer.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/fuzz/fuzz_target.h"

FUZZ_TARGET(trailer)(const std::uint8_t* data, std::size_t size) {
  using namespace cframefs::frame;
  if (size < layout::kMinTrailerLength) return 0;
  const std::shared_ptr<const ByteSource> source = memory_source({data, data + size});
  FrameHeader header;
  header.parameters.frame_length = size;
  RangeBuffer windows(*source);
  const auto trailer = read_trailer(windows, header);
  if (!trailer) return 0;
  FUZZ_CHECK(trailer->begin + trailer->length == size);
  FUZZ_CHECK(trailer->map.entries.size() <= layout::kMaxVlmetalayers);
  std::size_t read = 0;
  for (const MapEntry& entry : trailer->map.entries) {
    if (++read > 32) break;
    const auto chunk = find_vlmetalayer(*source, *trailer, entry);
    if (!chunk) continue;
    ParseBudget budget = ParseBudget::asked(size);
    const auto good = check_vlmetalayer(*source, *chunk, budget);
    if (chunk->nbytes() > (std::uint64_t{1} << 20)) continue;
    const auto content = read_vlmetalayer(*source, *chunk);
    FUZZ_CHECK(content.has_value() || !good.has_value());
    if (content) FUZZ_CHECK(content->size() == chunk->nbytes());
  }
  return 0;
}
