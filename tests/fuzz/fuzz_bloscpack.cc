// A whole Bloscpack file: header, metadata, offsets, digests, every chunk.
#include "frame/bloscpack.h"
#include "tests/fuzz/check_container.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cframefs;
  test::check_container(frame::open_bloscpack(frame::memory_source({data, data + size})));
  return 0;
}
