// Chooses chunk shape and block shape of a new n-d array, and encodes its metalayer.
//
// A chunk is a contiguous stretch of the C-order bytes: whole along the last dimensions, cut along one dimension, and
// of extent 1 along the dimensions before. So an array can be made from a stream with one chunk in memory.
//
// Thread safety: functions. Units: shapes count items. Errors: unsupported for arrays that no frame can hold.
#pragma once

#include <cstdint>
#include <vector>

#include "frame/cframe/b2nd_meta.h"
#include "frame/numpy/dtype.h"

namespace cframefs::frame {

/// Returns the metalayer of an array of this shape, with chunks of about `chunk_bytes` and blocks of about
/// `block_bytes`.
Result<B2ndMeta> plan_array(const std::vector<std::int64_t>& shape, const ItemType& type, std::uint64_t chunk_bytes,
                            std::uint64_t block_bytes);

/// Encodes the content of the metalayer `b2nd`.
std::vector<std::uint8_t> array_layer_image(const B2ndMeta& layer);

/// Return the number of items of a block, and of a chunk including the padding of its blocks.
std::uint64_t block_items(const B2ndMeta& layer);
std::uint64_t chunk_items(const B2ndMeta& layer);

}  // namespace cframefs::frame
