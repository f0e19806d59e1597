// An index chunk: every entry, and the search for holes against the entries.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "frame/cframe/frame_layout.h"
#include "frame/cframe/offset_index.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace cframefs::frame;

constexpr std::int64_t kEntries = 4096;
/// Each search decodes a large unit again: of longer indexes, fewer entries are searched from.
constexpr std::int64_t kLongIndex = 65536;
constexpr std::int64_t kEntriesOfLong = 16;

bool is_hole(std::int64_t entry) {
  return entry == layout::kZerosEntry || entry == layout::kUninitialisedEntry;
}

}  // namespace

FUZZ_TARGET(index)(const std::uint8_t* data, std::size_t size) {
  const std::shared_ptr<const ByteSource> source = memory_source({data, data + size});
  RangeBuffer windows(*source);
  const auto cache = std::make_shared<IndexCache>();
  const auto index = OffsetIndex::open(source, FileOffset{0}, size, windows, cache);
  if (!index) return 0;
  const std::int64_t count = (*index)->count();
  FUZZ_CHECK(count >= 0);
  int failures = 0;
  const std::int64_t end = std::min(count, count > kLongIndex ? kEntriesOfLong : kEntries);
  for (std::int64_t chunk = 0; chunk < end; ++chunk) {
    const auto entry = (*index)->entry(chunk);
    if (!entry) {
      if (++failures > 8) break;
      continue;
    }
    // Units that do not fit into the cache are decoded again for each entry.
    if (chunk > 8 && cache->bytes() == 0) break;
    const auto next = (*index)->next(chunk, is_hole(*entry));
    FUZZ_CHECK(next && *next == chunk);
    const auto other = (*index)->next(chunk, !is_hole(*entry));
    if (other) FUZZ_CHECK(*other > chunk && *other <= count);
  }
  if (count > 0) static_cast<void>((*index)->entry(count - 1));
  return 0;
}
