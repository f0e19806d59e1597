// What a new n-d array is to be like: how it is cut into chunks and blocks, and the metalayer that says so.
//
// Chunks are pieces of the C-order bytes that lie in one stretch: whole along the last dimensions, cut along one,
// single along those before it. So an array can be made from a stream, with one chunk in memory.
//
// Thread safety: functions. Units: items for shapes. Errors: unsupported for what no frame can hold.
#pragma once

#include <cstdint>
#include <vector>

#include "frame/cframe/b2nd_meta.h"
#include "frame/numpy/dtype.h"

namespace cframefs::frame {

/// The layer of an array of this shape, with chunks of about `chunk_bytes` and blocks of about `block_bytes`.
Result<B2ndMeta> plan_array(const std::vector<std::int64_t>& shape, const ItemType& type, std::uint64_t chunk_bytes,
                            std::uint64_t block_bytes);

/// The content of the metalayer `b2nd`.
std::vector<std::uint8_t> array_layer_image(const B2ndMeta& layer);

/// Items of a block, and of a chunk with what blocks stick out of it.
std::uint64_t block_items(const B2ndMeta& layer);
std::uint64_t chunk_items(const B2ndMeta& layer);

}  // namespace cframefs::frame
