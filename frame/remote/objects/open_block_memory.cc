#include "frame/remote/objects/open_block_memory.h"

namespace cframefs::frame {
namespace {

constexpr std::size_t kBytesOfBlock = std::size_t{4} << 10;  // more than OpenDiskBlock, and a size that the pool has
constexpr std::size_t kBlocksAtOnce = 16;                    // each thread takes as many

}  // namespace

OpenBlockMemory::OpenBlockMemory(std::size_t blocks)
    : piece_(blocks * kBytesOfBlock),
      unused_(piece_.data(), piece_.size()),
      pool_({.max_blocks_per_chunk = kBlocksAtOnce, .largest_required_pool_block = kBytesOfBlock}, &unused_) {}

}  // namespace cframefs::frame
