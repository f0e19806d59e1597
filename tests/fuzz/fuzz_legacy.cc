// A whole frame of a beta, under either rule for its bits; and a file that is one chunk.
#include "frame/compat/bare_chunk.h"
#include "frame/compat/legacy_frame.h"
#include "tests/fuzz/check_container.h"
#include "tests/fuzz/fuzz_target.h"

FUZZ_TARGET(legacy)(const std::uint8_t* data, std::size_t size) {
  using namespace cframefs;
  const bool old_bitshuffle = size % 2 == 1;
  test::check_container(frame::open_legacy_frame(frame::memory_source({data, data + size}),
                                                 std::make_shared<frame::IndexCache>(), old_bitshuffle));
  test::check_container(frame::open_bare_chunk(frame::memory_source({data, data + size}), !old_bitshuffle));
  return 0;
}
