// A whole contiguous frame: header, metalayers, trailer, index, every chunk, and the flat file over them.
#include "frame/cframe/cframe.h"
#include "tests/fuzz/check_container.h"
#include "tests/fuzz/fuzz_target.h"

FUZZ_TARGET(frame)(const std::uint8_t* data, std::size_t size) {
  using namespace cframefs;
  test::check_container(
      frame::open_cframe(frame::memory_source({data, data + size}), std::make_shared<frame::IndexCache>()));
  return 0;
}
