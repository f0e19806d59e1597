// The flat file over an n-d array: its items in C order, with the header of a .npy file in front or without.
//
// Thread safety: immutable. Ownership: shares the container. Errors: corruption where the metalayer is damaged or
// contradicts the frame; the chunks are then not shown as items of anything.
#pragma once

#include <memory>

#include "frame/array/array_geometry.h"
#include "frame/container/flat_view.h"

namespace cframefs::frame {

/// What an n-d array shows as: a .npy file, its items in C order, or its chunks as they are stored.
enum class ArrayForm : std::uint8_t { npy, flat, chunks };

/// The view of a container. `is_array`: its name says that it is an array, so being none is damage; else a container
/// without an array's metalayer is shown in chunk order, whatever the form; a Bloscpack file of a NumPy array gets its
/// header for npy.
Result<std::shared_ptr<const FlatView>> make_view(std::shared_ptr<const Container> container, ArrayForm form,
                                                  bool is_array);

/// What stands in front of an array's items in a .npy file. `typesize`: of the frame, which decides how long an item
/// is.
std::vector<std::uint8_t> npy_head_of(const B2ndMeta& layer, std::uint64_t typesize);

}  // namespace cframefs::frame
