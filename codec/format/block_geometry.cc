#include "codec/format/block_geometry.h"

#include <algorithm>

namespace cframefs::codec {

BlockGeometry block_geometry(const ChunkHeader& header) {
  if (header.vl_blocks) return {0, static_cast<std::uint32_t>(header.blocksize)};
  std::int64_t blocksize = header.blocksize;
  // Writers cut the data at a multiple of the typesize but store the size that was requested. The blocks of an
  // instrumented chunk hold records, to which the typesize does not apply.
  if (blocksize > header.typesize && !header.instrumented) blocksize -= blocksize % header.typesize;
  blocksize = std::min<std::int64_t>(blocksize, std::max(header.nbytes, 1));
  const std::int64_t count = (header.nbytes + blocksize - 1) / blocksize;
  return {static_cast<std::uint32_t>(blocksize), static_cast<std::uint32_t>(count)};
}

std::uint32_t stream_count(const ChunkHeader& header, const BlockGeometry& geometry, std::uint32_t block) {
  if (header.vl_blocks || header.dont_split) return 1;
  const auto typesize = static_cast<std::uint32_t>(header.typesize);
  const bool leftover =
      block + 1 == geometry.count && static_cast<std::uint32_t>(header.nbytes) % geometry.blocksize != 0;
  if (leftover) return 1;
  // Blosc1 has the don't-split flag only since 1.11; older releases decided by the sizes.
  if (header.version <= 2 && (typesize > 16 || geometry.blocksize / typesize < 128)) return 1;
  if (header.version <= 4 && header.dictionary) return 1;
  return typesize;
}

}  // namespace cframefs::codec
