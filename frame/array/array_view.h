// Chooses the flat view of a container: for n-d arrays, the items in C order, with or without the header of a .npy
// file.
//
// Thread safety: immutable. Ownership: shares the container. Errors: corruption if the metalayer is damaged or
// contradicts the frame. The chunks are then not shown at all.
#pragma once

#include <memory>

#include "frame/array/flat_view.h"

namespace cframefs::frame {

/// How an n-d array is shown: as a .npy file, as its items in C order, or as its chunks in stored order.
enum class ArrayForm : std::uint8_t { npy, flat, chunks };

/// Returns the view of a container. A container without an array metalayer is shown in chunk order in every form, but
/// form npy adds the header of the NumPy array in a Bloscpack file. `is_array`: the name of the file says that it is an
/// array, so a missing array metalayer is corruption, unless the frame says that it holds the bytes of a file.
Result<std::shared_ptr<const FlatView>> make_view(std::shared_ptr<const Container> container, ArrayForm form,
                                                  bool is_array);

/// Returns the header of the array's .npy file. `typesize`: bytes of an item by the frame's header. If the dtype in
/// `layer` has another size, the items are shown as opaque bytes.
std::vector<std::uint8_t> npy_head_of(const B2ndMeta& layer, std::uint64_t typesize);

}  // namespace cframefs::frame
