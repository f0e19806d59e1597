// The plain content of a container, read the simple way: chunk by chunk, block by block, nothing kept.
//
// Thread safety: functions only. Errors: those of the container, for the first chunk that cannot be read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frame/array/flat_view.h"
#include "frame/container/container.h"

namespace cframefs::test {

/// A file, opened with a cache of its own.
codec::Result<std::shared_ptr<const frame::Container>> open_frame(const std::string& path, std::uint64_t offset = 0);

/// Opened from memory.
codec::Result<std::shared_ptr<const frame::Container>> open_frame(std::vector<std::uint8_t> bytes);

/// One whole chunk.
codec::Result<std::vector<std::uint8_t>> read_chunk(const frame::Container& container, std::int64_t chunk);

/// A range of the flat file; only the blocks that it touches are decoded.
codec::Result<std::vector<std::uint8_t>> read_range(const frame::FlatView& view, std::uint64_t offset,
                                                    std::uint64_t length);

/// The whole flat file, a chunk at a time.
codec::Result<void> read_all(const frame::FlatView& view, const std::function<void(codec::ByteView)>& take);

}  // namespace cframefs::test
