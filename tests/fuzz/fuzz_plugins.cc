// The registered codecs and filters for n-d blocks. The first eight bytes say which, and the shape of the block; the
// rest is the stream.
#include <array>
#include <cstdint>
#include <vector>

#include "codec/filter/cells.h"
#include "codec/stream/ndlz.h"
#include "codec/stream/zfp_streams.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace cframefs::codec;

constexpr std::size_t kHead = 8;
constexpr std::size_t kMaxPlain = 1 << 18;

// Every buffer is exactly as long as it must be, so that a sanitizer sees a byte too far.
void decode(const std::uint8_t* head, const std::vector<std::int32_t>& shape, std::int32_t typesize, std::size_t items,
            const std::vector<std::uint8_t>& stream) {
  std::vector<std::uint8_t> out(items * static_cast<std::size_t>(typesize));
  const std::uint8_t meta = head[1];
  Result<void> done;
  switch (head[0] % 4) {
    case 0:
      done = decode_ndlz(meta % 2 == 0 ? 4 : 8, stream, out);
      break;
    case 1: {
      const auto order = CellOrder::create(shape, meta, static_cast<std::size_t>(typesize));
      if (!order) return;
      FUZZ_CHECK(order->size() == out.size());
      std::vector<std::uint8_t> cells = stream;
      cells.resize(out.size());
      order->undo(cells, out);
      break;
    }
    default:
      done = decode_zfp(static_cast<ZfpMode>(head[0] % 3), meta, typesize, shape, stream, out);
      break;
  }
  if (!done) FUZZ_CHECK(!done.error().reason.empty());
}

}  // namespace

FUZZ_TARGET(plugins)(const std::uint8_t* data, std::size_t size) {
  if (size < kHead) return 0;
  const std::int32_t typesize = data[2] % 2 == 0 ? 4 : 8;
  std::vector<std::int32_t> shape(1 + data[3] % 4);
  std::size_t items = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    shape[d] = 1 + data[4 + d];
    items *= static_cast<std::size_t>(shape[d]);
  }
  if (items * static_cast<std::size_t>(typesize) > kMaxPlain) return 0;
  const std::vector<std::uint8_t> stream(data + kHead, data + size);
  const bool is_ndlz = data[0] % 4 == 0;
  decode(data, shape, is_ndlz ? 1 : typesize, items, stream);
  return 0;
}
