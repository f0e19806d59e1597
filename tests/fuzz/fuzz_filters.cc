// The filters that have a fast and a plain version, against each other. Input: which one, width, block.
#include <cstdint>
#include <vector>

#include "codec/filter/bitshuffle.h"
#include "codec/filter/bytedelta.h"
#include "codec/filter/delta.h"
#include "codec/filter/shuffle.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace cframefs::codec;
using Block = std::vector<std::uint8_t>;
using Mover = void (*)(std::size_t, ByteView, ByteSpan);

Block moved(Mover mover, std::size_t width, const Block& in) {
  Block out(in.size());
  mover(width, in, out);
  return out;
}

void check_mover(Mover fast, Mover slow, Mover back, std::size_t width, const Block& in) {
  const Block out = moved(fast, width, in);
  FUZZ_CHECK(out == moved(slow, width, in));
  FUZZ_CHECK(moved(back, width, out) == in);
}

void check_bytedelta(BytedeltaKind kind, std::size_t planes, const Block& in) {
  Block fast = in;
  Block slow = in;
  undo_bytedelta(planes, kind, fast);
  plain::undo_bytedelta(planes, kind, slow);
  FUZZ_CHECK(fast == slow);
}

void check_delta(std::size_t width, const Block& in) {
  Block fast = in;
  Block slow = in;
  undo_delta_within(delta_unit(width), fast);
  plain::undo_delta_within(delta_unit(width), slow);
  FUZZ_CHECK(fast == slow);
  Block there = in;
  undo_delta_against(delta_unit(width), slow, there);
  undo_delta_against(delta_unit(width), slow, there);
  FUZZ_CHECK(there == in);
}

}  // namespace

FUZZ_TARGET(filters)(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t width = data[1] == 0 ? 1 : data[1];
  const Block in(data + 2, data + size);
  switch (data[0] % 7) {
    case 0:
      check_mover(shuffle, plain::shuffle, unshuffle, width, in);
      break;
    case 1:
      check_mover(unshuffle, plain::unshuffle, shuffle, width, in);
      break;
    case 2:
      check_mover(bitshuffle, plain::bitshuffle, bitunshuffle, width, in);
      break;
    case 3:
      check_mover(bitunshuffle, plain::bitunshuffle, bitshuffle, width, in);
      break;
    case 4:
      check_bytedelta(BytedeltaKind::whole, width, in);
      break;
    case 5:
      check_bytedelta(BytedeltaKind::restarted, width, in);
      break;
    default:
      check_delta(width, in);
  }
  return 0;
}
