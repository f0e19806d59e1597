// A whole Bloscpack file: header, metadata, offsets, digests, every chunk; and the text of metadata, and headers of
// .npy files.
#include "frame/array/array_view.h"
#include "frame/compat/bloscpack.h"
#include "frame/numpy/bloscpack_numpy.h"
#include "frame/numpy/npy_file.h"
#include "tests/fuzz/check_container.h"
#include "tests/fuzz/fuzz_target.h"

FUZZ_TARGET(bloscpack)(const std::uint8_t* data, std::size_t size) {
  using namespace cframefs;
  const auto opened = frame::open_bloscpack(frame::memory_source({data, data + size}));
  test::check_container(opened);
  if (opened) {
    const auto view = frame::make_view(*opened, frame::ArrayForm::npy, false);
    if (view) FUZZ_CHECK((*view)->size() == (*view)->head().size() + (*opened)->parameters().nbytes);
  }
  // What begins as no Bloscpack file may be metadata, or a .npy file.
  static_cast<void>(frame::parse_numpy_metadata({data, size}));
  static_cast<void>(frame::parse_npy_file({data, size}));
  return 0;
}
