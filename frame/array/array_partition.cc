#include "frame/array/array_partition.h"

#include <algorithm>
#include <string>

#include <fmt/core.h>

#include "codec/base/bytes.h"
#include "codec/format/chunk_header.h"
#include "frame/cframe/frame_layout.h"

namespace cframefs::frame {

namespace {

/// Returns the shape of a part that holds about `bytes` bytes: as many of the last dimensions as fit are whole, the one
/// before them is cut, the others have extent 1.
template <class Extent>
std::vector<std::int32_t> split(const std::vector<Extent>& extents, std::uint64_t itemsize, std::uint64_t bytes) {
  std::vector<std::int32_t> part(extents.size(), 1);
  std::uint64_t room = std::max<std::uint64_t>(bytes / itemsize, 1);  // items
  for (std::size_t d = extents.size(); d-- > 0;) {
    const auto extent = static_cast<std::uint64_t>(std::max<Extent>(extents[d], 1));
    if (extent > room) {
      // Parts of nearly equal size need little padding.
      const std::uint64_t parts = (extent + room - 1) / room;
      part[d] = static_cast<std::int32_t>((extent + parts - 1) / parts);
      break;
    }
    part[d] = static_cast<std::int32_t>(extent);
    room /= extent;
  }
  return part;
}

template <class T>
void put_number(std::vector<std::uint8_t>& image, std::uint8_t marker, T value) {
  image.push_back(marker);
  image.resize(image.size() + sizeof value);
  codec::store_be(&image[image.size() - sizeof value], value);
}

template <class T>
void put_list(std::vector<std::uint8_t>& image, std::uint8_t marker, const std::vector<T>& numbers) {
  image.push_back(static_cast<std::uint8_t>(layout::kFixArray + numbers.size()));
  for (const T number : numbers)
    put_number(image, marker, number);
}

/// Returns the dtype as metalayers spell it: simple types without the quotes of a .npy header.
std::string layer_dtype(const ItemType& type) {
  const bool quoted = type.descr.size() >= 2 && type.descr.front() == '\'' && type.descr.back() == '\'';
  return quoted ? type.descr.substr(1, type.descr.size() - 2) : type.descr;
}

}  // namespace

Result<B2ndMeta> plan_array(const std::vector<std::int64_t>& shape, const ItemType& type, std::uint64_t chunk_bytes,
                            std::uint64_t block_bytes) {
  if (shape.size() > kMaxDimensions)
    return codec::unsupported(
        fmt::format("array of {} dimensions, at most {} are supported", shape.size(), kMaxDimensions));
  if (type.itemsize == 0) return codec::unsupported("array of items of 0 bytes");
  B2ndMeta layer;
  layer.shape = shape;
  layer.chunkshape = split(shape, type.itemsize, chunk_bytes);
  layer.blockshape = split(layer.chunkshape, type.itemsize, block_bytes);
  layer.dtype = layer_dtype(type);
  if (chunk_items(layer) > static_cast<std::uint64_t>(codec::kMaxBlockBytes) / type.itemsize) {
    return codec::unsupported(fmt::format("array of items of {} bytes: a chunk of it would have more than {} bytes",
                                          type.itemsize, codec::kMaxBlockBytes));
  }
  return layer;
}

std::vector<std::uint8_t> array_layer_image(const B2ndMeta& layer) {
  const std::string dtype = layer.dtype.value_or("");
  std::vector<std::uint8_t> image = {layout::kFixArray + 7, 0, static_cast<std::uint8_t>(layer.shape.size())};
  put_list(image, layout::kInt64, layer.shape);
  put_list(image, layout::kInt32, layer.chunkshape);
  put_list(image, layout::kInt32, layer.blockshape);
  image.push_back(0);  // NumPy's notation
  put_number(image, layout::kString32, static_cast<std::uint32_t>(dtype.size()));
  image.insert(image.end(), dtype.begin(), dtype.end());
  return image;
}

std::uint64_t block_items(const B2ndMeta& layer) {
  std::uint64_t items = 1;
  for (const std::int32_t extent : layer.blockshape)
    items *= static_cast<std::uint64_t>(extent);
  return items;
}

std::uint64_t chunk_items(const B2ndMeta& layer) {
  std::uint64_t items = 1;
  for (std::size_t d = 0; d < layer.chunkshape.size(); ++d) {
    const auto block = static_cast<std::uint64_t>(layer.blockshape[d]);
    items *= (static_cast<std::uint64_t>(layer.chunkshape[d]) + block - 1) / block * block;
  }
  return items;
}

}  // namespace cframefs::frame
